"""Events while a command runs: signals, a closed pipe, a full disk, another command. Each command runs in a separate
process, and a test waits for a fact before it interferes.
"""

import os
import pty
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.running import DATA, ROOT, assay, begin, install

pytestmark = pytest.mark.slow


HANGING = 3600  # seconds: nothing here takes that long on any machine
ROWS = 20_000  # of a file
POSTS = 90_000  # of the corpus: nine pieces of votes; the test waits for the first one


@pytest.fixture(scope="module")
def home(tmp_path_factory, migrated):
    """The folder of an installation with an empty database and a corpus of one part."""
    folder = tmp_path_factory.mktemp("home")
    install(folder / DATA, migrated)
    (folder / "posts.jsonl").write_text(lines(0, POSTS))
    assert assay(folder, "import_corpus", "c", "posts.jsonl", "--licence", "CC0-1.0").returncode == 0
    return folder


def lines(first, count):
    return "".join(
        f'{{"id": {n}, "text": "Das ist der Text mit der Nummer {n}."}}\n' for n in range(first, first + count)
    )


def wait_for(fact, process):
    """Wait until a function returns something true, and return it. Fail if the command ends before."""
    while not (value := fact()):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    return value


def ended(process, status, *messages):
    out, err = process.communicate(timeout=HANGING)
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    assert process.returncode == status, (out, err)
    for words in messages:
        assert words in err
    return out, err


def votes_begun(folder):
    return lambda: list((folder / DATA / "corpora" / "c" / "voting").glob("*/*.arrow"))


@pytest.fixture
def unread(home):
    """The corpus without the votes of earlier tests."""
    subprocess.run(["rm", "-rf", home / DATA / "corpora" / "c" / "voting"], check=True)
    return home


@pytest.mark.parametrize(
    ("number", "message"), [(signal.SIGINT, "Stopped by Ctrl-C"), (signal.SIGTERM, "Stopped by SIGTERM")]
)
def test_a_stopped_import_says_so_and_leaves_nothing_of_the_file(home, number, message):
    (home / "more.jsonl").write_text(lines(POSTS, 20 * ROWS))
    before = bytes_in(home)
    process = begin(home, "import_corpus", "c", "more.jsonl", "--licence", "CC0-1.0")
    wait_for((home / DATA / "corpora" / "c" / "staging" / "rows.parquet").exists, process)
    os.killpg(process.pid, number)
    _, err = ended(process, 128 + number, message, "Run the command again")
    assert err.count("\n") == 1
    assert bytes_in(home) == before


def bytes_in(home):
    folder = home / DATA / "corpora" / "c"
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


@pytest.mark.parametrize(("processes", "number"), [(2, signal.SIGINT), (1, signal.SIGTERM)])
def test_a_stopped_prelabelling_says_so_and_keeps_its_pieces_and_no_worker_hears_ctrl_c(unread, processes, number):
    process = begin(unread, "prelabel", "c", "--processes", processes)
    wait_for(votes_begun(unread), process)
    workers = workers_of(process)
    assert [os.getpgid(pid) for pid in workers] == workers
    assert len(workers) == (processes if processes > 1 else 0)
    os.killpg(process.pid, number)
    _, err = ended(process, 128 + number, "Stopped by", "Run the command again to continue")
    assert err.count("\n") == 1
    assert votes_begun(unread)()


def workers_of(process):
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in children if b"vote_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_a_killed_worker_is_explained_and_what_is_done_is_kept(unread):
    process = begin(unread, "prelabel", "c", "--processes", "2")
    wait_for(votes_begun(unread), process)
    os.kill(workers_of(process)[0], signal.SIGKILL)
    messages = "was killed, probably because memory ran out", "with fewer --processes", "Finished votes are saved"
    _, err = ended(process, 1, *messages)
    assert err.count("\n") == 1
    assert votes_begun(unread)()


def test_a_reader_that_goes_ends_the_command_quietly(home):
    read, write = os.pipe()
    os.close(read)
    process = begin(home, "help", stdout=write)
    os.close(write)
    _, err = ended(process, 141)
    assert err == ""


def test_a_full_disk_names_the_file_and_leaves_nothing(home):
    """A limit on the size of files, at which writing fails as on a full disk."""
    (home / "big.jsonl").write_text(lines(POSTS, 6 * ROWS))
    before = bytes_in(home)

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))

    process = begin(home, "import_corpus", "c", "big.jsonl", "--licence", "CC0-1.0", preexec_fn=limited)
    ended(process, 1, "big.jsonl")
    assert bytes_in(home) == before


def test_output_into_a_full_disk_is_an_error_and_no_traceback(home):
    with open("/dev/full", "w") as full:
        ended(begin(home, "help", stdout=full), 1, "the disk is full")


def test_a_database_that_is_none_or_is_not_there_is_a_sentence(home, tmp_path):
    for url, message in (
        ("sqlite:////proc/no/such.sqlite3", "The database cannot be used"),
        (f"sqlite:///{ROOT / 'README.md'}", "The database cannot be used: file is not a database"),
        ("postgresql://nobody@127.0.0.1:1/x", "The database cannot be used"),
    ):
        done = assay(tmp_path, "audit", "x", DATABASE_URL=url)
        assert message in done.stderr
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)


def test_a_bar_is_on_a_terminal_alone_begins_at_once_and_never_before_a_refusal(unread):
    assert "prelabel:" in on_a_terminal(unread, "prelabel", "c", "--processes", "1")
    assert "prelabel:" not in on_a_terminal(unread, "prelabel", "c", "--k", "9" * 20)
    assert "import_corpus:" not in on_a_terminal(unread, "import_corpus", "c", "none.csv", "--licence", "CC0-1.0")


def on_a_terminal(folder, *words):
    """Return the terminal's output until the first votes are saved or the command ends."""
    ours, theirs = pty.openpty()
    process = begin(folder, *words, stderr=theirs, stdout=subprocess.DEVNULL)
    os.close(theirs)
    shown = b""
    while b"0%" not in shown:
        try:
            shown += os.read(ours, 4096)
        except OSError:  # the other end is closed: the command has ended
            break
    if process.poll() is None:
        assert not votes_begun(folder)(), "the bar begins before the first votes are there"
        os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=HANGING)
    os.close(ours)
    return shown.decode()
