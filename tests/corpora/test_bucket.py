"""Corpora in object storage that two servers share, which are two data folders here."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
from django.core.management import CommandError

from corpora.models import Corpus
from corpora.storage import bucket, layout
from corpora.storage.layout import corpora_on_disk, corpus_dir, manifest_of, read_manifest
from tests.corpora.conftest import POSTS, as_jsonl
from tests.corpora.on_disk import bytes_of, posts, rejects
from tests.running import ROOT
from tests.s3_server import BUCKET, serving

pytestmark = pytest.mark.django_db

WHOLE = "corpora/c.json"  # the object that publishes the corpus


@pytest.fixture
def store(settings, monkeypatch):
    """Object storage, with the setting that points to it."""
    with serving() as served:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        address = f"endpoint_override=http://127.0.0.1:{served.port}&region=us-east-1"
        settings.CORPORA = f"s3://{BUCKET}/corpora?{address}"
        yield served


@pytest.fixture
def servers(settings, tmp_path):
    """Return a function that selects a server by its name."""

    def select(name):
        settings.DATA_DIR = tmp_path / name
        settings.DATA_DIR.mkdir(exist_ok=True)

    select("a")
    return select


@pytest.fixture
def imported(store, servers, write, import_corpus):
    """A corpus that server `a` imported from a file with a rejected row."""
    return import_corpus("c", write("posts.jsonl", as_jsonl(POSTS) + "broken\n"))


def test_a_corpus_is_listed_on_another_server_and_copied_when_it_is_opened(imported, servers):
    files = bytes_of()
    servers("b")
    assert corpora_on_disk() == ["c"]
    assert read_manifest("c").rows == len(POSTS)
    assert not corpus_dir("c").exists()
    assert [row["id"] for row in posts()] == [post["id"] for post in POSTS]
    assert bytes_of() == files
    assert len(rejects()) == 1


def test_servers_change_a_corpus_in_turn(imported, store, servers, printed):
    servers("b")
    printed("prelabel", "c", processes=1)
    files = {*store.objects}
    servers("a")
    assert manifest_of("c").votes[0].rows == len(POSTS)
    assert (corpus_dir("c") / "votes" / "000001.parquet").exists()
    printed("prelabel", "c", processes=1, k=2, again=True)
    assert len(files - store.objects.keys()) == 1, "the replaced votes were left in object storage"
    servers("b")
    assert manifest_of("c").votes[0].k == 2


def test_a_copy_is_not_read_again(imported, store, servers):
    servers("b")
    manifest_of("c")
    store.steps.clear()
    manifest_of("c")
    assert {key for _, key in store.steps} == {WHOLE}


def test_a_change_that_another_server_has_overtaken_is_refused(imported, store, servers, write, import_corpus):
    def overtake(method, key):
        if method != "HEAD" and key != WHOLE:
            published = json.loads(store.objects[WHOLE])
            store.objects[WHOLE] = json.dumps(published | {"by": "another server"}).encode()

    store.on_step = overtake
    with pytest.raises(CommandError, match="Another server changed corpus c in the meantime"):
        import_corpus("c", write("more.jsonl", [{"id": "9", "text": "Noch ein Satz aus einer anderen Datei."}]))
    assert manifest_of("c").rows == len(POSTS)


def test_a_deleted_corpus_is_gone_on_all_servers(imported, store, servers, printed):
    servers("b")
    manifest_of("c")
    servers("a")
    printed("delete", corpus="c", yes=True)
    assert not corpus_dir("c").exists()
    assert not [key for key in store.objects if not key.endswith("/")]
    servers("b")
    assert corpora_on_disk() == []
    assert read_manifest("c") is None


def test_a_corpus_deleted_elsewhere_can_be_imported_again(imported, servers, printed, write, import_corpus):
    servers("b")
    manifest_of("c")
    printed("delete", corpus="c", yes=True)
    servers("a")
    import_corpus("c", write("other.jsonl", POSTS[:2]))
    servers("b")
    assert len(posts()) == 2


def test_a_corpus_from_before_the_setting_is_published_with_its_next_change(
    settings, store, servers, write, import_corpus, printed
):
    address, settings.CORPORA = settings.CORPORA, ""
    import_corpus("c", write("posts.jsonl", POSTS))
    settings.CORPORA = address
    assert corpora_on_disk() == ["c"]
    assert len(posts()) == len(POSTS)
    printed("prelabel", "c", processes=1)
    servers("b")
    assert len(posts()) == len(POSTS)
    assert manifest_of("c").votes


@pytest.mark.parametrize("moment", [("PUT", "corpora/c/"), ("PUT", WHOLE)])
def test_a_kill_during_the_upload_leaves_nothing_visible(moment, settings, store, servers, write, migrated, tmp_path):
    file, running = write("posts.jsonl", POSTS), []

    def kill(method, key):
        if method == moment[0] and key.startswith(moment[1]) and running:
            os.kill(running.pop().pid, signal.SIGKILL)

    database = shutil.copy(migrated, tmp_path)
    env = os.environ | {"ASSAY_CORPORA": settings.CORPORA, "DATABASE_URL": f"sqlite:///{database}"}
    env |= {"ASSAY_DATA_DIR": str(settings.DATA_DIR), "ASSAY_AUTHOR_KEY": "k" * 32}
    command = [sys.executable, ROOT / "manage.py", "import_corpus", "c", file, "--licence", "CC0-1.0"]
    store.on_step = kill
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE)
    running.append(process)
    _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, errors
    assert (corpora_on_disk(), read_manifest("c")) == ([], None)
    servers("b")
    assert (corpora_on_disk(), read_manifest("c")) == ([], None)
    servers("a")
    subprocess.run(command, env=env, check=True, capture_output=True)
    servers("b")
    assert len(posts()) == len(POSTS)


def test_a_changed_object_is_refused(imported, store, servers):
    key = next(key for key in store.objects if key.startswith("corpora/c/"))
    store.objects[key] = b"other content"
    servers("b")
    with pytest.raises(layout.CorpusError, match=r"of corpus c was changed in object storage \(c/\w{64}\)"):
        manifest_of("c")
    assert not list(corpus_dir("c").glob("*/*.new"))


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"manifest": {}, "files": {"../../x/y": "0"}}'])
def test_a_changed_manifest_is_refused(imported, store, servers, content):
    store.objects[WHOLE] = content
    with pytest.raises(layout.CorpusError, match=r"c\.json in object storage was changed"):
        manifest_of("c")


def test_without_access_a_command_ends_with_one_clear_line(imported, store, printed):
    store.forbids = {"GET", "HEAD", "PUT", "POST"}
    with pytest.raises(CommandError) as refused:
        printed("prelabel", "c")
    assert "\n" not in str(refused.value)
    assert "ACCESS_DENIED" in str(refused.value)
    assert "Check ASSAY_CORPORA" in str(refused.value)
    assert Corpus.objects.count() == 1


def test_a_kept_copy_is_read_without_the_store_once_the_setting_is_removed(imported, settings, servers):
    servers("b")
    manifest_of("c")
    settings.CORPORA = ""
    assert len(posts()) == len(POSTS)


def test_an_invalid_address_is_reported(settings):
    settings.CORPORA = "s4://bucket"
    with pytest.raises(layout.CorpusError, match="Check ASSAY_CORPORA"):
        bucket.names()
