"""prelabel: from a corpus to votes."""

import errno
import os
import subprocess

import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError

from corpora.core.detectors import DETECTORS
from corpora.core.masking import clean_for_detectors
from corpora.core.voters import DEFAULT, VOTERS
from corpora.storage.layout import corpus_dir, digest_of, manifest_of
from corpora.storage.schemas import votes_schema
from corpora.votes import vote_run as prelabelling
from corpora.votes.vote_worker import vote_on
from tests.corpora.conftest import POSTS
from tests.corpora.on_disk import bytes_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def prelabel(printed):
    return lambda name="c", **options: printed("prelabel", name, **{"processes": 1, **options})


@pytest.fixture
def corpus(write, import_corpus):
    import_corpus("c", write("a.jsonl", POSTS))


def votes():
    folder = corpus_dir("c") / "votes"
    return [row for part in manifest_of("c").votes for row in pq.read_table(folder / part.name).to_pylist()]


def test_every_post_gets_the_votes_that_the_detectors_give_and_the_manifest_names_them(corpus, prelabel):
    output = prelabel()
    rows = votes()
    assert [row["id"] for row in rows] == [post["id"] for post in POSTS]
    cleaned = [clean_for_detectors(post["text"]) for post in POSTS]
    for detector, detect in DETECTORS.items():
        stored = [[(vote["language"], vote["score"]) for vote in row[detector]] for row in rows]
        assert stored == [*detect(cleaned, 3).from_score(VOTERS[detector].min_score)]
    assert [row["fasttext"][0]["language"] for row in rows[:4]] == ["de", "en", "fr", "ru"]
    assert rows[4]["letters"] == 4
    # Mentions and URLs do not count as text.
    assert rows[5] == {"id": "6", "letters": 0, "langid": [], "cld2": [], "fasttext": []}
    assert "Corpus c: 6 posts have votes; for 4 (66.7%), all three detectors agree on the language." in output
    (part,) = manifest_of("c").votes
    assert (part.name, part.rows, part.k) == ("000001.parquet", 6, 3)
    assert tuple(part.versions) == DEFAULT.voters
    path = corpus_dir("c") / "votes" / part.name
    assert part.sha256 == digest_of(path)
    assert pq.read_schema(path).equals(votes_schema())


CUT_IN_A_MESSAGE = """
import multiprocessing.connection, os, signal, struct, sys
connection = multiprocessing.connection.Connection(int(sys.argv[1]))
connection.recv_bytes()
os.write(connection.fileno(), struct.pack("!i", 100) + b"the first of them")
os.kill(os.getpid(), signal.SIGTERM)
"""


def test_a_worker_that_ends_is_explained_by_its_signal_or_its_status(corpus, prelabel, monkeypatch):
    begin = subprocess.Popen
    with monkeypatch.context() as patch:
        patch.setattr(
            subprocess, "Popen", lambda command, **how: begin([*command[:3], CUT_IN_A_MESSAGE, command[-1]], **how)
        )
        with pytest.raises(CommandError, match=r"ended with signal 15.* To continue, run the command again"):
            prelabel(processes=2)
    monkeypatch.setattr(prelabelling, "vote_on", Ending())
    sentence = r"failed with status 3; .* Finished votes are saved"
    with pytest.raises(CommandError, match=sentence) as error:
        prelabel(processes=2)
    assert "memory" not in str(error.value)


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


def test_another_k_or_other_detectors_need_to_be_asked_for(corpus, prelabel, monkeypatch):
    prelabel()
    with pytest.raises(CommandError, match=r"votes with k = 3, not 2\. Add --again"):
        prelabel(k=2)
    prelabel(k=2, again=True)
    assert max(len(row["langid"]) for row in votes()) == 2
    monkeypatch.setattr("corpora.votes.vote_run.voter_versions", lambda voters: {**made().versions, "cld2": "9"})
    with pytest.raises(CommandError, match=r"cld2 0\.42, text in NFKC, scores from 0\.55 \(now 9\)\. Add --again"):
        prelabel(k=2)
    prelabel(k=2, again=True)
    assert made().versions["cld2"] == "9"
    assert len(list((corpus_dir("c") / "votes").iterdir())) == 1


def test_a_detector_has_no_vote_below_its_minimum_score(corpus, prelabel):
    prelabel()
    scores = {row["id"]: row["fasttext"][0]["score"] for row in votes() if row["fasttext"]}
    assert [version.rpartition(", ")[2] for version in made().versions.values()] == [
        "scores from 0.6",
        "scores from 0.55",
        "scores from 0.15",
    ]
    floor = sorted(scores.values())[1]
    with pytest.raises(CommandError, match=r"text in NFKC, scores from 0\.15 \(now .* Add --again"):
        prelabel(min_score=[f"fasttext={floor}"])
    unanimous = made().unanimous
    prelabel(min_score=[f"fasttext={floor}", "cld2=0"], again=True)
    assert {row["id"] for row in votes() if row["fasttext"]} == {key for key, score in scores.items() if score >= floor}
    assert made().unanimous == unanimous - 1
    assert made().versions["cld2"] == "0.42, text in NFKC"
    for wrong in ("cld2", "cld1=0.5", "cld2=2", "cld2=-1", "cld2=x"):
        with pytest.raises(
            CommandError, match=r"--min-score .* is not valid\. Write one of the detectors langid, cld2, fast"
        ):
            prelabel(min_score=[wrong], again=True)


def made():
    return manifest_of("c").votes[0]


def test_what_cannot_be_done_or_written_is_explained(corpus, prelabel, monkeypatch):
    for name, options, sentence in (
        ("none", {}, "The corpus 'none' does not exist"),
        ("c", {"k": 0}, "k is 0"),
        ("c", {"processes": 0}, "processes is 0"),
    ):
        with pytest.raises(CommandError, match=sentence):
            prelabel(name, **options)
    folder = corpus_dir("c") / "votes"

    def refused(voted, file):
        raise PermissionError(errno.EACCES, "Permission denied", str(file))

    with monkeypatch.context() as patch:
        patch.setattr("corpora.votes.vote_run._write", refused)
        with pytest.raises(CommandError, match=r"Cannot write to .*corpora/c: Permission denied\. The existing files"):
            prelabel()
    folder.rmdir()
    folder.write_text("a file")
    with pytest.raises(CommandError, match=r"Cannot write to .*corpora/c: File exists\. The existing files"):
        prelabel()


class Ending:
    """An object that ends whichever process unpickles it with status 3."""

    def __call__(self, k, posts): ...

    def __reduce__(self):
        return os._exit, (3,)


class StoppedHere(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_a_run_that_was_stopped_twice_goes_on_at_its_last_piece_and_ends_with_the_same_bytes(
    write, import_corpus, monkeypatch, processes
):
    for name in ("c", "whole"):
        for part, size in (("a", 95), ("b", 250), ("d", 40)):
            rows = [{"id": f"{part}{n}", "text": f"Das ist der Text {part} mit der Nummer {n}."} for n in range(size)]
            import_corpus(name, write(f"{part}.jsonl", rows))
    monkeypatch.setattr(prelabelling, "_CHUNK_ROWS", 10)
    monkeypatch.setattr(prelabelling, "PIECE_CHUNKS", 2)
    done, worked = [], []

    def stop_at(most):
        def progress(count):
            done.append(count)
            if sum(done) >= most:
                raise StoppedHere

        return progress

    def counted(k, voters, posts):
        worked.append(posts.num_rows)
        return vote_on(k, voters, posts)

    if processes == 1:
        monkeypatch.setattr(prelabelling, "vote_on", counted)
    for most in (95 + 80, 95 + 150):
        done.clear()
        with pytest.raises(StoppedHere):
            prelabelling.prelabel("c", processes=processes, progress=stop_at(most))
        assert len(manifest_of("c").votes) == 1
    done.clear()
    prelabelling.prelabel("c", processes=processes, progress=done.append)
    assert sum(done) == 385
    assert done[:2] == [95, 140], "what is kept: the first part, and the pieces of the second"
    assert sum(worked) < 385 + 2 * 2 * 10, "what stood in pieces was not done again"
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
