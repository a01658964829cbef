"""export_pairs: the exported pairs, their random splits, and the frequent replies."""

import hashlib
import json
import math
import re
from collections import Counter
from itertools import product
from operator import itemgetter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset
from django.core.management import CommandError
from hypothesis import given
from hypothesis import strategies as st

from annotate.actions.registry import call_command
from annotate.goldsets.set_folder import manifest_of
from corpora.engines import open_store
from corpora.threads.messages import cell
from corpora.threads.pair_sets import SPLITS, Plan, draw_splits
from tests.annotate.corpus import POSTS

pytestmark = [pytest.mark.django_db, pytest.mark.on_sqlite, pytest.mark.slow]

FIXTURES = POSTS.parent
OCEAN = "What is the largest ocean in the world?"
PACIFIC = "The Pacific Ocean is the largest ocean in the world."
THANKS, YES = "Thank you very much for the answer.", "Yes, that is what I wanted to know."


@pytest.fixture
def pairs_of(tmp_path, capsys):
    """Makes a corpus of these messages."""

    def run(messages, name="talk", **options):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in messages), encoding="utf-8")
        call_command("import_threads", name, str(path), **{"licence": "CC0-1.0", **options})
        capsys.readouterr()
        return name

    return run


@pytest.fixture
def chatterbot(capsys):
    how = {"licence": "BSD-3-Clause", "text_may_leave": True, "column": ["language=folder"]}
    call_command("import_threads", "chatterbot", str(FIXTURES / "chatterbot" / "threads.jsonl"), **how)
    capsys.readouterr()
    return "chatterbot"


@pytest.fixture
def exporting(tmp_path, capsys):
    """Export to a folder; return the folder and the output."""

    def run(corpus, out="out", **options):
        call_command("export_pairs", corpus, out=str(tmp_path / out), **{"seed": "s", **options})
        captured = capsys.readouterr()
        return tmp_path / out, captured.out + captured.err

    return run


def talk(replies, message=OCEAN, thread="t"):
    """A message and the replies to it."""
    rows = [{"id": f"{thread}{n}", "parent_id": f"{thread}0", "text": text} for n, text in enumerate(replies, 1)]
    return [row | {"thread": thread} for row in ({"id": f"{thread}0", "parent_id": None, "text": message}, *rows)]


def published(folder, splits=SPLITS):
    """(split, language, message, reply) as the published converter reads them: exactly four cells a line."""
    for split in splits:
        for path in sorted((folder / split).glob("*/*.tsv*")):
            with path.open(encoding="utf-8") as lines:
                for line in lines:
                    message, reply, _, _ = line.strip().split("\t")
                    yield split, path.parent.name, message, reply


def response_set(folder):
    return [line.split("\t") for line in (folder / "rsp_set/en/response_lm_cluster.txt").read_text().splitlines()]


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def test_the_set_is_read_by_the_published_reader_parquet_and_the_datasets_library(chatterbot, exporting, tmp_path):
    folder, output = exporting(chatterbot)
    rows = lines(folder / "pairs.jsonl")
    read = list(published(folder))
    assert Counter(read) == Counter((r["split"], r["language"], cell(r["message"]), cell(r["reply"])) for r in rows)
    # No message is in two splits, in whatever language.
    assert len({(split, message) for split, _, message, _ in read}) == len({message for _, _, message, _ in read})
    assert f"{len(rows):,} pairs in " in output
    # The retrieval reader looks for valid under another name too, and takes the first two cells of every file.
    assert Counter(published(folder, ["gmr_valid"])).total() == sum(row["split"] == "valid" for row in rows)
    [first, *_] = (folder / "test" / "en" / "pairs.tsv").read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(r"[^\t]+\t[^\t]+\ten\t[01]\.\d{4}", first)
    stored = [row for split in SPLITS for row in pq.read_table(folder / f"pairs.{split}.parquet").to_pylist()]
    assert sorted(({**row, "scores": {}} for row in stored), key=itemgetter("id")) == sorted(rows, key=itemgetter("id"))
    loaded = load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert set(loaded) == {"train", "validation", "test"}
    for name, split in zip(loaded, SPLITS, strict=True):
        part = [(row["id"], row["message"]) for row in rows if row["split"] == split]
        assert list(zip(loaded[name]["id"][:], loaded[name]["message"][:], strict=True)) == part


def test_each_language_has_its_shares_every_file_its_digest_and_each_seed_its_splits(chatterbot, exporting):
    folder, _ = exporting(chatterbot)
    rows, manifest = lines(folder / "pairs.jsonl"), manifest_of(folder)
    for row in manifest["languages"]:
        pairs = [pair for pair in rows if pair["language"] == row["language"]]
        largest = max(Counter(cell(pair["message"]) for pair in rows).values())
        for split, share in zip(SPLITS, (0.8, 0.1, 0.1), strict=True):
            assert row[split] == sum(pair["split"] == split for pair in pairs)
            # Except for the message on a border.
            assert abs(row[split] - share * len(pairs)) <= largest + 1
    sums = dict(line.split("  ")[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    content = content_of(folder)
    assert content.keys() - sums.keys() == {"SHA256SUMS", "README.md", "manifest.json"}
    assert sums == {name: hashlib.sha256(content[name]).hexdigest() for name in sums}
    assert (manifest["made_by"], manifest["files"].keys()) == ("export_pairs", {"README.md", "SHA256SUMS"})
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "Of 105 pairs that the files name as sv, 83 are in other languages, 83 of them in en." in card
    assert "No scores were imported, so toxic pairs were not removed." in card
    assert content_of(exporting(chatterbot, "again")[0]) == content
    other, _ = exporting(chatterbot, "other", seed="b")
    assert Counter(published(folder)) != Counter(published(other))
    half, _ = exporting(chatterbot, "half", splits="50 0 50")
    counts = Counter(row["split"] for row in lines(half / "pairs.jsonl"))
    assert counts["valid"] == 0
    assert abs(counts["train"] - counts["test"]) < 30


def content_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


EXPORTED = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("uvwxyz"), st.sampled_from(["en", "de", "fa"])), max_size=40
)


@pytest.mark.parametrize("apart", ["message", "thread"])
def test_messages_or_threads_are_never_split_whatever_the_shares(apart):
    @given(EXPORTED, st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any))
    def check(rows, shares):
        listed = [
            {"id": str(n), "message_digest": message, "thread": thread, "language": language}
            for n, (message, thread, language) in enumerate(rows)
        ]
        schema = pa.schema([(name, pa.string()) for name in ("id", "message_digest", "thread", "language")])
        with open_store("nothing") as store:
            store.rows("exported", pa.Table.from_pylist(listed, schema=schema))
            draw_splits(store, "nothing", Plan("s", tuple(shares), apart=apart))
            placed = store.connection.sql("SELECT message_digest, thread, split FROM placed").fetchall()
        assert len(placed) == len(rows)
        for place in (0, 1) if apart == "thread" else (0,):
            groups = {}
            for row in placed:
                groups.setdefault(row[place], set()).add(row[2])
            assert all(len(splits) == 1 for splits in groups.values())
        assert {row[2] for row in placed} <= {split for split, part in zip(SPLITS, shares, strict=True) if part}

    check()


def test_whole_threads_are_kept_apart_with_those_that_share_a_message(pairs_of, exporting):
    threads = [
        row
        for n in range(12)
        for row in talk([f"{PACIFIC} It has {n} parts."], f"{OCEAN} {n // 2 if n < 6 else n}", f"t{n}-")
    ]
    folder, _ = exporting(pairs_of(threads), apart="thread", splits="50 25 25")
    rows = lines(folder / "pairs.jsonl")
    assert len(rows) == 12
    for place in ("thread", "message"):
        assert len({(row[place], row["split"]) for row in rows}) == len({row[place] for row in rows})
    assert len({row["split"] for row in rows}) == 3
    nameless = [{**row, "thread": ""} for row in talk([PACIFIC])]
    with pytest.raises(
        CommandError, match=r"have no thread, so --apart thread is not possible.* --column thread=COLUMN"
    ):
        exporting(pairs_of(nameless, "nameless"), "other", apart="thread")


def test_tabs_and_breaks_become_a_space_and_break_no_file(pairs_of, exporting):
    hard = ["\t", "\n", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\ufeff", " \t \n "]
    messages = []
    for n, (one, other) in enumerate(product(hard, hard)):
        reply = f"{other}It is{one}the Pacific Ocean{other}"
        messages += talk([reply], f"{other}What is the largest{one}ocean?", f"{n}-")
    folder, _ = exporting(pairs_of(messages))
    read = list(published(folder))
    assert len(read) == len(hard) ** 2
    assert {(message, reply) for _, _, message, reply in read} == {
        ("What is the largest ocean?", "It is the Pacific Ocean")
    }
    # Equal as exported, so in one split. The other files have the original texts.
    assert len({split for split, *_ in read}) == 1
    assert "\nWhat is the largest\u2028ocean?" in {row["message"] for row in lines(folder / "pairs.jsonl")}


def test_the_response_set_has_the_frequent_replies_with_their_share_and_rank(pairs_of, exporting):
    replies = [THANKS] * 4 + [YES] * 3 + [PACIFIC] * 2 + [f"{THANKS}\n", "I do not know what you mean by this."]
    name = pairs_of(talk(replies))
    folder, output = exporting(name, least="2")
    rows = response_set(folder)
    assert [(reply, rank) for _, reply, rank in rows] == [(THANKS, "1"), (YES, "2"), (PACIFIC, "3")]
    assert [round(11 * math.exp(float(score))) for score, *_ in rows] == [5, 3, 2]
    assert (folder / "rsp_map/en/response.mapping.txt").read_text().splitlines()[1] == f"{YES}\t{YES}"
    assert "3 replies in the response set" in output
    folder, output = exporting(name, "most", least="2", most="1")
    assert "1 reply in the response set" in output
    folder, _ = exporting(name, "none")
    assert not (folder / "rsp_set").exists()


def test_the_response_set_may_be_of_train_alone(chatterbot, exporting):
    folder, _ = exporting(chatterbot, of="train", least="3")
    seen = Counter((language, reply) for split, language, _, reply in published(folder) if split == "train")
    listed = {
        (path.parent.name, line.split("\t")[1])
        for path in (folder / "rsp_set").glob("*/*")
        for line in path.read_text(encoding="utf-8").splitlines()
    }
    assert listed == {reply for reply, pairs in seen.items() if pairs >= 3}
    assert listed


def test_a_manager_may_strike_out_replies_with_a_reason(pairs_of, exporting, tmp_path):
    name = pairs_of(talk([THANKS] * 3 + [YES] * 3))
    strike = tmp_path / "strike.tsv"
    strike.write_text(f"en\t{THANKS}\tempty politeness\nde\t{YES}\tnot here\nNobody says this.\tno\n", encoding="utf-8")
    folder, output = exporting(name, least="2", strike=str(strike))
    assert (folder / "struck.tsv").read_text() == f"en\t{THANKS}\t3\tempty politeness\n"
    assert "1 reply in the response set" in output
    assert re.search(
        r"Note: 2 replies in .* in the response set anyway, for example in line 2: Yes, that is what", output
    )


def test_replies_are_added_from_a_file_after_the_frequent_ones_with_their_origin(pairs_of, exporting, tmp_path):
    name, add, strike = pairs_of(talk([THANKS] * 3 + [YES])), tmp_path / "add.tsv", tmp_path / "strike.tsv"
    added = f"en\tIndeed!\tfrom de by hand\nen\t{YES}\tfrom fr by m2m\n"
    add.write_text(f"{added}en\t{THANKS}\tx\nen\tNo.\tx\nde\tJa\tx\n", encoding="utf-8")
    strike.write_text("No.\trude\n", encoding="utf-8")
    folder, output = exporting(name, least="2", add=str(add), strike=str(strike))
    rows = response_set(folder)
    assert [(reply, rank) for _, reply, rank in rows] == [(THANKS, "1"), ("Indeed!", "2"), (YES, "3")]
    assert [round(4 * math.exp(float(score))) for score, *_ in rows] == [3, 1, 1]
    assert (folder / "added.tsv").read_text() == added
    assert re.search(r"3 replies in .*add.tsv cannot be added.* for example in line 3: Thank you very", output)
    section = manifest_of(folder)["response_set"]["added"]
    assert section["origins"] == {"from de by hand": 1, "from fr by m2m": 1}
    assert (section["file"], section["sha256"]) == ("add.tsv", hashlib.sha256(add.read_bytes()).hexdigest())
    assert "2 were added from a file: from de by hand 1, from fr by m2m 1." in (folder / "README.md").read_text()
    add.write_text("Indeed!\tfrom de\n", encoding="utf-8")
    with pytest.raises(CommandError, match=r"line 1: Write the language, the reply and its origin"):
        exporting(name, add=str(add))


def test_a_scorer_judges_the_response_set_and_drops_no_pair(pairs_of, exporting, tmp_path, capsys):
    fool = "You fool, look it up yourself."
    name, scores = pairs_of(talk([THANKS] * 3 + [fool] * 2)), tmp_path / "scores.tsv"
    scores.write_text(f"{THANKS}\t0.1\n{fool}\t0.93\nIndeed!\t0.6\n", encoding="utf-8")
    call_command("import_scores", name, str(scores), name="perspective", threshold="0.5", of="response")
    assert "2 replies are kept out of the response set, with scores above 0.5" in capsys.readouterr().out
    (tmp_path / "add.tsv").write_text("en\tIndeed!\ttranslated\n", encoding="utf-8")
    folder, output = exporting(name, least="2", add=str(tmp_path / "add.tsv"))
    assert "5 pairs in 1 language" in output
    assert "no scores were imported, so no pairs were dropped" in output
    assert [reply for _, reply, _ in response_set(folder)] == [THANKS]
    struck = (folder / "struck.tsv").read_text().splitlines()
    assert struck == [f"en\t{fool}\t2\tperspective 0.93 above 0.5", "en\tIndeed!\t0\tperspective 0.6 above 0.5"]
    assert "2 were removed by hand or by scores (perspective above 0.5)" in (folder / "README.md").read_text()


def test_random_replies_are_drawn_by_the_seed_from_those_of_each_language(chatterbot, exporting):
    folder, _ = exporting(chatterbot, random="5")
    drawn = {path.parent.name: path.read_text().splitlines() for path in (folder / "random_set").glob("*/replies.txt")}
    assert len(drawn["en"]) == len(set(drawn["en"])) == 5
    assert set(drawn["en"]) <= {reply for _, language, _, reply in published(folder) if language == "en"}
    other, _ = exporting(chatterbot, "other", random="5", seed="b")
    assert (other / "random_set/en/replies.txt").read_text().splitlines() != drawn["en"]


def test_only_the_largest_languages_are_exported_and_tokens_are_counted(chatterbot, exporting):
    folder, _ = exporting(chatterbot, largest="2")
    whole = manifest_of(exporting(chatterbot, "whole")[0])["languages"]
    by_size = sorted(whole, key=lambda row: (-sum(row[split] for split in SPLITS), row["language"]))
    manifest = manifest_of(folder)
    assert {row["language"] for row in manifest["languages"]} == {row["language"] for row in by_size[:2]}
    steps, card = steps_of(folder)
    assert steps["in none of the 2 largest languages"] == manifest["small_languages"] > 0
    texts = [f"{row['message']} {row['reply']}" for row in lines(folder / "pairs.jsonl") if row["language"] == "en"]
    [english] = [row for row in manifest["languages"] if row["language"] == "en"]
    assert english["tokens"] == sum(len(text.split()) for text in texts)
    assert f"| {english['tokens']:,} |" in card


def test_a_file_of_struck_replies_that_says_something_else_is_refused(pairs_of, exporting, tmp_path):
    name, strike = pairs_of(talk(["Thank you very much."])), tmp_path / "strike.tsv"
    for content, sentence in (
        (b"en\tThank you.\n", "line 1: en is a language code, so a cell seems to be missing"),
        (b"xx\tThank you.\twhy\n", "line 1: 'xx' is not a language code"),
        (b"\n\n", "lists no replies"),
        (b"Yes.\n", "strike.tsv, line 1: Write the language, the reply and the reason"),
        (b"Yes.\tso\nThanks.\t\n", "strike.tsv, line 2: Write the language, the reply and the reason"),
        ("a\tb\nMerci à tous\tpoli\n".encode("latin-1"), "line 2: .*UTF-8"),
    ):
        strike.write_bytes(content)
        with pytest.raises(CommandError, match=sentence):
            exporting(name, strike=str(strike))
    for splits in ("80 20", "0 0 0", "80 30 -10"):
        with pytest.raises(CommandError, match="must be three whole numbers for train, valid and test"):
            exporting(name, splits=splits)
    assert not (tmp_path / "out").exists()


def test_pairs_that_scorers_drop_are_left_out_with_their_scores_and_the_steps_add_up(exporting):
    messages = FIXTURES / "oasst1" / "messages.jsonl"
    call_command("import_threads", "oasst", str(messages), licence="Apache-2.0", text_may_leave=True)
    scored = {"column": ["score=detoxify"]}
    call_command("import_scores", "oasst", str(messages), name="detoxify", threshold="0.5", **scored)
    folder, _ = exporting("oasst", least_pairs="2")
    rows, left = lines(folder / "pairs.jsonl"), lines(folder / "left_out.jsonl")
    reasons = Counter(row["reason"] for row in left)
    scores = {row["id"]: row["detoxify"] for row in lines(messages)}
    dropped = [row for row in left if row["reason"] == "dropped"]
    for row in dropped:
        score = max(scores[row["id"]], scores[row["message_id"]])
        assert (row["dropped_by"], score > 0.5) == ({"detoxify": score}, True)
    assert all(row["scores"]["detoxify"] <= 0.5 for row in rows)
    # Every reply is in the set or among those left out.
    replies = [row for row in lines(messages) if row["parent_id"]]
    assert len({row["id"] for row in (*rows, *left)}) == len(rows) + len(left) == len(replies)
    assert (reasons["deleted"], reasons["uncertain"]) == (4, 26)
    steps, card = steps_of(folder)
    assert steps["messages"] == 298
    assert steps["the message or reply was deleted or removed"] == 4
    assert steps["detoxify has a score above 0.5"] == len(dropped) == manifest_of(folder)["filter"]["dropped"]
    assert steps["pairs of this set"] == len(rows)
    assert "license: apache-2.0" in card
    assert "seed `s`" in card
    call_command("import_scores", "oasst", str(messages), name="strict", threshold="0.1", **scored)
    steps, _ = steps_of(exporting("oasst", "strict")[0])
    lost = steps["a scorer has a score above its threshold"]
    assert lost == steps["of these: strict has a score above 0.1"]
    assert lost >= steps["of these: detoxify has a score above 0.5"] > 0
    assert steps["pairs of the corpus"] - lost == steps["pairs of this set"]


def steps_of(folder):
    """The steps of the filter with their numbers, and the whole card."""
    card = (folder / "README.md").read_text(encoding="utf-8")
    steps = re.findall(r"^\| (.+?) \| ([\d,]+) \|$", card, re.MULTILINE)
    return {name: int(number.replace(",", "")) for name, number in steps}, card


def test_small_languages_are_left_out_and_told(chatterbot, exporting):
    folder, _ = exporting(chatterbot, least_pairs="50")
    manifest = manifest_of(folder)
    small = [row for row in lines(folder / "left_out.jsonl") if row["reason"] == "small_language"]
    assert len(small) == manifest["small_languages"] > 0
    assert not {row["language"] for row in small} & {row["language"] for row in manifest["languages"]}
    with pytest.raises(CommandError, match=r"No language in corpus chatterbot has 9,999 pairs .* Set --least-pairs"):
        exporting(chatterbot, "other", least_pairs="9999")


def test_texts_that_may_not_leave_are_in_no_file(pairs_of, exporting):
    name = pairs_of(talk([PACIFIC, PACIFIC]), licence="secret", text_may_leave=False)
    folder, output = exporting(name, least="1")
    assert "The licence does not allow publishing the text" in output
    content = content_of(folder)
    assert not any(b"Pacific" in data or b"largest" in data for data in content.values())
    assert set(content) >= {"pairs.jsonl", "manifest.json", "README.md", "SHA256SUMS"}
    rows = lines(folder / "pairs.jsonl")
    order = sorted(["t1", "t2"], key=lambda key: hashlib.md5(f"s:order:{key}".encode()).hexdigest())
    assert [row["id"] for row in rows] == order
    assert not {"message", "reply"} & set(rows[0])


def test_only_an_earlier_export_of_the_corpus_is_replaced(pairs_of, exporting, tmp_path):
    name = pairs_of(talk([PACIFIC]))
    folder, _ = exporting(name)
    exporting(name, seed="other")
    assert manifest_of(folder)["seed"] == "other"
    other = pairs_of(talk([PACIFIC, PACIFIC]), "other")
    with pytest.raises(CommandError, match=r"is not empty and does not contain the export of pairs of other"):
        exporting(other)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(CommandError, match=r"not part of the export of pairs: notes.txt"):
        exporting(name)
    assert manifest_of(folder)["seed"] == "other"
    assert not list(tmp_path.glob(".out.*"))


def test_only_pairs_are_exported_so(exporting, tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text('{"id": "1", "text": "Guten Morgen zusammen"}\n')
    call_command("import_corpus", "posts", str(path), licence="CC0-1.0")
    with pytest.raises(CommandError, match="Corpus posts was not imported from threads"):
        exporting("posts")
