"""From a corpus to votes."""

import errno
import os
import subprocess

import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from corpora.core.detectors import DETECTORS
from corpora.core.masking import clean_for_detectors
from corpora.core.voters import VOTERS
from corpora.storage.layout import Manifest, corpus_dir, digest_of, manifest_of, write_manifest
from corpora.storage.schemas import votes_schema
from corpora.votes import vote_run as prelabelling
from corpora.votes.vote_worker import vote_on
from tests.corpora.conftest import POSTS
from tests.corpora.on_disk import bytes_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def prelabel(capsys):
    def run(name="c", **options):
        call_command("prelabel", name, **{"processes": 1, **options})
        return capsys.readouterr().out

    return run


@pytest.fixture
def corpus(write, import_corpus):
    import_corpus("c", write("a.jsonl", POSTS))


def votes():
    folder = corpus_dir("c") / "votes"
    return [row for part in manifest_of("c").votes for row in pq.read_table(folder / part.name).to_pylist()]


def test_every_post_gets_the_votes_that_the_detectors_give(corpus, prelabel):
    said = prelabel()
    rows = votes()
    assert [row["id"] for row in rows] == [post["id"] for post in POSTS]
    cleaned = [clean_for_detectors(post["text"]) for post in POSTS]
    for detector, detect in DETECTORS.items():
        stored = [[(vote["language"], vote["score"]) for vote in row[detector]] for row in rows]
        assert stored == [*detect(cleaned, 3)]
    assert [row["fasttext"][0]["language"] for row in rows[:4]] == ["de", "en", "fr", "ru"]
    assert "Corpus c: 6 posts have votes; on 4 (66.7%) all three detectors name the same language." in said


CUT_IN_A_MESSAGE = """
import multiprocessing.connection, os, signal, struct, sys
connection = multiprocessing.connection.Connection(int(sys.argv[1]))
connection.recv_bytes()
os.write(connection.fileno(), struct.pack("!i", 100) + b"the first of them")
os.kill(os.getpid(), signal.SIGTERM)
"""


def test_a_worker_that_ends_in_the_middle_of_what_it_says_is_explained(corpus, prelabel, monkeypatch):
    begin = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda command, **how: begin([*command[:3], CUT_IN_A_MESSAGE, command[-1]], **how)
    )
    with pytest.raises(CommandError, match="was ended by the signal 15"):
        prelabel(processes=2)


def test_one_post_is_spoken_of_as_one(write, import_corpus, prelabel):
    import_corpus("c", write("a.jsonl", POSTS[:1]))
    assert "Corpus c: 1 post has votes; on 1 (100.0%)" in prelabel()


def test_a_post_of_mentions_and_addresses_alone_has_no_votes(corpus, prelabel):
    prelabel()
    assert votes()[5] == {"id": "6", "letters": 0, "langid": [], "cld2": [], "fasttext": []}
    assert votes()[4]["letters"] == 4


def test_the_manifest_says_by_what_the_votes_were_made(corpus, prelabel):
    prelabel(k=2)
    (made,) = manifest_of("c").votes
    assert (made.name, made.rows, made.k) == ("000001.parquet", 6, 2)
    assert tuple(made.versions) == tuple(VOTERS)
    path = corpus_dir("c") / "votes" / made.name
    assert made.sha256 == digest_of(path)
    assert pq.read_schema(path).equals(votes_schema())


def test_run_again_nothing_changes_and_only_new_parts_are_done(corpus, prelabel, write, import_corpus):
    prelabel()
    before = bytes_of()
    prelabel()
    assert bytes_of() == before
    import_corpus("c", write("b.jsonl", [{"id": "new", "text": "Noch ein Satz auf Deutsch."}]))
    assert len(manifest_of("c").votes) == 1
    prelabel()
    assert bytes_of()["votes/000001.parquet"] == before["votes/000001.parquet"]
    assert [row["id"] for row in votes()][6:] == ["new"]


def test_on_several_processes_the_bytes_are_the_same(corpus, prelabel):
    prelabel()
    alone = bytes_of()
    (corpus_dir("c") / "votes" / "000001.parquet").unlink()
    manifest = manifest_of("c")
    write_manifest("c", Manifest(**{**vars(manifest), "votes": ()}))
    prelabel(processes=2)
    assert bytes_of() == alone


def test_another_k_or_other_detectors_need_to_be_asked_for(corpus, prelabel, monkeypatch):
    prelabel()
    with pytest.raises(CommandError, match=r"votes with k = 3, not 2\. Do them anew with --again"):
        prelabel(k=2)
    prelabel(k=2, again=True)
    assert max(len(row["langid"]) for row in votes()) == 2
    monkeypatch.setattr("corpora.votes.vote_run.voter_versions", lambda: {**made().versions, "cld2": "9"})
    with pytest.raises(CommandError, match=r"votes by cld2 0\.42 \(now 9\)\. Do them anew"):
        prelabel(k=2)
    prelabel(k=2, again=True)
    assert made().versions["cld2"] == "9"
    assert len(list((corpus_dir("c") / "votes").iterdir())) == 1


def made():
    return manifest_of("c").votes[0]


def test_votes_that_cannot_be_written_are_explained(corpus, prelabel, monkeypatch):
    folder = corpus_dir("c") / "votes"

    def refused(voted, file):
        raise PermissionError(errno.EACCES, "Permission denied", str(file))

    with monkeypatch.context() as patch:
        patch.setattr("corpora.votes.vote_run._write", refused)
        with pytest.raises(CommandError, match=r"corpora/c cannot be written: Permission denied\. What was there"):
            prelabel()
    folder.rmdir()
    folder.write_text("a file")
    with pytest.raises(CommandError, match=r"corpora/c cannot be written: File exists\. What was there"):
        prelabel()


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [("none", {}, "There is no corpus 'none'"), ("c", {"k": 0}, "k is 0"), ("c", {"processes": 0}, "processes is 0")],
)
def test_what_cannot_be_done_is_explained(corpus, prelabel, name, options, sentence):
    with pytest.raises(CommandError, match=sentence):
        prelabel(name, **options)


class Ending:
    """Whichever process unpickles it ends with the status 3."""

    def __call__(self, k, posts): ...

    def __reduce__(self):
        return os._exit, (3,)


def test_a_process_that_ends_by_itself_is_not_said_to_lack_memory(corpus, prelabel, monkeypatch):
    monkeypatch.setattr(prelabelling, "vote_on", Ending())
    with pytest.raises(
        CommandError, match=r"was ended by a fault of its own \(status 3\), .* What is done is kept"
    ) as told:
        prelabel(processes=2)
    assert "memory" not in str(told.value)


class StoppedHere(Exception):
    pass


def test_a_part_that_was_stopped_goes_on_at_its_last_piece_and_ends_with_the_same_bytes(
    write, import_corpus, monkeypatch
):
    rows = [{"id": str(n), "text": f"Das ist der Text mit der Nummer {n}."} for n in range(700)]
    for name in ("c", "whole"):
        import_corpus(name, write("a.jsonl", rows))
    monkeypatch.setattr(prelabelling, "_CHUNK_ROWS", 30)
    monkeypatch.setattr(prelabelling, "PIECE_CHUNKS", 4)
    told, worked = [], []

    def stop_at(most):
        def progress(count):
            told.append(count)
            if sum(told) >= most:
                raise StoppedHere

        return progress

    def counted(k, voters, posts):
        worked.append(posts.num_rows)
        return vote_on(k, voters, posts)

    monkeypatch.setattr(prelabelling, "vote_on", counted)
    for most in (300, 600):
        told.clear()
        with pytest.raises(StoppedHere):
            prelabelling.prelabel("c", processes=1, progress=stop_at(most))
        assert not manifest_of("c").votes
    told.clear()
    prelabelling.prelabel("c", processes=1, progress=told.append)
    assert sum(told) == 700
    assert sum(worked) < 700 + 2 * 4 * 30, "what stood in pieces was not done again"
    prelabelling.prelabel("whole", processes=1)
    assert bytes_of("c") == bytes_of("whole")


def test_several_parts_on_several_processes_stopped_in_the_second_end_with_the_same_bytes(
    write, import_corpus, monkeypatch
):
    for name in ("c", "whole"):
        for part, size in (("a", 95), ("b", 250), ("d", 40)):
            rows = [{"id": f"{part}{n}", "text": f"Das ist der Text {part} mit der Nummer {n}."} for n in range(size)]
            import_corpus(name, write(f"{part}.jsonl", rows))
    monkeypatch.setattr(prelabelling, "_CHUNK_ROWS", 10)
    monkeypatch.setattr(prelabelling, "PIECE_CHUNKS", 2)

    def stop(count):
        told.append(count)
        if sum(told) >= 95 + 150:
            raise StoppedHere

    told = []
    with pytest.raises(StoppedHere):
        prelabelling.prelabel("c", processes=2, progress=stop)
    assert len(manifest_of("c").votes) == 1
    told = []
    prelabelling.prelabel("c", processes=2, progress=told.append)
    assert sum(told) == 385
    assert told[:2] == [95, 140], "what is kept: the first part, and the pieces of the second"
    prelabelling.prelabel("whole", processes=1)
    assert bytes_of("c") == bytes_of("whole")


@pytest.mark.parametrize(("k", "rows_in_a_chunk"), [(2, 10), (1, 20)])
def test_pieces_made_otherwise_are_not_taken(write, import_corpus, monkeypatch, k, rows_in_a_chunk):
    rows = [{"id": str(n), "text": f"Das ist der Text mit der Nummer {n}."} for n in range(60)]
    for name in ("c", "whole"):
        import_corpus(name, write("a.jsonl", rows))
    monkeypatch.setattr(prelabelling, "_CHUNK_ROWS", 10)
    monkeypatch.setattr(prelabelling, "PIECE_CHUNKS", 1)

    def stop(count):
        if list((corpus_dir("c") / "voting").glob("*/*.arrow")):
            raise StoppedHere

    with pytest.raises(StoppedHere):
        prelabelling.prelabel("c", k=1, processes=1, progress=stop)
    monkeypatch.setattr(prelabelling, "_CHUNK_ROWS", rows_in_a_chunk)
    for name in ("c", "whole"):
        prelabelling.prelabel(name, k=k, processes=1)
    assert bytes_of("c") == bytes_of("whole")
