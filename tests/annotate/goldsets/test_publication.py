"""Sending a gold set to a server that speaks the interface of the Hugging Face Hub, and packing it."""

import io
import json
import shutil

import pytest
from django.core.management.base import CommandError

from annotate.actions.commands import call_command
from annotate.goldsets.set_folder import manifest_digest
from tests import hub_server
from tests.annotate.exchange.test_import_project import EXPORTS

pytestmark = [
    pytest.mark.django_db,
    # huggingface_hub passes a file to its HTTP client as raw bytes.
    pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning"),
]
REPO = "maria/mood"


@pytest.fixture
def export(data_dir, tmp_path):
    """Return a function that exports a set, whose texts have a licence, and returns its folder."""

    def write(**terms):
        terms = {"licence": "CC0-1.0"} | terms
        call_command("import", "mood", EXPORTS / "mechanical_turk_boxes.csv", language="en", **terms)
        call_command("export_gold", "mood", out=tmp_path / "set")
        return tmp_path / "set"

    return write


@pytest.fixture
def hub(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with hub_server.serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_TOKEN", hub_server.TOKEN)
        yield hub


def publish(folder, **options):
    call_command("publish", folder, json=True, stdout=(out := io.StringIO()), stderr=io.StringIO(), **options)
    return json.loads(out.getvalue())


def edit_manifest(folder, **changes):
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest |= changes
    manifest["digest"] = manifest_digest(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_set_is_sent_in_one_commit_to_a_repository_that_is_created(export, hub):
    folder = export()
    whole = files_of(folder)
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    result = publish(folder, repo=REPO, private=True)
    assert hub.repos == {REPO: True}
    assert hub.commits[REPO] == [whole]
    assert result["not_published"] == ["notes.txt"]
    assert result["url"] == f"{hub.url}/datasets/{REPO}"
    assert any(name.endswith(".parquet") for name in whole)


def test_a_later_set_is_a_second_commit_and_files_that_stay_behind_are_named(export, hub):
    folder = export()
    hub.repo(REPO)
    hub.commits[REPO].append({"gold.unfinished.jsonl": b""})
    assert publish(folder, repo=REPO)["left"] == ["gold.unfinished.jsonl"]
    assert len(hub.commits[REPO]) == 2


@pytest.mark.parametrize(
    ("step", "what", "sentence"),
    [
        pytest.param("upload", 403, "Nothing was published", marks=pytest.mark.slow),
        pytest.param("preupload", "away", "Nothing was published", marks=pytest.mark.slow),
        ("commit", 403, "Nothing was published"),
        ("commit", "away", "Look at http"),
    ],
)
def test_a_failed_upload_says_whether_anything_was_published(export, hub, step, what, sentence):
    folder = export()
    hub.fails[step] = what
    with pytest.raises(CommandError, match=sentence):
        publish(folder, repo=REPO)
    assert not hub.commits[REPO]
    del hub.fails[step]
    publish(folder, repo=REPO)
    assert len(hub.commits[REPO]) == 1


def test_private_sets_and_unfinished_sets_do_not_go_to_public_repositories(export, hub):
    folder = export()
    hub.repo(REPO)
    with pytest.raises(CommandError, match=f"The repository {REPO} is public"):
        publish(folder, repo=REPO, private=True)
    edit_manifest(folder, finished=False)
    for repo in (REPO, "maria/new"):
        with pytest.raises(CommandError, match="The set is unfinished"):
            publish(folder, repo=repo)
    assert not hub.commits[REPO]
    assert "maria/new" not in hub.repos


def test_a_dry_run_lists_the_files_and_asks_no_server(export, hub, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    folder = export()
    listed = publish(folder, repo=REPO, dry_run=True)["files"]
    assert {file["name"]: file["bytes"] for file in listed} == {
        name: len(content) for name, content in files_of(folder).items()
    }
    assert not hub.steps
    with pytest.raises(CommandError, match="Set HF_TOKEN"):
        publish(folder, repo=REPO)


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
def test_an_archive_of_the_same_set_has_the_same_bytes(export, tmp_path, suffix):
    folder = export()
    archives = [tmp_path / f"{name}{suffix}" for name in ("one", "two")]
    for archive in archives:
        publish(folder, archive=archive)
    assert len({archive.read_bytes() for archive in archives}) == 1
    shutil.unpack_archive(archives[0], tmp_path / "unpacked")
    assert files_of(tmp_path / "unpacked" / "mood") == files_of(folder)


def test_texts_without_a_known_licence_are_not_published(export, tmp_path):
    folder = export(licence="unknown", text_may_leave=True)
    with pytest.raises(CommandError, match=r"is unknown.*Import the corpus under another name") as refusal:
        publish(folder, dry_run=True)
    assert "--text-stays" in str(refusal.value)
    with pytest.raises(CommandError, match="is unknown"):
        publish(folder, archive=tmp_path / "set.zip")
    assert not (tmp_path / "set.zip").exists()


def test_a_set_whose_texts_stay_is_published_without_them(export, tmp_path):
    folder = export(licence="ours", text_may_leave=False)
    publish(folder, archive=tmp_path / "set.zip")
    texts = [b"It boils fast", b"It leaks again"]
    assert not [name for name, content in files_of(folder).items() if any(text in content for text in texts)]


def test_labels_imported_under_a_licence_that_is_not_free_are_not_published(tmp_path):
    (tmp_path / "labels.tsv").write_text("de\t1\nen\t2\n", encoding="utf-8")
    terms = {"out": tmp_path / "gold", "design": "uniform", "name": "labels"}
    call_command("import_gold", tmp_path / "labels.tsv", **terms)
    with pytest.raises(CommandError, match=r"labels.tsv, whose licence \(not stated\) is not known to permit"):
        publish(tmp_path / "gold", dry_run=True)
    call_command("import_gold", tmp_path / "labels.tsv", licence="CC0-1.0", **terms)
    publish(tmp_path / "gold", dry_run=True)


def test_a_set_that_was_changed_after_the_export_is_not_published(export):
    folder = export()
    jsonl = folder / "gold.jsonl"
    jsonl.write_text(jsonl.read_text(encoding="utf-8").replace("good", "bad"), encoding="utf-8")
    with pytest.raises(CommandError, match=r"gold.jsonl was changed after the export"):
        publish(folder, dry_run=True)
    jsonl.unlink()
    with pytest.raises(CommandError, match=r"gold.jsonl is missing since the export"):
        publish(folder, dry_run=True)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "Set --repo OWNER/NAME, or --archive FILE"),
        ({"repo": REPO, "archive": "set.zip"}, "not both"),
        ({"repo": "mood"}, "name a repository as OWNER/NAME"),
        ({"archive": "set.rar"}, r"name a file that ends in \.zip or \.tar\.gz"),
        ({"archive": "set.zip", "private": True}, "--private belongs to --repo"),
        ({"dry_run": True}, "does not exist"),
    ],
)
def test_what_cannot_be_published_is_refused(tmp_path, options, sentence):
    with pytest.raises(CommandError, match=sentence):
        publish(tmp_path / "nowhere", **options)
