"""Predictions for balanced sets of documents, by the languages of training and of the test, from files to a report."""

import json
from collections import Counter

import pytest
from django.db import transaction
from django.test import override_settings

from annotate.actions.registry import call_command
from annotate.core.estimation.differences import holm, mcnemar
from annotate.core.estimation.proportions import jeffreys
from annotate.goldsets.formats import benchmarks
from tests.annotate.balanced_draws.acts import ROOT, SENTENCES
from tests.annotate.classified_sets import classified_set
from tests.annotate.evaluation.figures import as_percent, figures, in_three_forms, refusal

pytestmark = pytest.mark.django_db

CLASSES = ("sports", "health", "travel")
EACH = 10  # test documents of a class in a language
# Four languages of the fixtures, and four more codes for the same sentences, so that there are as many as MLDoc has.
SOURCES = {"de": "de", "en": "en", "fr": "fr", "ja": "ja", "es": "de", "it": "en", "ru": "fr", "zh-CN": "ja"}


@pytest.fixture(scope="module")
def made(django_db_setup, django_db_blocker, tmp_path_factory):
    """Exported sets: `gold`, and `kept`, whose texts must not be published, with published lists of unequal classes."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "sentence_topic.toml").write_text(SENTENCES, encoding="utf-8")
    files = []
    for code, source in SOURCES.items():
        lines = (ROOT / f"fixtures/topics/sib200.{source}.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [
            row | {"id": f"{code}-{row['id']}", "language": code}
            for row in map(json.loads, lines)
            if row["topic"] in CLASSES
        ]
        files.append(folder / f"{code}.jsonl")
        files[-1].write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    fixed = {"fields": "body sentence", "column": ["body=text"], "labels": "topic"}
    drawn = {"kind": str(folder / "sentence_topic.toml"), "labels": " ".join(CLASSES), "design": "balanced"}
    with (
        django_db_blocker.unblock(),
        override_settings(DATA_DIR=folder / "var"),
        transaction.atomic(),
    ):
        call_command("import_corpus", "sib", *map(str, files), licence="CC-BY-SA-4.0", **fixed)
        call_command("open_task", "gold", corpus="sib", seed="1", sets=f"test {3 * EACH} dev 6 apart sentence", **drawn)
        call_command("export_gold", "gold", out=str(folder / "gold"))
        (folder / "lists").mkdir()
        numbers = dict(zip(CLASSES, (8, 4, 2), strict=True))
        ids = [key for label, number in numbers.items() for key in of_class(folder / "gold", "de", label)[:number]]
        (folder / "lists/german.test").write_text("".join(f"{key}\n" for key in ids))
        call_command("import_corpus", "kept", str(files[0]), licence="ours", text_may_leave=False, **fixed)
        call_command("open_task", "kept", corpus="kept", seed="1", from_indices=str(folder / "lists"), **drawn)
        call_command("export_gold", "kept", out=str(folder / "kept"))
        transaction.set_rollback(True)
    return folder


def labels(gold, language):
    """The classes of a language's test documents, in their order."""
    rows = map(json.loads, next(gold.glob("gold*.jsonl")).read_text(encoding="utf-8").splitlines())
    by_id = {row["id"]: row["label"] for row in rows}
    [path] = gold.glob(f"mldoc-indices/{benchmarks.published_name(language, SOURCES)[0]}*.test")
    return {key: by_id[key] for key in path.read_text().split()}


def of_class(gold, language, label):
    return [key for key, true in labels(gold, language).items() if true == label]


@pytest.fixture
def gold(made):
    return made / "gold"


@pytest.fixture
def predict(tmp_path):
    """predict(gold, "mine", {"de-en": (9, 5, 10)}) writes predictions of which this many of each class are right: the
    first ones in the order of the test, or the last ones if the number is negative. The rest get another class.
    """

    def make(gold, name, pairs):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        for pair, hits in pairs.items():
            truth = labels(gold, next(code for code in SOURCES if pair.endswith(f"-{code}")))
            lines = dict(truth)
            for number, (label, right) in enumerate(zip(CLASSES, hits, strict=True)):
                keys = [key for key, true in truth.items() if true == label]
                wrong = keys[right:] if right >= 0 else keys[:right]
                lines |= dict.fromkeys(wrong, CLASSES[number - 1])
            (folder / f"{pair}.prediction").write_text("".join(f"{line}\n" for line in lines.values()))
        return folder

    return make


def pairs_of(report):
    return {tuple(row["of"].values()): row for row in report["rows"] if row["measure"] == "accuracy"}


def test_accuracy_of_a_pair_is_the_share_that_is_right_and_recall_that_of_each_class(gold, predict, run):
    report = run("--gold", gold, predict(gold, "mine", {"de-en": (9, 5, 10)}))
    pair = figures(report, "accuracy", train="de", test="en")
    assert (pair["value"], pair["units"]) == (pytest.approx(24 / 30), 30)
    # Each class has one more, with the mean of all: (h + 0.8) of 11; its squares less 11 times the mean squared, over
    # ten squared; and a third of each class.
    spread = sum((hits + 0.8 - (hits + 0.8) ** 2 / 11) / 10**2 / 9 for hits in (9, 5, 10))
    count = 0.8 * 0.2 / spread
    assert (pair["low"], pair["high"]) == pytest.approx(jeffreys(0.8 * count, count))
    assert pair["count"] == pytest.approx(count)
    low, high = jeffreys(24, 30)
    assert pair["high"] - pair["low"] < high - low
    for label, hits in zip(CLASSES, (9, 5, 10), strict=True):
        recall = figures(report, "recall", train="de", test="en", label=label)
        assert (recall["value"], recall["low"], recall["high"]) == (hits / 10, *jeffreys(hits, 10))
        assert recall["units"] == 10
    assert report["warnings"] == []


def test_any_set_with_languages_and_splits_has_the_table_in_the_order_of_its_rows(tmp_path, run):
    rows = [
        (f"{code}{n}", code, "test" if n < 12 else "train", "ab"[n % 3 == 0], "")
        for code in ["de", "en"]
        for n in range(20)
    ]
    gold = classified_set(tmp_path / "texts", rows)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "de-en.prediction").write_text("a\n" * 12)
    (tmp_path / "mine" / "joint-de.prediction").write_text("".join(f"{row[3]}\n" for row in rows[:12]))
    report = run("--gold", gold, tmp_path / "mine")
    pair = figures(report, "accuracy", train="de", test="en")
    # The numbers of documents of each class are not fixed, so the interval is that of a plain share.
    assert (pair["value"], pair["units"]) == (pytest.approx(8 / 12), 12)
    assert pair["high"] - pair["low"] >= jeffreys(8, 12)[1] - jeffreys(8, 12)[0]
    assert figures(report, "accuracy", train="joint", test="de")["value"] == 1
    assert figures(report, "transfer")["value"] == pair["value"]


def test_means_count_each_pair_alike_with_the_diagonal_and_without(gold, predict, run):
    mine = predict(
        gold,
        "mine",
        {"de-de": (10, 10, 10), "de-en": (9, 5, 10), "en-en": (9, 9, 9), "en-de": (6, 6, 3), "fr-en": (0, 10, 5)},
    )
    report = run("--gold", gold, mine)
    values = {"de-de": 1.0, "de-en": 0.8, "en-en": 0.9, "en-de": 0.5, "fr-en": 0.5}
    mean, transfer = figures(report, "mean_accuracy"), figures(report, "transfer")
    assert (mean["value"], mean["note"]) == (pytest.approx(sum(values.values()) / 5), "mean over 5 pairs")
    assert (transfer["value"], transfer["note"]) == (pytest.approx(1.8 / 3), "mean over 3 pairs")
    assert figures(report, "mean_accuracy", train="de")["value"] == pytest.approx(0.9)
    assert figures(report, "transfer", train="de")["value"] == pytest.approx(0.8)
    assert figures(report, "mean_accuracy", test="en")["value"] == pytest.approx((0.8 + 0.9 + 0.5) / 3)
    of = [row["of"] for row in report["rows"] if row["measure"] == "mean_accuracy"]
    assert of == [{}, {"train": "de"}, {"train": "en"}, {"train": "fr"}, {"test": "de"}, {"test": "en"}]


def test_means_are_over_named_groups_of_test_languages(gold, predict, run):
    mine = predict(gold, "mine", {"de-en": (9, 5, 10), "en-de": (6, 6, 6), "en-en": (10, 10, 10), "de-it": (3, 3, 3)})
    report = run("--gold", gold, mine, "--group", "west=en de", "--group", "south=it")
    west = figures(report, "mean_accuracy", group="west"), figures(report, "transfer", group="west")
    assert [row["value"] for row in west] == [pytest.approx((24 + 18 + 30) / 90), pytest.approx((24 + 18) / 60)]
    assert west[1]["note"] == "mean over 2 pairs"
    assert figures(report, "transfer", group="south")["value"] == pytest.approx(9 / 30)
    assert "has the language xx, but the test languages are" in refusal("--gold", gold, mine, "--group", "x=xx")
    assert "Write a name and test languages" in refusal("--gold", gold, mine, "--group", "en de")


def test_folders_named_after_settings_are_measured_in_one_table_and_the_schemes_are_named(
    gold, predict, tmp_path, run, capsys
):
    (tmp_path / "laser").mkdir()
    predict(gold, "laser/Zero_Shot", {"de-en": (9, 5, 10), "en-de": (6, 6, 6), "en-en": (10, 10, 10)})
    predict(gold, "laser/targeted", {"de-en": (10, 10, 10)})
    predict(gold, "laser/joint", {"joint-en": (8, 8, 8)})
    report = run("--gold", gold, tmp_path / "laser")
    assert report["predictor"]["spelled"] == "laser"
    accuracy = {tuple(row["of"].values()): row["value"] for row in report["rows"] if "setting" in row["of"]}
    assert accuracy["de", "en", "zero-shot"] == pytest.approx(24 / 30)
    assert accuracy["de", "en", "targeted"] == 1
    assert accuracy["all", "en", "joint"] == accuracy["all", "joint"] == pytest.approx(24 / 30)
    *_, words = in_three_forms(tmp_path / "out", capsys, "--gold", gold, tmp_path / "laser")
    for form in words:
        assert "Accuracy by setting" in form
        assert "Brackets" not in form.split("Accuracy by training and test language")[0]
        assert "zero-shot: trained and selected on another language" in form
        assert "All other sections are about zero-shot." in form
    assert len(report["files"]) == 5
    # A language with itself does not count in the zero-shot setting.
    assert ("en", "en", "zero-shot") not in accuracy
    means = [row["value"] for row in report["rows"] if row["of"] == {"languages": "all", "setting": "zero-shot"}]
    assert means == [pytest.approx((18 + 24) / 60)] * 2
    own_pairs = "Pairs of a language with itself do not count in zero-shot and targeted."
    assert own_pairs in report["words"]["settings-accuracy"]
    assert "Compare two settings directly" in refusal(
        "--gold", gold, tmp_path / "laser", "--against", tmp_path / "laser/joint"
    )


def test_translations_count_once_in_a_mean_over_test_languages(gold, tmp_path, run):
    """On half of the sentences all systems are right, each in its language, on the others none."""
    rows = {row["id"]: row for row in map(json.loads, (gold / "gold.jsonl").read_text().splitlines())}
    sentences = sorted({row["apart"][0] for row in rows.values()})
    (tmp_path / "mine").mkdir()
    for language in SOURCES:
        tested = [rows[key] for key in labels(gold, language)]
        predicted = [
            row["label"] if sentences.index(row["apart"][0]) % 2 else CLASSES[CLASSES.index(row["label"]) - 1]
            for row in tested
        ]
        (tmp_path / f"mine/{language}-{language}.prediction").write_text("".join(f"{label}\n" for label in predicted))
    report = run("--gold", gold, tmp_path / "mine")
    width = {pair: row["high"] - row["low"] for pair, row in pairs_of(report).items()}
    mean = figures(report, "mean_accuracy")
    assert mean["high"] - mean["low"] > 0.7 * min(width.values())
    assert mean["count"] < 80  # and not the 240 of as many documents


def test_two_files_for_one_pair_are_refused(gold, predict):
    mine = predict(gold, "mine", {"de-zh-CN": (5, 5, 5)})
    (mine / "de-zh.prediction").write_bytes((mine / "de-zh-CN.prediction").read_bytes())
    message = f"{mine} contains two files for de-zh-CN. Remove de-zh.prediction or the other file."
    assert refusal("--gold", gold, mine) == message


def test_names_have_the_codes_of_the_set_or_of_the_published_files_and_joint_is_in_no_mean(gold, predict, run):
    mine = predict(
        gold, "mine", {"zh-CN-de": (5, 5, 5), "de-zh-CN": (6, 6, 6), "zh-CN-zh-CN": (7, 7, 7), "joint-zh-CN": (9, 9, 9)}
    )
    for ours, published in {"de-zh-CN": "de-zh", "zh-CN-zh-CN": "zh-zh"}.items():
        (mine / f"{ours}.prediction").rename(mine / f"{published}.prediction")
    report = run("--gold", gold, mine)
    assert {pair: row["value"] for pair, row in pairs_of(report).items()} == pytest.approx(
        {("de", "zh-CN"): 0.6, ("zh-CN", "de"): 0.5, ("zh-CN", "zh-CN"): 0.7, ("joint", "zh-CN"): 0.9}
    )
    assert figures(report, "mean_accuracy")["value"] == pytest.approx(0.6)
    assert figures(report, "transfer")["value"] == pytest.approx(0.55)
    joint = figures(report, "mean_accuracy", train="joint")
    assert (joint["value"], joint["note"]) == (pytest.approx(0.9), "mean over 1 test language")


@pytest.mark.parametrize(
    ("pair", "headline"), [("de-de", "mean over 1 pair"), ("joint-de", "mean over 1 test language")]
)
def test_one_pair_or_joint_alone_is_the_headline(gold, predict, capsys, pair, headline):
    call_command("evaluate", str(predict(gold, "mine", {pair: (9, 5, 10)})), gold=[str(gold)])
    [shown] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("mine: mean accuracy")]
    assert "80.0% [" in shown
    assert shown.endswith(f", {headline}.")


def test_sets_without_published_texts_are_measured_and_the_sizes_of_their_classes_reported(made, predict, run, capsys):
    gold = made / "kept"
    assert [path.name for path in gold.iterdir() if path.is_dir()] == ["mldoc-indices"]
    assert not {"body", "apart"} & json.loads((gold / "gold.jsonl").read_text().splitlines()[0]).keys()
    assert Counter(labels(gold, "de").values()) == {"sports": 8, "health": 4, "travel": 2}
    mine = predict(gold, "mine", {"de-de": (8, 2, 0)})
    assert pairs_of(run("--gold", gold, mine))["de", "de"]["value"] == pytest.approx(10 / 14)
    call_command("evaluate", "--gold", str(gold), str(mine))
    assert "Each class has 2 to 8 test documents, so accuracy applies" in " ".join(capsys.readouterr().out.split())


def test_two_systems_are_compared_on_the_same_documents_with_the_paired_test_and_holm(gold, predict, run):
    mine = predict(gold, "mine", {"de-en": (9, 9, 9), "en-en": (8, 8, 8), "fr-en": (5, 5, 5), "ja-en": (1, 1, 1)})
    other = predict(gold, "other", {"de-en": (2, 3, 4), "en-en": (8, 8, 8), "fr-en": (-5, -5, -5), "en-ja": (1, 1, 1)})
    report = run("--gold", gold, mine, "--against", other)
    comparison = report["comparison"]
    rows = {tuple(row["of"].values()): row for row in comparison["rows"] if row["of"]}
    assert list(rows) == [("de", "en"), ("en", "en"), ("fr", "en")]
    alone = {("de", "en"): (18, 0), ("en", "en"): (0, 0), ("fr", "en"): (15, 15)}
    for pair, (ones, others) in alone.items():
        assert rows[pair]["note"] == f"only A is right: {ones}, only B is right: {others}"
    p_values = [mcnemar(*both) for both in alone.values()]
    assert [row["p"] for row in rows.values()] == p_values
    assert [row["p_holm"] for row in rows.values()] == holm(p_values)
    assert [row["value"] for row in rows.values()] == pytest.approx([0.6, 0, 0])
    assert [row["better"] for row in rows.values()] == ["first", None, None]
    mean = figures(comparison, "mean_accuracy")
    assert (mean["value"], mean["better"]) == (pytest.approx(0.2), "first")
    assert figures(comparison, "transfer")["value"] == pytest.approx(0.3)
    assert comparison["other"]["spelled"] == "other"
    assert report["told"] == ["2 language pairs have predictions from only one system and cannot be compared."]
    back = figures(run("--gold", gold, other, "--against", mine)["comparison"], "mean_accuracy")
    assert (back["value"], back["better"]) == (pytest.approx(-0.2), "second")


def test_predictions_are_for_one_set_and_a_folder_is_not_compared_with_one_of_other_pairs(gold, made, predict):
    mine, other = predict(gold, "mine", {"de-en": (9, 9, 9)}), predict(gold, "other", {"en-de": (9, 9, 9)})
    assert refusal("--gold", gold, mine, "--against", other).startswith("mine and other have no language pair in")
    assert refusal("--gold", gold, "--gold", made / "kept", mine).startswith("2 gold sets were specified, but")
    assert refusal("cld2", "--gold", gold).startswith("The corpus 'sib' does not exist")


@pytest.fixture
def all_pairs(gold, predict):
    def make(name, best):
        hits = {f"{train}-{test}": (best, 9, 5 + (train == test)) for train in (*SOURCES, "joint") for test in SOURCES}
        return predict(gold, name, {pair: of for pair, of in hits.items() if pair != "ja-ru"} | {"fr-en": (9, 9, 9)})

    return make


def test_the_report_has_a_matrix_of_the_pairs(gold, all_pairs, tmp_path, capsys):
    sides = all_pairs("mine", 8), "--against", all_pairs("other", 4)
    text, html, report, forms = in_three_forms(tmp_path / "report", capsys, *sides, "--gold", gold)
    for words in forms:
        assert as_percent(figures(report, "transfer")) in words
        assert "1 pair has no prediction file" in words
        assert "Documents in different languages with the same sentence are treated as translations" in words
    matrix = text[text.index("\ntrained on ") :].split("\n\n")[0].splitlines()[1:]
    assert matrix[0].split() == ["trained", "on", *sorted(SOURCES)]
    assert [line.split()[0] for line in matrix[1:]] == [*sorted(SOURCES), "joint"]
    # On the diagonal 8, 9 and 6 of ten, else 8, 9 and 5.
    assert matrix[1].split()[1:3] == ["(76.7%)", "73.3%"]
    assert matrix[6].split()[7] == "–"
    assert '<td class="number">90.0% <small>[' in html
