"""Predictors: the built-in ones, and those that are imported from files."""

import pyarrow as pa
import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from corpora.core import CorpusError
from corpora.core.records import RecordError
from corpora.core.voters import DEFAULT
from corpora.engines import open_store
from corpora.predictions.prediction_rows import classes, read_map, read_predictions
from corpora.predictions.predictor_labels import (
    MAJORITY,
    Predictor,
    count_differing,
    find_predictor,
    open_predictions,
    predicted_labels,
    triggers,
)
from corpora.storage.layout import Manifest, corpus_dir, digest_of, manifest_of
from tests.corpora.conftest import POSTS
from tests.corpora.on_disk import bytes_of, posts, rejects

pytestmark = pytest.mark.django_db

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
def importing(printed):
    def run(path, name="mine", version="1", **options):
        return printed("import_predictions", "c", path, name=name, version=version, **options)

    return run


def tsv(labels):
    return "".join(f"{key}\t{label}\n" for key, label in labels.items())


def stored(spelled):
    with open_predictions("c", find_predictor("c", spelled)) as opened:
        rows = opened.connection.table("predicted").to_arrow_table().to_pylist()
    return {row["id"]: (row["label"], row["score"]) for row in rows}


def test_the_detectors_and_their_majority_are_predictors_of_every_corpus(with_votes):
    with open_predictions("c", Predictor("cld2")) as opened:
        votes = {row["id"]: row for row in opened.connection.table("votes").to_arrow_table().to_pylist()}
    firsts = {
        key: {name: row[name][0]["language"] if row[name] else "und" for name in DEFAULT.voters}
        for key, row in votes.items()
    }
    for name in DEFAULT.voters:
        labels = stored(name)
        assert {key: label for key, (label, _) in labels.items()} == {key: first[name] for key, first in firsts.items()}
        assert all((score is None) == (label == "und") for label, score in labels.values())
    majority = {key: label for key, (label, _) in stored("majority").items()}
    for key, first in firsts.items():
        named = [code for code in first.values() if list(first.values()).count(code) > 1]
        assert majority[key] == (named[0] if named else "und")
    assert [majority[key] for key in "12346"] == ["de", "en", "fr", "ru", "und"]
    chinese = {"zh": ("zh-CN", "zh-TW")}
    assert find_predictor("c", "cld2").mapping == find_predictor("c", "majority").mapping == chinese
    assert find_predictor("c", "fasttext").mapping == {**chinese, "sh": ("bs", "hr", "sr")}
    assert [str(find_predictor("c", name)) for name in (*DEFAULT.voters, MAJORITY)] == [*DEFAULT.voters, MAJORITY]
    assert all(find_predictor("c", name).voted for name in (*DEFAULT.voters, MAJORITY))


def test_where_no_two_detectors_agree_the_majority_names_no_language():
    table = pa.table(
        {
            "id": [*"abcdef"],
            "langid": ["de", "de", "en", "de", None, None],
            "cld2": ["de", "en", "de", "en", None, "de"],
            "fasttext": ["en", "de", "de", "fr", None, None],
        }
    )
    with open_store("none", manifest=Manifest("", True, "")) as opened:
        opened.rows("first_votes", table)
        rows = opened.query("predicted_majority").read_all().to_pylist()
    assert [row["label"] for row in sorted(rows, key=lambda row: row["id"])] == ["de", "de", "de", "und", "und", "und"]


def test_a_table_with_or_without_a_header_and_objects_give_the_same_predictor(corpus, importing, write):
    rows = [(key, label, int(key) / 8) for key, label in reversed(LABELS.items())]
    bare = "".join(f"{key}\t{label}\t{score}\n" for key, label, score in rows)
    objects = [{"id": int(key), "label": label, "score": score} for key, label, score in rows]
    files = [write("p.tsv", f"id\tlabel\tscore\n{bare}"), write("p.jsonl", objects), write("bare.tsv", bare)]
    for version, file in zip("123", files, strict=True):
        output = importing(file, version=version)
        assert f"Predictor mine@{version} of corpus c: 6 posts from {file.name}." in output
        assert stored(f"mine@{version}") == {key: (label, score) for key, label, score in rows}
        predictor = manifest_of("c").predictions[-1]
        assert (predictor.rows, predictor.source, predictor.mapping) == (6, file.name, {})
        assert predictor.sha256 == digest_of(corpus_dir("c") / "predictions" / predictor.file)


def test_columns_and_labels_may_have_other_names_and_unknown_ids_are_left_out(corpus, importing, write):
    labels = LABELS | {"1": "nb", "2": "zh", "3": "nn", "5": "unk"} | {f"x{n}": "de" for n in range(7)}
    file = write("p.csv", "tweet,lang\n" + tsv(labels).replace("\t", ","))
    renamed = ["nb=no", "nn=no", "unk=und", "zh=zh-TW, zh-CN"]
    output = importing(file, column=["id=tweet", "label=lang"], map=renamed)
    assert "these ids were ignored, because corpus c has no such posts: 7 ids, the first: x0, x1, x2, x3, x4." in output
    expected = LABELS | {"1": "no", "2": "zh", "3": "no"}
    assert stored("mine@1") == {key: (label, None) for key, label in expected.items()}
    assert find_predictor("c", "mine").mapping == {"zh": ("zh-CN", "zh-TW")}


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        (["zh"], "expected LABEL=LABEL"),
        (["zh="], "expected LABEL=LABEL"),
        (["nb=nn"], "'nn' is not a known label"),
        (["cmn=zh"], "'zh' is not a known label"),
        (["zh=zh-CN,zh-CN"], "a label occurs twice"),
        (["hr=hr,sr"], "hr is the code of one language"),
        (["zh=zh-CN,und"], "must contain only languages"),
        (["nb=no", "nb=da"], "declares nb twice"),
    ],
)
def test_what_cannot_be_declared_is_explained(pairs, sentence):
    with pytest.raises(RecordError, match=sentence):
        read_map(pairs)
    assert classes(read_map(["sh=sr,hr,bs", "nb=no"])) == {"sh": ("bs", "hr", "sr")}


SWAPPED = "".join(f"{label}\t{key}\n" for key, label in LABELS.items())


def with_line(number, line):
    lines = tsv(LABELS).splitlines()
    return "\n".join([*lines[: number - 1], line, *lines[number:]]) + "\n"


@pytest.mark.parametrize(
    ("content", "options", "sentence"),
    [
        (
            with_line(2, "2\tzh"),
            {},
            r"Line 2: The label 'zh' stands for zh-CN, zh-TW\. Declare .* --map zh=zh-CN,zh-TW",
        ),
        (with_line(2, "2\tqq"), {}, r"Line 2: The label 'qq' is not a known language code; .*\. .* --map qq"),
        (with_line(2, "2\tals"), {}, r"The label 'als' is not a known language code; write sq \(Albanian\) or"),
        ("tweet\tlang\n" + tsv(LABELS), {}, r"Line 1: The label 'lang' is not .* map its columns with --column"),
        ("\n".join(f"{n}\txx{n % 20}" for n in range(40)), {}, r"Line 5: The label 'xx4' is .*\. There are more\."),
        (with_line(4, "4\t"), {}, "line 4: The label is empty. Write und"),
        (with_line(4, "\tru"), {}, "line 4: The id is empty"),
        ("id\tlabel\tscore\n1\tde\thigh\n", {}, "line 2: The score 'high' is not a number"),
        ("id\tlabel\tscore\n1\tde\tnan\n", {}, "line 2: The score 'nan' is not a number"),
        ("id\tlang\n1\tde\n", {}, "has no column label. Its columns are: id, lang"),
        (tsv({key: LABELS[key] for key in "135"}), {}, r"lacks 3 posts: 2, 4, 6\. Write one row for each post in"),
        (tsv({"1": "de"}), {}, r"lacks 5 posts: 2, 3, 4, 5, 6\."),
        (tsv(LABELS) + "2\ten\n4\tuk\n", {}, r"repeats 2 ids: 2 \(line 7, first in line 2\), 4 \(line 8, .* 4\)"),
        (tsv(LABELS) * 3, {}, r"repeats 12 ids, the first: 1 \(line 7, .* 1\), 2 .*5 \(line 11, .*5\)\. Keep"),
        (SWAPPED, {}, "seem to be swapped: in 6 rows .the first is line 1"),
        (tsv(LABELS), {"name": "cld2"}, "is the name of a built-in predictor"),
        (tsv(LABELS), {"name": "majority"}, "is the name of a built-in predictor"),
        (tsv(LABELS), {"name": "a@b"}, "'a@b' is not a valid predictor name"),
        (tsv(LABELS), {"version": "v 2"}, "'v 2' is not a valid predictor version"),
        (tsv(LABELS), {"column": ["text=a"]}, "The fields are: id, label, score"),
    ],
)
def test_a_file_without_one_right_prediction_for_each_post_is_refused(
    corpus, importing, write, content, options, sentence
):
    before = bytes_of("c")
    with pytest.raises(CommandError, match=sentence):
        importing(write("p.tsv", content), **options)
    assert bytes_of("c") == before


@pytest.mark.parametrize("step", ["prediction_import._check_ids", "prediction_import.write_manifest"])
def test_an_import_that_is_cut_off_leaves_nothing(corpus, importing, write, monkeypatch, step):
    def cut(*args):
        raise KeyboardInterrupt

    before = bytes_of("c")
    file = write("p.tsv", tsv(LABELS))
    with monkeypatch.context() as patch:
        patch.setattr(f"corpora.predictions.{step}", cut)
        with pytest.raises(KeyboardInterrupt):
            importing(file)
    assert bytes_of("c") == before
    importing(file)
    assert len(stored("mine")) == 6


def test_a_missing_file_corpus_or_predictor_is_explained(corpus, importing, write, tmp_path):
    with pytest.raises(CommandError, match="does not exist"):
        importing(tmp_path / "none.tsv")
    file = write("p.tsv", tsv(LABELS))
    with pytest.raises(CommandError, match="The corpus 'd' does not exist"):
        call_command("import_predictions", "d", str(file), name="mine", version="1")
    for predictor, sentence in (
        ("mine@1", "no predictions by mine@1"),
        ("majority", "Run `assay prelabel c`"),
    ):
        with pytest.raises(CorpusError, match=sentence):
            triggers("c", Predictor(*predictor.split("@")))
    importing(file)
    for name, meant in (("fastext", "fasttext"), ("mine@2", "mine@1"), ("Majority", "majority")):
        with pytest.raises(CorpusError, match=rf"Did you mean {meant}\?"):
            find_predictor("c", name)
    with pytest.raises(
        CorpusError, match=r"no predictor 'xyz'. Available predictors: langid, cld2, fasttext, maj"
    ) as no:
        find_predictor("c", "xyz")
    assert "Did you mean" not in str(no.value)


def test_the_same_again_changes_nothing_and_other_content_needs_another_version(corpus, importing, write):
    file = write("p.tsv", tsv(LABELS))
    importing(file)
    before = bytes_of("c")
    again = write("q.tsv", tsv(dict(reversed(LABELS.items()))))
    assert "Predictor mine@1 of corpus c: already imported from p.tsv." in importing(again)
    other = write("r.tsv", tsv(LABELS | {"4": "uk"}))
    with pytest.raises(
        CommandError, match=r"differs from mine@1, .* the labels of 1 post: 4. Import it with another --version"
    ):
        importing(other)
    with pytest.raises(CommandError, match="in the declared classes"):
        importing(file, map=["zh=zh-CN,zh-TW"])
    assert bytes_of("c") == before
    importing(other, version="2")
    assert (stored("mine@1")["4"], stored("mine@2")["4"]) == (("ru", None), ("uk", None))
    with pytest.raises(CorpusError, match=r"several versions. Use one of mine@1, mine@2\."):
        find_predictor("c", "mine")


def test_a_corpus_that_has_grown_needs_predictions_for_all_of_its_posts(with_votes, importing, write, import_corpus):
    importing(write("p.tsv", tsv(LABELS)))
    import_corpus("c", write("more.jsonl", [{"id": "7", "text": "Noch ein Satz, der dazugekommen ist."}]))
    for name, sentence in [
        ("mine", "cover only 6 of 7 posts in corpus c. Import predictions for all posts"),
        ("cld2", "Run `assay prel"),
    ]:
        predictor = find_predictor("c", name)
        with pytest.raises(CorpusError, match=sentence):
            triggers("c", predictor)
        # The labels of the existing posts still count.
        assert set(predicted_labels("c", predictor, LABELS)) == set(LABELS)
        with pytest.raises(CorpusError, match=sentence):
            predicted_labels("c", predictor, ["1", "7"])
    for labels, sentence in (
        (LABELS, r"lacks 1 post: 7\."),
        (LABELS | {"1": "nl", "7": "de"}, r"in the labels of 1 post: 1\."),
    ):
        with pytest.raises(CommandError, match=sentence):
            importing(write("p.tsv", tsv(labels)))
    assert "7 posts from" in importing(write("p.tsv", tsv(LABELS | {"7": "de"})))
    assert triggers("c", find_predictor("c", "mine")) == {"de": 2, "en": 1, "fr": 1, "ru": 1, "und": 2}
    call_command("prelabel", "c", processes=1)
    assert len(manifest_of("c").predictions) == 1, "what prelabel writes keeps the predictions"
    assert len(list((corpus_dir("c") / "predictions").iterdir())) == 1


@pytest.mark.both_databases
def test_labels_are_looked_up_by_id_and_counted_alone_and_against_another_predictor(with_votes, importing, write):
    importing(write("p.tsv", tsv(LABELS)))
    importing(write("q.tsv", tsv(LABELS | {"1": "nl", "2": "nl", "6": "fr"})), version="2")
    one, two, cld2, majority = (find_predictor("c", name) for name in ("mine@1", "mine@2", "cld2", "majority"))
    assert predicted_labels("c", one, ["3", "5", "3"]) == {"3": "fr", "5": "und"}
    assert predicted_labels("c", one, []) == {}
    assert predicted_labels("c", cld2, ["6", "1"]) == {"6": "und", "1": "de"}
    with pytest.raises(CorpusError, match="Corpus c has no posts with 2 ids: 8, 9"):
        predicted_labels("c", one, ["1", "8", "9"])
    assert predicted_labels("c", one, ["3"], also=["5", "8"]) == {"3": "fr", "5": "und"}
    assert triggers("c", one) == {"de": 1, "en": 1, "fr": 1, "ru": 1, "und": 2}
    assert triggers("c", two) == {"fr": 2, "nl": 2, "ru": 1, "und": 1}
    assert count_differing("c", two, one) == {"nl": 2, "fr": 1}
    assert count_differing("c", one, two) == {"de": 1, "en": 1, "und": 1}
    assert count_differing("c", one, one) == count_differing("c", majority, majority) == {}
    assert set(count_differing("c", majority, cld2)) <= {"und", "en", "de"}


def test_a_file_without_a_corpus_is_read_by_the_same_rules(write):
    declared = read_map(["zh=zh-CN,zh-TW", "nb=no"])
    for content, labels, sentences in (
        ("7\tzh\n8\tnb\n", {"7": "zh", "8": "no"}, []),
        (
            "7\t__label__zh\n8\t__label__nb\n9\t__label__en\n",
            {"7": "zh", "8": "no", "9": "en"},
            ["The label of 1 row was converted without --map: __label__en as en. Use --map if"],
        ),
        (
            "7\t__label__de\n8\ten-US\n",
            {"7": "de", "8": "en"},
            ["The labels of 2 rows were converted without --map: __label__de as de (1), en-US as en (1)."],
        ),
    ):
        read, outcome = read_predictions(write("p.tsv", content), declared)
        assert read == labels
        assert [line[: len(begin)] for line, begin in zip(outcome.sentences(), sentences, strict=True)] == sentences
    for content, sentence in [
        ("7\tzh\n8\tqq\n", "Line 2: The label 'qq'"),
        ("7\tzh\n8\tde\n7\tzh\n", r"repeats 1 id: 7 \(line 3, first in line 1\)"),
        ("id\tlabel\n", "contains no rows"),
    ]:
        with pytest.raises(CorpusError, match=sentence):
            read_predictions(write("p.tsv", content), declared)


def test_labels_of_records_are_read_alike_wherever_they_come_from(write, import_corpus, importing):
    declared = ["1.0", "nan;b", "cafe\u0301", ["None", "x"], "1e5"]
    rows = [{"id": str(n), "language": "en", "body": f"text {n}", "is": label} for n, label in enumerate(declared)]
    import_corpus("c", write("r.jsonl", rows), fields="body", labels="is")
    assert [row["declared"] for row in posts()] == [["1"], ["b"], ["café"], ["x"]]
    assert rejects()[0]["reason"] == "The label 1e5 is a number that another program has rewritten; save it as text."
    for word in ("nan", "None"):
        with pytest.raises(CommandError, match=rf"line 2: The label is {word}, .*Write und if the classifier assigns"):
            importing(write("p.tsv", f"0\t1.0\n1\t{word}\n"))
    importing(write("p.tsv", "0\t1.0\n1\t1\n2\t1\n3\t1.0\n"))
    assert {label for label, _ in stored("mine").values()} == {"1"}
