"""Predictors: the built-in ones, and those that are imported from files."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from corpora.core import CorpusError
from corpora.core.records import RecordError
from corpora.core.voters import VOTERS
from corpora.engines import asking
from corpora.predictions.prediction_rows import classes, read_map, read_predictions
from corpora.predictions.predictor_labels import (
    MAJORITY,
    Predictor,
    find_predictor,
    labels_where,
    predicted_labels,
    predicting,
    triggers,
)
from corpora.storage.layout import Manifest, corpus_dir, digest_of, manifest_of
from tests.corpora.conftest import POSTS
from tests.corpora.on_disk import bytes_of, posts, rejects

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

LABELS = {"1": "de", "2": "en", "3": "fr", "4": "ru", "5": "und", "6": "und"}


@pytest.fixture
def corpus(write, import_corpus):
    import_corpus("c", write("posts.jsonl", POSTS))
    return "c"


@pytest.fixture
def with_votes(corpus):
    call_command("prelabel", corpus, processes=1)
    return corpus


@pytest.fixture
def importing(capsys):
    """Runs the command and returns what it said."""

    def run(path, name="mine", version="1", **options):
        call_command("import_predictions", "c", str(path), name=name, version=version, **options)
        said = capsys.readouterr()
        return said.out + said.err

    return run


def tsv(labels):
    return "".join(f"{key}\t{label}\n" for key, label in labels.items())


def stored(spelled):
    with predicting("c", find_predictor("c", spelled)) as opened:
        rows = opened.connection.table("predicted").to_arrow_table().to_pylist()
    return {row["id"]: (row["label"], row["score"]) for row in rows}


def test_the_detectors_and_their_majority_are_predictors_of_every_corpus(with_votes):
    with predicting("c", Predictor("cld2")) as opened:
        votes = {row["id"]: row for row in opened.connection.table("votes").to_arrow_table().to_pylist()}
    firsts = {
        key: {name: row[name][0]["language"] if row[name] else "und" for name in ("langid", "cld2", "fasttext")}
        for key, row in votes.items()
    }
    for name in ("langid", "cld2", "fasttext"):
        found = stored(name)
        assert {key: label for key, (label, _) in found.items()} == {key: first[name] for key, first in firsts.items()}
        assert all((score is None) == (label == "und") for label, score in found.values())
    majority = {key: label for key, (label, _) in stored("majority").items()}
    for key, first in firsts.items():
        named = [code for code in first.values() if list(first.values()).count(code) > 1]
        assert majority[key] == (named[0] if named else "und")
    assert [majority[key] for key in "1234"] == ["de", "en", "fr", "ru"]
    assert majority["6"] == "und"


def test_where_no_two_detectors_agree_the_majority_says_und():
    table = pa.table(
        {
            "id": ["a", "b", "c", "d", "e", "f"],
            "langid": ["de", "de", "en", "de", None, None],
            "cld2": ["de", "en", "de", "en", None, "de"],
            "fasttext": ["en", "de", "de", "fr", None, None],
        }
    )
    with asking("none", manifest=Manifest("", True, "")) as opened:
        opened.rows("first_votes", table)
        found = opened.query("predicted_majority").read_all().to_pylist()
    assert {row["id"]: row["label"] for row in found} == {
        "a": "de", "b": "de", "c": "de", "d": "und", "e": "und", "f": "und",
    }  # fmt: skip


def test_a_built_in_predictor_knows_what_its_coarse_codes_stand_for(corpus):
    chinese = {"zh": ("zh-CN", "zh-TW")}
    assert find_predictor("c", "cld2").mapping == chinese
    assert find_predictor("c", "majority").mapping == chinese
    assert find_predictor("c", "fasttext").mapping == {**chinese, "sh": ("bs", "hr", "sr")}
    assert [str(find_predictor("c", name)) for name in (*VOTERS, MAJORITY)] == [*VOTERS, MAJORITY]
    assert all(find_predictor("c", name).voted for name in (*VOTERS, MAJORITY))


def as_table(delimiter):
    return lambda path, rows: path.write_text(
        "".join(delimiter.join(map(str, row)) + "\n" for row in [("id", "label", "score"), *rows])
    )


def as_jsonl(path, rows):
    path.write_text("".join(json.dumps({"id": int(key), "label": label, "score": s}) + "\n" for key, label, s in rows))


def as_parquet(path, rows):
    ids, labels, scores = zip(*rows, strict=True)
    pq.write_table(pa.table({"label": labels, "id": list(map(int, ids)), "score": scores}), path)


def bare(path, rows):
    path.write_text("".join(f"{key}\t{label}\t{score}\n" for key, label, score in rows))


def packed(path, rows):
    bare(path, rows)
    path.write_bytes(gzip.compress(path.read_bytes()))


@pytest.mark.parametrize(
    ("name", "writing"),
    [
        ("p.tsv", as_table("\t")),
        ("p.csv", as_table(",")),
        ("p.jsonl", as_jsonl),
        ("p.parquet", as_parquet),
        ("bare.tsv", bare),
        ("bare.tsv.gz", packed),
    ],
)
def test_every_format_gives_the_same_predictor(corpus, importing, tmp_path, name, writing):
    rows = [(key, label, int(key) / 8) for key, label in reversed(LABELS.items())]
    writing(tmp_path / name, rows)
    assert f"Predictor mine@1 of corpus c: 6 posts from {name}." in importing(tmp_path / name)
    assert stored("mine") == {key: (label, score) for key, label, score in rows}
    known = manifest_of("c").predictions[0]
    assert (known.rows, known.source, known.mapping) == (6, name, {})
    assert known.sha256 == digest_of(corpus_dir("c") / "predictions" / known.file)


def test_columns_can_be_named_and_a_score_is_optional(corpus, importing, write):
    importing(write("p.csv", "tweet,lang\n" + tsv(LABELS).replace("\t", ",")), column=["id=tweet", "label=lang"])
    assert stored("mine@1") == {key: (label, None) for key, label in LABELS.items()}


def test_declared_labels_are_renamed_or_kept_as_classes(corpus, importing, write):
    file = write("p.tsv", tsv({**LABELS, "1": "nb", "2": "zh", "3": "nn", "5": "unk"}))
    importing(file, map=["nb=no", "nn=no", "unk=und", "zh=zh-TW, zh-CN"])
    assert {key: label for key, (label, _) in stored("mine").items()} == {
        "1": "no", "2": "zh", "3": "no", "4": "ru", "5": "und", "6": "und",
    }  # fmt: skip
    assert find_predictor("c", "mine").mapping == {"zh": ("zh-CN", "zh-TW")}


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [
        ("zh", "write LABEL=LABEL"),
        ("zh=", "write LABEL=LABEL"),
        ("nb=nn", "'nn' is not a label known here"),
        ("cmn=zh", "'zh' is not a label known here"),
        ("zh=zh-CN,zh-CN", "it names a label twice"),
        ("hr=hr,sr", "hr is the label of one language"),
        ("zh=zh-CN,und", "stands for languages"),
    ],
)
def test_what_cannot_be_declared_is_explained(pair, sentence):
    with pytest.raises(RecordError, match=sentence):
        read_map([pair])


def test_a_label_is_declared_once():
    with pytest.raises(RecordError, match="declares nb twice"):
        read_map(["nb=no", "nb=da"])
    assert classes(read_map(["sh=sr,hr,bs", "nb=no"])) == {"sh": ("bs", "hr", "sr")}


def with_line(number, line):
    lines = tsv(LABELS).splitlines()
    return "\n".join([*lines[: number - 1], line, *lines[number:]]) + "\n"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (with_line(2, "2\tzh"), r"Line 2: The label 'zh' stands for zh-CN, zh-TW\. Say .* --map zh=zh-CN,zh-TW; if"),
        (with_line(2, "2\tqq"), r"Line 2: The label 'qq' is not a language code known here\. Say what .* --map qq=und"),
        (with_line(2, "2\tals"), r"The label 'als' is not a language code known here \(write sq \(Albanian\) or gsw"),
        (with_line(3, "3\tzh"), r"Line 3: The label 'zh' stands for zh-CN, zh-TW\."),
        ("tweet\tlang\n" + tsv(LABELS), r"Line 1: The label 'lang' is not .* name its columns with --column"),
        ("\n".join(f"{n}\txx{n % 20}" for n in range(40)), r"Line 5: The label 'xx4' is .*\. There are more\."),
        (with_line(4, "4\t"), "line 4: The label is empty; write und"),
        (with_line(4, "\tru"), "line 4: The id is empty"),
        (with_line(4, "4\tru\t0.5"), "line 4: The row has 3 fields where the header has 2"),
        ("id\tlabel\tscore\n1\tde\thigh\n", "line 2: The score 'high' is not a number"),
        ("id\tlabel\tscore\n1\tde\tnan\n", "line 2: The score 'nan' is not a number"),
        ("id\tlang\n1\tde\n", "has no column label; its columns are: id, lang"),
        ("id\tlabel\n", "holds no rows"),
        ("", "is empty"),
        (
            tsv({key: LABELS[key] for key in "135"}),
            r"lacks 3 posts: 2, 4, 6\. Write one row for every post of corpus c",
        ),
        (tsv({"1": "de"}), r"lacks 5 posts: 2, 3, 4, 5, 6\."),
        (
            tsv(LABELS) + "2\ten\n4\tuk\n",
            r"repeats 2 ids: 2 \(line 7, first in line 2\), 4 \(line 8, .* 4\)",
        ),
        (tsv(LABELS) * 3, r"repeats 12 ids, the first: 1 \(line 7, first in line 1\), 2 .*5 \(line 11, .*5\)\. Keep"),
    ],
)
def test_a_file_that_is_not_one_right_prediction_a_post_is_refused(corpus, importing, write, content, sentence):
    before = bytes_of("c")
    with pytest.raises(CommandError, match=sentence):
        importing(write("p.tsv", content))
    assert bytes_of("c") == before
    assert not manifest_of("c").predictions


def test_swapped_columns_are_refused(corpus, importing, write):
    with pytest.raises(CommandError, match="the columns seem to be swapped: in 6 rows, the first in line 1"):
        importing(write("p.tsv", "".join(f"{label}\t{key}\n" for key, label in LABELS.items())))


def test_ids_that_the_corpus_has_not_are_left_out_and_told(corpus, importing, write):
    said = importing(write("p.tsv", tsv(LABELS | {f"x{n}": "de" for n in range(7)})))
    assert "left out, since corpus c has no such posts: 7 ids, the first: x0, x1, x2, x3, x4." in said
    assert stored("mine").keys() == LABELS.keys()


def test_the_same_again_changes_nothing_and_other_content_needs_another_version(corpus, importing, write):
    file = write("p.tsv", tsv(LABELS))
    importing(file)
    before = bytes_of("c")
    again = write("q.tsv", tsv(dict(reversed(LABELS.items()))))
    assert "Predictor mine@1 of corpus c: already imported from p.tsv." in importing(again)
    other = write("r.tsv", tsv(LABELS | {"4": "uk"}))
    with pytest.raises(CommandError, match=r"says something else of 1 post: 4 than mine@1 does, .* another --version"):
        importing(other)
    with pytest.raises(CommandError, match="declares other classes"):
        importing(file, map=["zh=zh-CN,zh-TW"])
    assert bytes_of("c") == before
    importing(other, version="2")
    assert (stored("mine@1")["4"], stored("mine@2")["4"]) == (("ru", None), ("uk", None))
    with pytest.raises(CorpusError, match=r"several versions for corpus c; say which: mine@1, mine@2\."):
        find_predictor("c", "mine")


def test_a_corpus_that_has_grown_needs_predictions_for_all_of_its_posts(with_votes, importing, write, import_corpus):
    importing(write("p.tsv", tsv(LABELS)))
    import_corpus("c", write("more.jsonl", [{"id": "7", "text": "Noch ein Satz, der dazugekommen ist."}]))
    for asked, sentence in [("mine", "cover 6 of 7 posts of corpus c; import them again"), ("cld2", "run `assay prel")]:
        with pytest.raises(CorpusError, match=sentence):
            triggers("c", find_predictor("c", asked))
        # Of the posts that were there, what they say is known all the same.
        assert set(predicted_labels("c", find_predictor("c", asked), LABELS)) == set(LABELS)
        with pytest.raises(CorpusError, match=sentence):
            predicted_labels("c", find_predictor("c", asked), ["1", "7"])
    with pytest.raises(CommandError, match=r"lacks 1 post: 7\."):
        importing(write("p.tsv", tsv(LABELS)))
    with pytest.raises(CommandError, match="says something else of 1 post: 1 than"):
        importing(write("p.tsv", tsv(LABELS | {"1": "nl", "7": "de"})))
    assert "7 posts from" in importing(write("p.tsv", tsv(LABELS | {"7": "de"})))
    assert triggers("c", find_predictor("c", "mine")) == {"de": 2, "en": 1, "fr": 1, "ru": 1, "und": 2}
    assert len(manifest_of("c").predictions) == 1
    assert len(list((corpus_dir("c") / "predictions").iterdir())) == 1
    call_command("prelabel", "c", processes=1)
    assert len(manifest_of("c").predictions) == 1, "what prelabel writes keeps the predictions"


@pytest.mark.parametrize(
    "step",
    [
        "predictions.prediction_import._check_ids",
        "storage.intake.sync",
        "storage.layout.digest_of",
        "predictions.prediction_import.write_manifest",
    ],
)
def test_an_import_that_is_cut_off_leaves_nothing(corpus, importing, write, monkeypatch, step):
    def cut(*args):
        raise KeyboardInterrupt

    before = bytes_of("c")
    file = write("p.tsv", tsv(LABELS))
    with monkeypatch.context() as patch:
        patch.setattr(f"corpora.{step}", cut)
        with pytest.raises(KeyboardInterrupt):
            importing(file)
    assert bytes_of("c") == before
    importing(file)
    assert len(stored("mine")) == 6


def test_a_manifest_from_before_there_were_predictions_is_read(corpus):
    path = corpus_dir("c") / "manifest.json"
    raw = json.loads(path.read_text())
    del raw["predictions"]
    path.write_text(json.dumps(raw))
    assert manifest_of("c").predictions == ()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"name": "cld2"}, "is a predictor that every corpus has"),
        ({"name": "majority"}, "is a predictor that every corpus has"),
        ({"name": "a@b"}, "'a@b' cannot be a predictor's name"),
        ({"version": "v 2"}, "'v 2' cannot be a predictor's version"),
        ({"column": ["text=a"]}, "write FIELD=COLUMN with one of id, label, score"),
        ({"map": ["zh"]}, "write LABEL=LABEL"),
    ],
)
def test_wrong_options_are_explained(corpus, importing, write, options, sentence):
    with pytest.raises(CommandError, match=sentence):
        importing(write("p.tsv", tsv(LABELS)), **options)


def test_a_missing_file_and_a_missing_corpus_are_explained(corpus, importing, write, tmp_path):
    with pytest.raises(CommandError, match="does not exist"):
        importing(tmp_path / "none.tsv")
    with pytest.raises(CommandError, match="There is no corpus 'd'"):
        call_command("import_predictions", "d", str(write("p.tsv", tsv(LABELS))), name="mine", version="1")
    with pytest.raises(CorpusError, match="no predictor 'mine' for corpus c; there is: langid, cld2, fasttext, maj"):
        find_predictor("c", "mine")
    with pytest.raises(CorpusError, match=r"There are no predictions of mine@1 for corpus c"):
        triggers("c", Predictor("mine", "1"))
    with pytest.raises(CorpusError, match="posts without votes; run `assay prelabel c`"):
        triggers("c", Predictor("majority"))


def test_the_labels_of_some_posts_are_found_and_unknown_ids_named(with_votes, importing, write):
    importing(write("p.tsv", tsv(LABELS)))
    mine = find_predictor("c", "mine")
    assert predicted_labels("c", mine, ["3", "5", "3"]) == {"3": "fr", "5": "und"}
    assert predicted_labels("c", mine, []) == {}
    assert predicted_labels("c", find_predictor("c", "cld2"), ["6", "1"]) == {"6": "und", "1": "de"}
    with pytest.raises(CorpusError, match="Corpus c has no posts with 2 ids: 8, 9"):
        predicted_labels("c", mine, ["1", "8", "9"])
    assert predicted_labels("c", mine, ["3"], also=["5", "8"]) == {"3": "fr", "5": "und"}


@pytest.mark.parametrize(
    ("spelled", "meant"), [("fastext", "fasttext"), ("mine@2", "mine@1"), ("Majority", "majority")]
)
def test_a_misspelt_predictor_is_answered_with_the_one_that_was_meant(with_votes, importing, write, spelled, meant):
    importing(write("p.tsv", tsv(LABELS)))
    with pytest.raises(CorpusError, match=rf"Did you mean {meant}\?"):
        find_predictor("c", spelled)
    with pytest.raises(CorpusError) as refused:
        find_predictor("c", "xyz")
    assert "Did you mean" not in str(refused.value)


def test_labels_are_counted_alone_and_against_another_predictor(with_votes, importing, write):
    importing(write("p.tsv", tsv(LABELS)))
    importing(write("q.tsv", tsv(LABELS | {"1": "nl", "2": "nl", "6": "fr"})), version="2")
    one, two = find_predictor("c", "mine@1"), find_predictor("c", "mine@2")
    assert triggers("c", one) == {"de": 1, "en": 1, "fr": 1, "ru": 1, "und": 2}
    assert triggers("c", two) == {"fr": 2, "nl": 2, "ru": 1, "und": 1}
    assert labels_where("c", two, one) == {"nl": 2, "fr": 1}
    assert labels_where("c", one, two) == {"de": 1, "en": 1, "und": 1}
    assert labels_where("c", one, one) == {}
    assert labels_where("c", find_predictor("c", "majority"), find_predictor("c", "majority")) == {}
    assert set(labels_where("c", find_predictor("c", "majority"), find_predictor("c", "cld2"))) <= {"und", "en", "de"}


def test_a_file_without_a_corpus_is_read_by_the_same_rules(write):
    declared = read_map(["zh=zh-CN,zh-TW", "nb=no"])
    labels, told = read_predictions(write("p.tsv", "7\tzh\n8\tnb\t0.5\n".replace("\t0.5", "")), declared)
    assert (labels, told.sentences()) == ({"7": "zh", "8": "no"}, [])
    assert classes(declared) == {"zh": ("zh-CN", "zh-TW")}
    labels, told = read_predictions(write("p.tsv", "7\t__label__zh\n8\t__label__nb\n9\t__label__en\n"), declared)
    assert labels == {"7": "zh", "8": "no", "9": "en"}
    assert told.sentences() == [
        "The label of 1 row was understood without --map: __label__en as en. Declare it with --map where something "
        "else is meant."
    ]
    _, told = read_predictions(write("p.tsv", "7\t__label__de\n8\ten-US\n"), declared)
    (sentence,) = told.sentences()
    assert sentence.startswith("The labels of 2 rows were understood without --map: __label__de as de, en-US as en.")
    for content, sentence in [
        ("7\tzh\n8\tqq\n", "Line 2: The label 'qq'"),
        ("7\tzh\n8\tde\n7\tzh\n", r"repeats 1 id: 7 \(line 3, first in line 1\)"),
        ("id\tlabel\n", "holds no rows"),
    ]:
        with pytest.raises(CorpusError, match=sentence):
            read_predictions(write("p.tsv", content), declared)


def test_a_word_for_none_is_no_class_of_records_and_1_0_is_1(write, import_corpus, importing):
    rows = [{"id": str(n), "language": "en", "body": f"text {n}", "is": "0"} for n in range(2)]
    import_corpus("c", write("r.jsonl", rows), fields="body", labels="is")
    for written in ("nan", "None"):
        with pytest.raises(CommandError, match=rf"line 2: The label is {written}, .*write und if the classifier names"):
            importing(write("p.tsv", f"0\t1.0\n1\t{written}\n"))
    importing(write("p.tsv", "0\t1.0\n1\t1\n"))
    assert {label for label, _ in stored("mine").values()} == {"1"}


def test_labels_that_came_with_records_are_read_as_all_labels_are(write, import_corpus):
    declared = ["1.0", "nan;b", "cafe\u0301", ["None", "x"], "1e5"]
    rows = [{"id": str(n), "language": "en", "body": f"text {n}", "is": label} for n, label in enumerate(declared)]
    import_corpus("c", write("r.jsonl", rows), fields="body", labels="is")
    assert [row["declared"] for row in posts()] == [["1"], ["b"], ["café"], ["x"]]
    assert rejects()[0]["reason"] == "The label 1e5 is a number that another program has rewritten; save it as text."
