"""The documents that venues ask for, beside every exported set, and sending it to a server that speaks the interface of
the Hugging Face Hub, or packing it.
"""

import io
import json
import shutil
import subprocess
import sys

import pytest
from django.core.management.base import CommandError

from annotate.actions.registry import call_command
from annotate.goldsets import set_documents
from annotate.goldsets.set_documents import PERSONAL
from annotate.goldsets.set_folder import manifest_of, write_manifest
from annotate.reports.table_formats import escape_latex
from tests import hub_server, latex
from tests.annotate.exchange.conftest import EXPORTS
from tests.annotate.goldsets.set_contents import RESPONSIBLE, contents

pytestmark = [
    pytest.mark.django_db,
    # huggingface_hub passes a file to its HTTP client as raw bytes.
    pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning"),
]
REPO = "maria/mood"


@pytest.fixture
def export(data_dir, tmp_path):
    """Return a function that exports a small set, whose texts have a licence, and returns its folder."""

    def write(file="mechanical_turk_boxes.csv", **terms):
        call_command("import", "mood", EXPORTS / file, language="en", **{"licence": "CC0-1.0"} | terms)
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


def test_a_set_is_sent_in_one_commit_to_a_repository_that_is_created(export, hub):
    folder = export()
    whole = contents(folder)
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
        ("commit", "away", "Check whether the set is at http"),
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
    write_manifest(folder, manifest_of(folder) | {"finished": False})
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
        name: len(content) for name, content in contents(folder).items()
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
    assert contents(tmp_path / "unpacked" / "mood") == contents(folder)


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
    assert not [name for name, content in contents(folder).items() if any(text in content for text in texts)]


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
        ({"archive": "set.zip", "private": True}, "--private requires --repo"),
        ({"dry_run": True}, "does not exist"),
    ],
)
def test_what_cannot_be_published_is_refused(tmp_path, options, sentence):
    with pytest.raises(CommandError, match=sentence):
        publish(tmp_path / "nowhere", **options)


# The validator runs in its own process, because absl, which it imports, closes the process's standard error stream.
# `os._exit` skips the interpreter's shutdown: now and then, a thread of Arrow that still reads a Python file aborts
# the process there, after the result was printed.
VALIDATION = """
import json, os, sys, mlcroissant
dataset = mlcroissant.Dataset(jsonld=sys.argv[1])
rows = [row for records in dataset.metadata.record_sets for row in dataset.records(records.id)]
labels = sorted(value.decode() for row in rows for name, value in row.items() if name.endswith("/label"))
print(json.dumps([dataset.metadata.issues.report(), labels]), flush=True)
os._exit(0)
"""


def test_the_validator_of_croissant_accepts_a_set_and_reads_its_rows(export):
    program = [sys.executable, "-c", VALIDATION, export() / "croissant.json"]
    report = subprocess.run(program, stdout=subprocess.PIPE, check=True).stdout
    assert json.loads(report.splitlines()[-1]) == ["", ["bad", "good"]]


def test_no_responsible_ai_field_is_missing_and_the_paragraph_for_a_paper_has_the_figures_of_the_manifest(export):
    folder = export()
    croissant = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    assert {name.removeprefix("rai:") for name in croissant if name.startswith("rai:")} >= RESPONSIBLE
    assert len(PERSONAL) == 5
    assert not croissant.keys() & {"url", "creator"}  # no sentence in place of a URL
    for question in PERSONAL.values():
        assert f"[To be written by the authors: {question}.]" in (folder / "DATA_STATEMENT.md").read_text("utf-8")
    people = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["people"]
    paper = (folder / "METHODS.tex").read_text(encoding="utf-8")
    assert f"{people['annotators']} annotator gave {people['answers']} valid answers." in paper
    assert r"good & 1 \\" in paper
    assert "Each manually annotated record was shown to one annotator with the question" in paper
    assert "The answers of 1 annotator were imported from another tool" in paper
    assert "{%" not in paper


def test_what_a_project_states_stands_in_its_sets(export):
    call_command("project", creators="Ann Lee; Bea Ray", uses="Measuring, not training.")
    folder = export()
    croissant = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    assert [creator["name"] for creator in croissant["creator"]] == ["Ann Lee", "Bea Ray"]
    assert croissant["rai:dataUseCases"] == "Measuring, not training."
    assert "Published by Ann Lee; Bea Ray" in (folder / "DATA_STATEMENT.md").read_text(encoding="utf-8")


# Characters that mean something to LaTeX, and letters that its fonts lack.
AWKWARD = r"100 % of A & B_c #1 {x} \y ~ ^ $3 <b> | \"q\" `z -5 قاهرة يوسف Ąžuolas Łódź 中文 😀 “curly” «x» é a​b"


@pytest.mark.slow
@pytest.mark.parametrize("file", ["mechanical_turk_boxes.csv", "label_studio_spans.json", "doccano_classes.jsonl"])
def test_the_paragraph_for_a_paper_compiles_whatever_its_texts_contain(export, tmp_path, file):
    folder = export(file, licence=f"mine {AWKWARD}", source=AWKWARD, text_may_leave=True)
    paper = (folder / "METHODS.tex").read_text(encoding="utf-8")
    assert r"100 \% of A \& B\_c \#1 \{x\}" in paper
    assert latex.pages(tmp_path / "paper", paper) == 1


@pytest.mark.slow
def test_each_text_is_compiled_as_a_row_of_a_table_and_in_its_caption(tmp_path):
    rows = "".join(
        f"{escape_latex(text)} & 1 \\\\\n" for text in ("[optional]", "*starred", "a\n\nb", *AWKWARD.split())
    )
    caption = f"\\caption{{{escape_latex(AWKWARD)}}}"
    table = f"\\begin{{table}}\\begin{{tabular}}{{lr}}\n{rows}\\end{{tabular}}{caption}\\end{{table}}"
    assert latex.pages(tmp_path / "paper", table) == 1


def test_a_table_for_a_paper_has_one_row_for_all_but_the_most_frequent_labels():
    rows = set_documents._label_rows({f"label {number:02}": number for number in range(1, 51)})
    assert rows[:2] == [("label 50", 50), ("label 49", 49)]
    assert rows[-1] == ("21 other labels", sum(range(1, 22)))
    assert len(rows) == set_documents.ROWS
