"""An import or a prelabelling that is killed or meets a full disk, and then runs again."""

import errno
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from corpora.core import CorpusError
from corpora.engines import explain_full_disk
from corpora.storage import intake
from corpora.storage.layout import corpus_dir, manifest_of, read_manifest
from tests.corpora.on_disk import bytes_of
from tests.running import ROOT
from tests.together import until

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

ROWS = 2_000
# The commands are in annotate, which has people and tokens.
APPS = ["django.contrib.contenttypes", "django.contrib.auth", "axes", "knox", "corpora", "annotate"]
# Prints the ids of its children and kills itself at the {time}th audit event of Python with this name and ending of
# the path.
COMMAND = """
import os, signal, sys
from pathlib import Path

times = []

def watch(event, args):
    if (event, str(args[0])[-len({path!r}):] if args else "") == ({event!r}, {path!r}):
        times.append(event)
        if len(times) == {time}:
            print(Path("/proc/self/task", str(os.getpid()), "children").read_text(), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)

import django
from django.conf import settings
settings.configure(INSTALLED_APPS={apps!r}, DATA_DIR={data_dir!r}, ENGINE="duckdb", CORPORA="", AUTHOR_KEY={key!r},
                   DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
                   DATABASES={{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": {database!r}}}}})
django.setup()
from annotate.actions.registry import call_command
call_command({command!r}, "c", *{files!r}, **{options!r}, stdout=sys.stderr)
"""


@pytest.fixture
def killed(settings, migrated, tmp_path):
    """Run a command in a separate process that is killed at a step, and return the ids of its children."""

    database = shutil.copy(migrated, tmp_path)

    def kill(command, *files, at, **options):
        names = dict(zip(("event", "path", "time"), at, strict=True)) | {"command": command, "options": options}
        names |= {"data_dir": str(settings.DATA_DIR), "database": database, "key": settings.AUTHOR_KEY}
        code = COMMAND.format(**names, apps=APPS, files=[str(file) for file in files])
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        return done.stdout.split()

    return kill


def lines(start, count):
    return "".join(
        f'{{"id": {n}, "text": "Das ist der Text mit der Nummer {n}."}}\n' for n in range(start, start + count)
    )


@pytest.fixture
def files(write):
    return [write("a.jsonl", lines(0, ROWS)), write("b.jsonl", lines(ROWS - 10, ROWS) + "broken\n")]


@pytest.mark.parametrize(
    ("at", "imported"),
    [
        (("open", "/a.jsonl", 9), 0),  # it is read, to be staged
        (("os.mkdir", "/tmp", 1), 0),  # it is staged, and will be sorted
        (("open", "/parts/000001.parquet", 1), 0),  # it is written, and not yet safe on the disk
        (("os.rename", "/manifest.draft", 1), 0),  # everything is there, but not yet published
        (("open", "/b.jsonl", 9), 1),
        (("os.rename", "/manifest.draft", 2), 1),
    ],
)
def test_an_import_killed_and_run_again_ends_with_the_same_bytes(files, killed, import_corpus, at, imported):
    killed("import_corpus", *files, at=at, licence="CC0-1.0")
    manifest = read_manifest("c")
    assert len(manifest.sources if manifest else ()) == imported
    import_corpus("c", *files)
    import_corpus("whole", *files)
    assert bytes_of("c") == bytes_of("whole")
    assert manifest_of("c").rows == 2 * ROWS - 10


PREDICTIONS = ("import_predictions", {"name": "mine", "version": "1"})
VOTES = ("prelabel", {"processes": 1})


@pytest.mark.parametrize(
    ("command", "at", "done"),
    [
        (VOTES, ("open", "/votes/000003.parquet", 1), 2),
        (VOTES, ("os.rename", "/manifest.draft", 4), 3),
        (PREDICTIONS, ("open", "/p.tsv", 2), 0),
        (PREDICTIONS, ("open", "/predictions/000001.parquet", 1), 0),
        (PREDICTIONS, ("os.rename", "/manifest.draft", 1), 0),
    ],
)
def test_votes_and_predictions_killed_and_made_again_end_with_the_same_bytes(
    write, killed, import_corpus, command, at, done
):
    name, options = command
    posts = [write(f"{n}.jsonl", lines(n * 100, 100)) for n in range(4)]
    files = [write("p.tsv", "".join(f"{n}\tde\t0.5\n" for n in range(400)))] if command is PREDICTIONS else []
    for corpus in ("c", "whole"):
        import_corpus(corpus, *posts)
    killed(name, *files, at=at, **options)
    manifest = manifest_of("c")
    assert len(manifest.predictions if command is PREDICTIONS else manifest.votes) == done
    for corpus in ("c", "whole"):
        call_command(name, corpus, *map(str, files), **options)
    assert bytes_of("c") == bytes_of("whole")


@pytest.mark.parametrize(
    ("step", "name"),
    [
        ("storage.intake", "_STAGING"),
        ("storage.intake", "deduplicate"),
        ("storage.layout", "write_manifest"),
    ],
)
def test_a_full_disk_is_explained_and_leaves_what_was_there(files, import_corpus, monkeypatch, step, name):
    import_corpus("c", files[0])
    before = bytes_of()

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        # The device of that name refuses every write, like a full disk.
        patch.setattr(f"corpora.{step}.{name}", "/dev/full" if name == "_STAGING" else full)
        patch.setattr("corpora.storage.record_import.deduplicate", intake.deduplicate)
        with pytest.raises(CommandError, match=r"The disk is full: nothing was imported from .*b\.jsonl") as error:
            import_corpus("c", files[1])
    assert "Free space in" in str(error.value)
    assert manifest_of("c").rows == ROWS
    import_corpus("c", files[0])
    assert bytes_of() == before


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_workers_of_a_prelabelling_that_was_killed_end_with_it(write, killed, import_corpus):
    import_corpus("c", *(write(f"{n}.jsonl", lines(n * 100, 100)) for n in range(4)))
    workers = killed("prelabel", at=("open", "/votes/000002.parquet", 1), processes=2)
    assert len(workers) >= 2
    until(lambda: not any(map(is_running, workers)))


def test_duckdb_that_finds_no_room_to_spill_is_explained_as_a_full_disk_and_nothing_else_is(data_dir):
    # DuckDB takes the available space as its limit, and reports a full disk as this limit.
    config = {"memory_limit": "100MB", "temp_directory": str(data_dir)}
    with duckdb.connect(config=config) as connection:
        connection.execute("SET max_temp_directory_size = '5MB'")
        sort = connection.sql("SELECT i, md5(i::VARCHAR) AS m FROM range(5000000) t(i) ORDER BY m")
        with pytest.raises(CorpusError, match="The disk is full: x"), explain_full_disk("x"):
            sort.to_arrow_table()
    with pytest.raises(PermissionError), explain_full_disk("nothing was done"):
        raise PermissionError(errno.EACCES, "Permission denied")


@pytest.mark.parametrize(("folder", "file"), [(".", ""), ("c/lock", ""), ("c", "parts")])
def test_a_directory_that_cannot_be_written_is_explained(write, import_corpus, data_dir, folder, file):
    corpora = corpus_dir("c").parent
    if folder == ".":
        corpora.write_text("a file, where a directory should be")
    else:
        (corpora / folder).mkdir(parents=True)
    if file:
        (corpora / folder / file).write_text("a file")
    refusal = r"(Cannot write to .*/corpora/c: |corpora/c/manifest\.json cannot be read: ).*\. "
    with pytest.raises(CommandError, match=refusal):
        import_corpus("c", write("a.jsonl", lines(0, 1)))
