"""import_threads: from messages with replies, or lists of turns, to a corpus of pairs."""

import json
import random
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.core.detectors import detect_fasttext
from corpora.core.records import RecordError
from corpora.engines import open_store
from corpora.models import Corpus
from corpora.storage.layout import corpus_dir, manifest_of
from corpora.threads.messages import matches_language, pair_text, read_message, read_turns
from corpora.threads.thread_import import find_cycles
from tests.annotate.corpus import POSTS
from tests.corpora.on_disk import bytes_of, posts, rejects

FIXTURES = POSTS.parent
THREADS, MESSAGES = FIXTURES / "chatterbot" / "threads.jsonl", FIXTURES / "oasst1" / "messages.jsonl"
ASKED = "What is the largest ocean in the world?"
SAID = "The Pacific Ocean is the largest ocean in the world."
TALK = [
    {"id": "a", "parent_id": None, "text": ASKED, "thread": "t"},
    {"id": "b", "parent_id": "a", "text": SAID, "thread": "t"},
    {"id": "c", "parent_id": "b", "text": "Thank you very much, that is what I wanted to know.", "thread": "t"},
]


@pytest.fixture
def importing(printed):
    def run(*files, name="c", licence="CC0-1.0", **options):
        return printed("import_threads", name, *files, licence=licence, **options)

    return run


def message(key, parent, text=SAID, **more):
    return {"id": key, "parent_id": parent, "text": text, **more}


def left_out(name="c"):
    file = corpus_dir(name) / "left_out" / manifest_of(name).threads.file
    return {row["id"]: row["reason"] for row in pq.read_table(file).to_pylist()}


def test_each_message_and_the_one_that_it_answers_are_a_pair(importing, write):
    output = importing(write("talk.jsonl", TALK))
    first, second = posts()
    assert (first["id"], first["message_id"], first["message"], first["reply"]) == ("b", "a", ASKED, SAID)
    assert (first["thread"], first["language"], first["text"]) == ("t", "en", f"{ASKED}\n{SAID}")
    assert float(first["certainty"]) > 0.7
    assert (second["id"], second["message"]) == ("c", SAID)
    assert "Corpus c: 2 pairs from 1 file; 0 duplicate messages dropped, 0 rows rejected." in output
    assert Corpus.objects.filter(name="c").exists()


def test_messages_may_come_in_any_order_and_format_in_several_files_and_under_other_names(importing, write, tmp_path):
    backwards = TALK[::-1]
    pq.write_table(pa.Table.from_pylist(backwards), tmp_path / "talk.parquet")
    lines = ["id,parent_id,text", *(f'{row["id"]},{row["parent_id"] or ""},"{row["text"]}"' for row in TALK)]
    importing(tmp_path / "talk.parquet", name="parquet")
    importing(write("talk.csv", "\n".join(lines) + "\n"), name="csv")
    importing(write("1.jsonl", TALK[2:]), write("2.jsonl", TALK[:2]), name="two")
    pairs = {(row["id"], row["message"], row["reply"]) for row in posts("parquet")}
    assert len(pairs) == 2
    for name in ("csv", "two"):
        assert {(row["id"], row["message"], row["reply"]) for row in posts(name)} == pairs
    assert [source.accepted for source in manifest_of("two").sources] == [1, 1]
    # Ids may be numbers, or names in Reddit's form.
    rows = [("1", "t3_post", ASKED), (2, "t1_1", SAID), ("t1_x", 2, SAID)]
    rows = [{"name": key, "reply_to": parent, "body": text} for key, parent, text in rows]
    importing(write("talk.jsonl", rows), name="reddit", column=["id=name", "parent_id=reply_to", "text=body"])
    assert [(row["message_id"], row["id"]) for row in posts("reddit")] == [("1", "2"), ("2", "x")]
    rows = [{"thread": "x/1", "turns": [ASKED, SAID, "Thank you very much, my friend.", "[removed]"], "language": "en"}]
    importing(write("turns.jsonl", rows), name="turns")
    assert [(row["thread"], row["message_id"], row["id"]) for row in posts("turns")] == [
        ("x/1", "x/1#1", "x/1#2"),
        ("x/1", "x/1#2", "x/1#3"),
    ]


def test_what_is_left_out_is_listed_with_the_first_reason_that_applies(importing, write):
    expected = {
        **dict.fromkeys(("gone", "below", "removed", "deleted"), "deleted"),
        **dict.fromkeys(("low", "under low"), "low"),
        **dict.fromkeys(("empty", "none", "gap"), "empty"),
        **{"short": "uncertain", "lost": "unknown_parent"},
    }
    rows = [
        TALK[0] | {"parent_id": "nan", "thread": float("nan")},  # as pandas writes missing values
        TALK[1] | {"score": 1},
        TALK[2],
        message("gone", "a", "A secret that somebody has taken back.", deleted=True, score=-4),
        message("below", "gone", score=0),
        message("removed", "a", "  [removed] by a moderator"),
        message("deleted", "a", "[ Deleted by user ]"),
        message("low", "a", score=0.5),
        message("under low", "low", "\u200b \n"),
        message("empty", "a", " \n\u200b"),
        message("none", "a", None),
        message("gap", "a", "<NA>"),
        message("short", "numbers", "7 x 9 = 63 ; a.b(c) { 1, 2, 3 } ##"),
        message("lost", "nowhere"),
        message("numbers", None, "12 34 56"),
    ]
    output = importing(write("talk.jsonl", rows))
    assert left_out() == expected
    assert [row["id"] for row in posts()] == ["b", "c"]
    threads = manifest_of("c").threads
    assert threads.left_out == Counter(expected.values())
    assert (threads.messages, threads.replies) == (15, 13)
    for line in (
        "begins a thread 2",
        "answers a message that is not in the files, and so is no pair 1",
        "the message or reply was deleted or removed 4",
    ):
        assert line in [" ".join(words.split()) for words in output.splitlines()]
    assert all(b"taken back" not in content for content in bytes_of().values())
    rows = [*TALK, message("m", None, "Hola"), message("n", "m", "amigo, ok")]
    for name, certainty in (("strict", "0.99"), ("all", "0")):
        importing(write("talk.jsonl", rows), name=name, least_certainty=certainty)
    assert len(posts("strict")) < len(posts("all")) == 3


def test_pairs_are_dropped_whose_reply_is_outside_the_dates_of_its_language(importing, write):
    danke = "Vielen Dank, das ist genau das, was ich wissen wollte."
    days = {
        "early": "2017-12-31",
        "first": 1514764800,
        "last": "2018-12-31T23:59:59Z",
        "late": "2019-01-01",
        "no": None,
    }
    rows = [*TALK[:1], *(message(key, "a", posted_at=day) for key, day in days.items())]
    rows += [message("deutsch", None, danke), message("alt", "deutsch", danke, posted_at="2010-05-01")]
    file = write("talk.jsonl", rows)
    options = {"from": ["2010-01-01", "en=2018-01-01"], "until": ["en=2019-01-01"]}
    output = importing(file, **options)
    assert [row["id"] for row in posts()] == ["first", "last", "alt"]
    assert left_out() == dict.fromkeys(("early", "late", "no"), "outside_dates")
    assert "the reply is outside the dates of its language, or has no date 3" in " ".join(output.split())
    assert manifest_of("c").threads.dates == {
        "from": {"": "2010-01-01", "en": "2018-01-01"},
        "until": {"en": "2019-01-01"},
    }
    assert "no new files" in importing(file, **options)
    with pytest.raises(CommandError, match="was created with other dates in --from and --until"):
        importing(file)
    with pytest.raises(CommandError, match=r"--from is 'xx=2018'\. Write a day such as 2018-01-01, or a language"):
        importing(file, name="other", **{"from": ["xx=2018"]})


def test_entities_of_html_are_decoded_if_that_is_asked_for(importing, write):
    rows = [TALK[0], message("b", "a", "Tom &amp; Jerry&#39;s &gt; &amp;amp; said: the Pacific Ocean is the largest")]
    importing(write("t.jsonl", rows))
    importing(write("t.jsonl", rows), name="d", unescape=True)
    assert [posts(name)[0]["reply"][:24] for name in "cd"] == ["Tom &amp; Jerry&#39;s &g", "Tom & Jerry's > &amp; sa"]
    with pytest.raises(CommandError, match="Corpus d was created with --unescape"):
        importing(write("t.jsonl", rows), name="d")


def test_repeated_pairs_stay_and_repeated_messages_do_not(importing, write):
    rows = [*TALK, message("d", "a"), message("e", "a"), TALK[1], message("c", "a", "Something else.")]
    output = importing(write("talk.jsonl", rows), max_rejects="50%")
    assert [row["id"] for row in posts() if row["reply"] == SAID] == ["b", "d", "e"]
    assert "1 duplicate message dropped, 1 row rejected, listed in" in output
    assert [(row["line"], row["reason"]) for row in rejects()] == [
        (7, "The id c already occurred with a different message. The first one is kept.")
    ]


def test_messages_that_answer_one_another_are_no_pairs_but_those_that_answer_them_are(importing, write):
    circle = [message("1", "3"), message("2", "1"), message("3", "2"), message("self", "self")]
    rows = [*TALK, *circle, message("tail", "2"), message("end", "tail")]
    importing(write("talk.jsonl", rows))
    assert left_out() == {"1": "circle", "2": "circle", "3": "circle", "self": "circle"}
    assert [row["id"] for row in posts()] == ["b", "c", "tail", "end"]


def cycles_of(parents):
    """Return the messages in cycles, found by following the parents of each message."""
    members = set()
    for start in parents:
        node = parents.get(start)
        for _ in parents:
            if node == start:
                members.add(start)
            node = parents.get(node)
    return members


@pytest.mark.slow
def test_the_cycles_are_those_that_walking_finds(data_dir):
    @settings(max_examples=15)
    @given(st.dictionaries(st.integers(0, 12), st.integers(-1, 14), max_size=12))
    def check(parents):
        messages = [{"id": str(key), "parent": str(parent)} for key, parent in parents.items()]
        schema = pa.schema([("id", pa.string()), ("parent", pa.string())])
        with open_store("nothing") as store:
            store.rows("messages", pa.Table.from_pylist(messages, schema=schema))
            find_cycles(store)
            assert {int(row["id"]) for row in store.fetch("messages_in_cycles")} == cycles_of(parents)

    check()


@pytest.mark.slow
def test_a_thread_of_100_000_messages_is_imported(importing, tmp_path):
    path = tmp_path / "long.jsonl"
    numbers = list(range(100_000))
    random.Random(1).shuffle(numbers)
    with path.open("w") as file:
        for number in numbers:
            text = ASKED if number < 3 else "12 34"
            row = {"id": number, "parent_id": number - 1 if number else None, "text": text, "thread": "t"}
            file.write(json.dumps(row) + "\n")
    importing(path)
    threads = manifest_of("c").threads
    assert (threads.messages, threads.replies, "circle" in threads.left_out) == (100_000, 99_999, False)
    assert threads.left_out["uncertain"] + len(posts()) == 99_999


def test_the_same_files_again_change_nothing_and_others_need_a_corpus_of_their_own(importing, write):
    path = write("talk.jsonl", TALK)
    importing(path)
    Corpus.objects.all().delete()  # as if the connection to the database had been lost before the end
    before = bytes_of()
    assert "Corpus c: no new files; it contains 2 pairs." in importing(path)
    assert Corpus.objects.get().name == "c"
    more = write("more.jsonl", TALK[:2])
    for files, options, sentence in (
        ([more], {}, r"c was already created from talk.jsonl.* imported in one call.* another corpus"),
        ([path], {"least_certainty": "0.9"}, r"created with --least-certainty 0.7, not 0.9. Create another corpus"),
        ([more, more], {"name": "d"}, r"more.jsonl occurs twice, or another file has the same content"),
    ):
        with pytest.raises(CommandError, match=sentence):
            importing(*files, **options)
    assert bytes_of() == before


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([message("a", None)], "None of the messages is a reply .*--column parent_id=COLUMN"),
        ([message("a", "b")], "The only reply was omitted .answers a message that is not in"),
        ([message("a", "b", score="many")], "line 1: The score 'many' is not a number. Leave the cell empty"),
        ([message("a", "b", deleted="perhaps")], "'perhaps'. It must be true or false"),
        ([message("a", ["b"])], "The parent_id is a list"),
        ([message("a", 1.5)], "The parent_id is a number. It must be a string or an integer"),
        ([message("1e5", None)], "1e5 is a number that another program has rewritten"),
        ([message("a", None, 7)], "The text is a number. It must be a string"),
        ([{"thread": "t", "turns": "Hello"}], "The turns are a string. They must be a list of strings"),
        ([{"thread": "t", "turns": ["Hello", 3]}], "The text is a number"),
        ([{"thread": None, "turns": ["Hello"]}], "The thread is missing"),
        ([{"thread": "nan", "turns": ["Hello"]}], "The thread is nan, .* missing value. Each thread must have an id"),
        ([{"id": "a", "text": "Hello"}], "has no column parent_id. Its columns are: id, text"),
    ],
)
def test_what_is_no_message_is_refused_in_one_sentence_and_nothing_is_made(importing, write, rows, why):
    with pytest.raises(CommandError, match=why):
        importing(write("talk.jsonl", rows))
    assert not (corpus_dir("c") / "manifest.json").exists()
    assert not Corpus.objects.exists()


def test_the_languages_that_the_files_name_are_compared_and_a_wrong_folder_is_called_out(importing):
    output = importing(THREADS, licence="BSD-3-Clause", text_may_leave=True, column=["language=folder"])
    assert Counter(row["language"] for row in posts())["sv"] == 22
    assert "Of 105 pairs that the files name as sv, 83 are in other languages, 83 of them in en." in output
    assert output.count(" pairs that the files name as ") == 1
    rows = {line.split()[0]: line.split() for line in output.splitlines() if line.strip()}
    assert rows["sv"][1:] == ["Swedish", "105", "22", "21.0%", "en", "83"]
    # Chinese is declared as of Taiwan or of the mainland, and detected as Chinese.
    assert rows["zh-TW"][-1] == rows["zh-CN"][-1] == "100.0%"


def test_a_language_stands_in_one_row_however_the_files_write_it_and_an_unknown_code_is_reported(importing, write):
    codes = ["en", "eng", "en_GB", "EN", "iw", "xx", "germann", "und"]
    rows = [message(code, None, ASKED, language=code) for code in codes]
    rows += [message(f"{code}2", code, language=code) for code in codes]
    output = importing(write("talk.jsonl", rows))
    table = {line.split()[0]: line.split()[1:] for line in output.splitlines() if "100.0%" in line or "0.0%" in line}
    assert table["en"] == ["English", "4", "4", "100.0%"]
    assert set(table) == {"en", "he", "xx", "germann"}
    assert "The language 'xx' of 1 pair is not a known language code; write a code such as de or zh-CN." in output
    assert "The language 'germann' of 1 pair is not a known language code; did you mean de (German)?" in output
    assert "Of 1 pair that the files name as he, 1 is in another language, en." in output
    declared = [
        ("en", "en"),
        ("EN", "en"),
        ("nb", "no"),
        ("zh-TW", "zh"),
        ("zh", "zh"),
        ("sv", "en"),
        ("Klingon", "en"),
    ]
    assert [matches_language(*pair) for pair in declared] == [True] * 5 + [False] * 2


def test_the_language_is_found_in_both_sides_as_they_are(importing):
    importing(MESSAGES, licence="Apache-2.0", text_may_leave=True)
    rows = posts()
    detected = detect_fasttext([pair_text(row["message"], row["reply"]) for row in rows], 1)
    for row, [(language, score)] in zip(rows, detected, strict=True):
        assert (row["language"], float(row["certainty"])) == (language, pytest.approx(score, abs=1e-6))
    threads = manifest_of("c").threads
    assert (threads.messages, threads.replies, len(rows)) == (298, 269, 239)
    assert threads.left_out == {"deleted": 4, "uncertain": 26}


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5), max_size=6))
def test_every_turn_but_the_first_answers_the_one_before(turns):
    read = list(read_turns({"thread": "t", "turns": turns}))
    assert [turn.parent for turn in read] == ["", *(turn.id for turn in read[:-1])][: len(read)]
    assert len({turn.id for turn in read}) == len(turns)


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_both_sides_are_read_on_one_line(message, reply):
    assert len(pair_text(message, reply).splitlines()) <= 1
    assert "  " not in pair_text(message, reply)


def test_an_author_is_hashed_and_a_surrogate_refused():
    read = read_message(message("a", None, author="Ann"), b"key")
    assert len(read.author) == 32
    assert "Ann" not in read
    with pytest.raises(RecordError, match="surrogate"):
        read_message(message("a", None, "\ud800"), b"key")
