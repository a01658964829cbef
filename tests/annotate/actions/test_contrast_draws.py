"""Draws that compare two systems: mostly items on which they differ, with known inclusion chances."""

import json

import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import Task
from annotate.work.judgments import judge
from annotate.work.queue import take
from corpora.core.languages import ARTICLE_LABELS, LANGUAGES
from corpora.draws.part_draws import IDS, sample_contrasted
from corpora.predictions.predictor_labels import find_predictor, predicted_labels
from tests.annotate.acts import settle
from tests.annotate.corpus import LICENCE, NAME, POSTS, SOURCE
from tests.annotate.evaluation.figures import KIND, figures, rows_of, written

pytestmark = pytest.mark.django_db

LINES = [json.loads(line) for line in POSTS.read_text(encoding="utf-8").splitlines()]
KEYS = [line["id"] for line in LINES]
CODES = {line["id"]: line["origin"].partition("/")[2].replace("zh", "zh-CN").replace("nb", "no") for line in LINES}
TRUTH = {key: code if code in ARTICLE_LABELS else "und" for key, code in CODES.items()}


def labels_of(spelled):
    """Return the predictor's labels by id."""
    return predicted_labels(NAME, find_predictor(NAME, spelled), KEYS)


def differing(*systems):
    one, other = map(labels_of, systems)
    return {key for key in KEYS if one[key] != other[key]}


def predict(folder, name, rows, corpus="reviews"):
    path = written(folder / f"{name}.csv", rows)
    call_command("import_predictions", corpus, path, name=name, version="1", verbosity=0)


def import_predictor(tmp_path, name, wrong):
    """Import a predictor that answers English for every `wrong`-th post and is right otherwise."""
    rows = [(key, "en" if number % wrong == 0 else TRUTH[key]) for number, key in enumerate(KEYS)]
    predict(tmp_path, name, [("id", "label"), *rows], NAME)


def open_compared(*systems, name="duel", **options):
    how = {"corpus": NAME, "seed": "1", "design": "compare", "size": "60"} | options
    call_command("open_task", name, **how, systems=list(systems), verbosity=0)
    return Task.objects.get(name=name)


def test_people_are_asked_about_all_of_it_and_most_of_it_is_where_the_two_differ(demo_corpus, capsys):
    task = open_compared("langid", "cld2")
    output = capsys.readouterr().out
    differ = differing("langid", "cld2")
    assert task.kind.slug == "language"
    units = task.units.select_related("item")
    assert {unit.stage for unit in units} <= {stages.QUEUED, stages.COPIED}
    drawn = {unit.item.key for unit in units}
    assert len(drawn) == 60
    assert len(drawn & differ) == min(48, len(differ))
    assert f"langid and cld2 differ on {len(differ):,} of 1,525 posts; 48 of these were drawn, and 12 of" in output
    assert not task.units.filter(audited=True).exists()


def answer_all(task, person):
    """Readers answer the truth, and an adjudicator decides what is left."""
    reads = " ".join(f"{code}:5" for code in LANGUAGES)
    for reader in (person("ann", reads), person("bob", reads)):
        while lease := take(reader, task):
            judge(reader, lease.pk, Answer(TRUTH[lease.unit.item.key]))
    adjudicator = person("eve", reads, adjudicates=True)
    for unit in task.units.filter(stage=stages.ADJUDICATION).select_related("item"):
        settle(adjudicator, unit, TRUTH[unit.item.key])


def accuracy_of(labels):
    return sum(labels[key] == TRUTH[key] for key in KEYS) / len(KEYS)


def test_the_difference_that_is_measured_is_that_of_the_whole_corpus(demo_corpus, person, tmp_path, capsys):
    import_predictor(tmp_path, "good", 60)
    import_predictor(tmp_path, "poor", 25)
    task = open_compared("good@1", "poor@1", size="100", check_share="0")
    answer_all(task, person)
    gold = tmp_path / "gold"
    call_command("export_gold", "duel", out=gold, verbosity=0)
    rows = rows_of(gold)
    differ = len(differing("good@1", "poor@1"))
    assert {row["chance"] for row in rows} == {1.0, (100 - differ) / (len(KEYS) - differ)}
    assert {row["stratum"] for row in rows} == {None}
    assert "drawn so that" in (gold / "README.md").read_text()
    assert not [path.name for path in gold.iterdir() if path.suffix == ".tsv"]
    capsys.readouterr()
    call_command("evaluate", "good@1", gold=[gold], against="poor@1", json=True)
    report = json.loads(capsys.readouterr().out)
    whole = report["comparison"]["rows"][0]
    assert (whole["measure"], whole["of"], whole["better"]) == ("accuracy", {}, "first")
    assert whole["value"] == pytest.approx(accuracy_of(labels_of("good@1")) - accuracy_of(labels_of("poor@1")))
    assert whole["low"] < whole["value"] < whole["high"]
    coarse = [(row["id"], "zh" if row["label"].startswith("zh") else row["label"]) for row in rows]
    with pytest.raises(CommandError, match=r"has labels that are not in the set: 'zh'"):
        call_command("evaluate", str(written(tmp_path / "coarse.tsv", coarse)), gold=[gold])
    accuracy = figures(report, "accuracy")
    assert accuracy["low"] <= accuracy_of(labels_of("good@1")) <= accuracy["high"]


def contrasted(corpus, *systems, size):
    return sample_contrasted(corpus, None, systems=systems, size=size, seed="1", labels=(), of_records=False)


def test_a_label_and_its_equivalent_do_not_differ(demo_corpus, tmp_path):
    import_predictor(tmp_path, "good", 60)
    [sample] = contrasted(demo_corpus, "good@1", "langid", size=500)
    one, other = labels_of("langid"), labels_of("good@1")
    chinese = {key for key in KEYS if (one[key], other[key]) == ("zh", "zh-CN")}
    assert chinese
    assert not chinese.intersection(sample.parameters[IDS]["differ"])


def test_a_larger_draw_has_the_posts_of_a_smaller_one(demo_corpus):
    draws = (contrasted(demo_corpus, "langid", "cld2", size=size) for size in (20, 60))
    small, large = ({row["id"] for sample in samples for row in sample.rows} for samples in draws)
    assert len(small) == 20
    assert small < large


TWO = ("cld2", "langid")


@pytest.mark.parametrize(
    ("systems", "options", "refusal"),
    [
        (("cld2", "cld2"), {}, "--systems contains cld2 twice. Specify two different predictors"),
        (("cld2", "langid", "fasttext"), {}, "--systems has 3 predictors. Specify the two"),
        (("cld2", "good@2"), {}, "Corpus demo has no predictor 'good@2'. Available predictors: "),
        (("good@1", "same@1"), {}, "good@1 and same@1 assign the same labels to all 1,525 posts, so they cannot be"),
        (TWO, {"size": None}, "--size is needed to open a task by the compare design"),
        ((), {}, "--systems is needed to open a task by the compare design"),
        (TWO, {"design": "uniform"}, "--systems is not an option of language tasks drawn by the uniform"),
        (TWO, {"audit_share": "0.1"}, "--audit-share is not an option of language tasks drawn by the compare"),
        (TWO, {"languages": "de"}, "--languages is not an option of language tasks drawn by the compare"),
        (TWO, {"labels": "de xx"}, "'xx': unknown language code"),
        (TWO, {"kind": "verify"}, "verify tasks are not drawn by the compare design. Set --design to"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_sentence(demo_corpus, tmp_path, systems, options, refusal):
    import_predictor(tmp_path, "good", 60)
    import_predictor(tmp_path, "same", 60)
    with pytest.raises(CommandError) as refused:
        open_compared(*systems, **options)
    assert refusal in str(refused.value)
    assert not Task.objects.exists()


def test_a_predictor_that_has_not_seen_posts_that_came_later_is_refused(demo_corpus, tmp_path):
    import_predictor(tmp_path, "good", 60)
    more = tmp_path / "more.jsonl"
    more.write_text(json.dumps({"id": "later", "text": "Guten Morgen, das ist ein neuer Satz."}) + "\n")
    call_command("import_corpus", NAME, str(more), licence=LICENCE, text_may_leave=True, source=SOURCE, verbosity=0)
    call_command("prelabel", NAME, processes=1)
    with pytest.raises(CommandError, match="predictions of good@1 cover only 1,525 of 1,526 posts"):
        open_compared("good@1", "cld2")


def test_the_draw_is_not_enlarged_and_has_no_preferences(demo_corpus):
    open_compared("langid", "cld2")
    with pytest.raises(CommandError, match=r"run `assay evaluate .*langid.* --against .*cld2.* --gold FOLDER`"):
        call_command("preferences", "duel")
    with pytest.raises(CommandError, match="compare design"):
        call_command("extend_task", "duel", size="100", verbosity=0)


def test_the_page_of_a_new_task_offers_it_with_the_predictors(demo_corpus, tmp_path, desk):
    import_predictor(tmp_path, "good", 60)
    where = f"/manage/new-task/?corpus={NAME}"
    assert "kind=language&amp;design=compare" in desk.get(where).content.decode()
    page = desk.get(f"{where}&kind=language&design=compare").content.decode()
    assert 'value="good@1"' in page
    assert 'value="cld2"' in page
    assert "audit_share" not in page


NUMBER = 300


def truth(number):
    return "123"[number % 3]


def label_of(system, number):
    """The first errs on 15 records and the second on 30, five of them the same with the same label."""
    errs = number < 15 if system == "first" else 10 <= number < 40
    return "123"[(number + errs) % 3]


@pytest.fixture
def reviews(tmp_path):
    """The corpus with the predictions of two systems."""
    rows = [(f"r{n}", "en" if n % 2 else "de", f"Review {n} of it.") for n in range(NUMBER)]
    path = written(tmp_path / "reviews.csv", [("id", "language", "review"), *rows])
    call_command("import_corpus", "reviews", path, fields="review", licence="CC0-1.0", source="made", verbosity=0)
    for system in ("first", "second", "same"):
        labels = [(f"r{n}", label_of(system.replace("same", "first"), n)) for n in range(NUMBER)]
        predict(tmp_path, system, [("id", "label"), *labels])
    (tmp_path / "mood.toml").write_text(KIND)
    return str(tmp_path / "mood.toml")


def open_of_records(kind, *systems, name="mood", **options):
    how = {"kind": kind, "corpus": "reviews", "seed": "1", "design": "compare", "test_items": "0", "gold_share": "0"}
    call_command("open_task", name, **how | options, systems=list(systems), verbosity=0)
    return Task.objects.get(name=name)


def test_most_of_what_is_drawn_is_where_the_two_differ(reviews):
    task = open_of_records(reviews, "first@1", "second@1", size="50")
    numbers = [int(unit.item.key[1:]) for unit in task.units.select_related("item")]
    differ = {n for n in range(NUMBER) if label_of("first", n) != label_of("second", n)}
    assert len(differ) == 35
    assert len(numbers) == 50
    assert set(numbers) >= differ  # all of them: they are fewer than four fifths of the requested number
    assert {unit.item.language for unit in task.units.select_related("item")} == {"en", "de"}
    with pytest.raises(CommandError, match="assign the same labels to all 300 records"):
        open_of_records(reviews, "first@1", "same@1", size="20", name="twins")
    assert Task.objects.count() == 1


def test_the_difference_on_records_is_that_of_the_whole_corpus(reviews, person, tmp_path, capsys):
    task = open_of_records(reviews, "first@1", "second@1", size="50")
    ann = person("ann", "en:5 de:5")
    while lease := take(ann, task):
        judge(ann, lease.pk, Answer(truth(int(lease.unit.item.key[1:]))))
    gold = tmp_path / "gold"
    call_command("export_gold", "mood", out=gold, verbosity=0)
    assert {row["chance"] for row in rows_of(gold)} == {1.0, 15 / 265}
    assert "part_ids" not in (gold / "manifest.json").read_text()
    capsys.readouterr()
    call_command("evaluate", "first@1", gold=[gold], against="second@1", json=True)
    whole = json.loads(capsys.readouterr().out)["comparison"]["rows"][0]
    assert (whole["measure"], whole["of"]) == ("accuracy", {})
    assert whole["value"] == pytest.approx(285 / 300 - 270 / 300)
    assert whole["low"] <= whole["value"] <= whole["high"]


@pytest.mark.parametrize(("label", "meant"), [("22", r" \(similar to '2'\)"), ("great", "")])
def test_a_system_whose_labels_are_no_answers_of_the_task_is_refused(reviews, tmp_path, label, meant):
    predict(tmp_path, "third", [("id", "label"), *((f"r{n}", label if n == 7 else truth(n)) for n in range(NUMBER))])
    refusal = f"third@1 has labels that the task does not have: '{label}'{meant}. Import .*(3, 2, 1)"
    with pytest.raises(CommandError, match=refusal):
        open_of_records(reviews, "first@1", "third@1", size="20")
    assert not Task.objects.exists()


def test_a_file_of_scores_is_not_imported_but_measured(reviews, tmp_path):
    with pytest.raises(CommandError, match="If the columns are scores of labels, use the file with `assay evaluate`"):
        predict(tmp_path, "third", [("id", "1", "2", "3"), ("r0", 0.1, 0.2, 0.7)])


def test_an_empty_label_of_a_record_is_imported_as_a_refusal(reviews, tmp_path):
    predict(tmp_path, "third", [("id", "label"), *((f"r{n}", "" if n < 10 else truth(n)) for n in range(NUMBER))])
    labels = predicted_labels("reviews", find_predictor("reviews", "third@1"), [f"r{n}" for n in range(NUMBER)])
    assert [key for key, label in labels.items() if label == "und"] == [f"r{n}" for n in range(10)]
    assert open_of_records(reviews, "first@1", "third@1", size="20").units.count() == 20
