"""Tasks of the designs that ask about one language at a time: opened on a real corpus, worked on, exported."""

from collections import Counter

import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.goldsets.exporter import export
from annotate.goldsets.gold_set import read_gold_set
from annotate.kinds import Answer
from annotate.models import Task
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from corpora.core.languages import ARTICLE_LABELS
from corpora.models import Draw, Item
from corpora.predictions.predictor_labels import find_predictor, triggers
from tests.annotate.actions.test_opening import everything, refused
from tests.annotate.acts import NO_CHECKS
from tests.annotate.corpus import NAME
from tests.annotate.goldsets.set_contents import card_of, json_lines

# The demo's posts are of July 2014.
WINDOWS = ["--history", "2014-07-01..2014-07-16", "--window", "2014-07-16..2014-08-01"]
PRECISION = ["--design", "precision", "--predictor", "cld2"]
NONE_OF_PRECISION = "is not an option of verify tasks drawn by the precision-oriented design. Remove it."
RECALL = ["--design", "recall", "--predictor", "fasttext", *WINDOWS]


@pytest.fixture
def open_task(demo_corpus, capsys):
    """open_task("t", *PRECISION, languages="de nl", size=10) runs the command; returns (its output, its notes)."""

    def run(name, *options, languages=None, size=None, seed="7"):
        capsys.readouterr()
        fields = {"languages": languages and languages.split(), "size": size}
        fields = NO_CHECKS | {option: value for option, value in fields.items() if value is not None}
        call_command("open_task", name, *options, corpus=NAME, seed=seed, **fields)
        return capsys.readouterr()

    return run


@pytest.fixture
def reader(person):
    return person("ann", "de nl no en fr es pt it")


def work(task, reader, label_of):
    """Answer all of the reader's units with label_of(unit), or skip where it is None."""
    while lease := take(reader, task):
        label = label_of(lease.unit)
        if label is None:
            skip(reader, lease.pk)
        else:
            judge(reader, lease.pk, Answer(label))


def keys(task, language):
    return list(task.units.filter(asked=language).order_by("position").values_list("item__key", flat=True))


# --- opening


def test_a_precision_task_asks_of_posts_that_the_predictor_labels_so_whether_they_are(open_task):
    out, _ = open_task("t", *PRECISION, languages="de nl", size=10)
    task = Task.objects.get()
    assert (task.kind_slug, task.labels) == ("verify", ["de", "nl"])
    assert Counter(task.units.values_list("asked", flat=True)) == {"de": 10, "nl": 10}
    for unit in task.units.select_related("item"):
        assert unit.item.votes["cld2"][0][0] == unit.asked
        assert (unit.stage, unit.language, unit.round) == (stages.QUEUED, unit.asked, 1)
    draws = Draw.objects.values_list("design", "language", "predictor", "asked", "size")
    assert list(draws) == [("precision", language, "cld2", 10, 10) for language in ("de", "nl")]
    assert "20 posts drawn" in out
    assert "20 items queued for readers, 0 of them decoys; 0 copies of others, 0 labels reused." in out


def test_a_recall_task_asks_of_its_authors_posts_whatever_their_language(open_task):
    open_task("t", *RECALL, languages="de", size=30)
    task = Task.objects.get()
    firsts = Counter(unit.item.votes["fasttext"][0][0] for unit in task.units.select_related("item"))
    assert len(firsts) > 3
    assert {unit.item.posted_at.day >= 16 for unit in task.units.select_related("item")} == {True}
    assert set(task.units.values_list("language", "asked")) == {("de", "de")}
    [draw] = task.draws.all()
    assert draw.parameters["share"] == "1/10"
    assert draw.parameters["window"] == ["2014-07-16T00:00:00+00:00", "2014-08-01T00:00:00+00:00"]


@pytest.mark.parametrize(("design", "options"), [("precision", PRECISION), ("recall", RECALL)])
def test_all_languages_are_those_of_the_label_list_or_with_readers_and_a_note_names_the_others(
    open_task, person, design, options
):
    predictor = find_predictor(NAME, options[options.index("--predictor") + 1])
    outside = sorted({*triggers(NAME, predictor)} - {"und", *ARTICLE_LABELS, "zh"})
    assert len(outside) > 10
    person("reads one of them", outside[0])
    _, notes = open_task("t", *options, languages="all", size=2)
    task = Task.objects.get()
    labels = {*task.labels}
    assert labels <= {*ARTICLE_LABELS, "zh", outside[0]}
    assert {outside[0], "zh", "de"} <= labels or design == "recall"
    assert f" with {outside[1]}, {outside[2]}" in " ".join(notes.split())
    assert "To draw for these too, specify all languages with --languages" in " ".join(notes.split())
    if design == "precision":
        assert len(labels) > 50
        assert sorted(task.draws.values_list("language", flat=True)) == task.labels
        assert set(Counter(task.units.values_list("asked", flat=True)).values()) <= {1, 2}
        positions = task.units.order_by("position").values_list("position", flat=True)
        assert [*positions] == [*range(1, task.units.count() + 1)]


def test_the_title_names_the_languages_where_they_are_few_and_none_is_given(open_task):
    cases = (
        ("de", [], "Is this post in German?"),
        ("nl de", [], "Is this post in German or Dutch?"),
        ("de nl cs", [], "Is this post in Czech, German or Dutch?"),
        ("de nl cs fr", [], "Is this post in the language?"),
        ("de", ["--title", "Deutsch?"], "Deutsch?"),
    )
    for number, (languages, options, title) in enumerate(cases):
        open_task(f"task-{number}", *PRECISION, *options, languages=languages, size=2)
        assert Task.objects.get(name=f"task-{number}").title == title


def test_a_language_of_which_every_label_is_reused_is_not_said_to_lack_decoys(open_task, reader):
    _, notes = open_task("one", *PRECISION, languages="de", size=10, seed="7")
    assert "there are no decoys for de, because nobody has labelled posts" in notes
    work(Task.objects.get(), reader, lambda unit: unit.asked)
    _, notes = open_task("two", *PRECISION, "--reuse", languages="de ja", size=10, seed="7")
    assert "there are no decoys for ja, because nobody has labelled posts" in notes
    out, notes = open_task("three", *PRECISION, "--reuse", languages="de", size=10, seed="7")
    assert "0 items queued for readers" in out
    assert "no decoys" not in notes


def test_a_task_without_decoys_reports_what_stays_unknown(open_task):
    out, notes = open_task("t", *RECALL, "--decoy-share", "0", languages="de", size=20)
    assert "with --decoy-share 0, it is not known how often readers answer Yes by mistake" in notes
    assert "2% and 5%" in notes
    assert "nobody has labelled" not in notes
    assert "if no reader answers Yes by mistake" in out


def test_a_dry_run_says_how_wide_intervals_will_be_with_the_decoys_that_there_are(open_task):
    out, notes = open_task("t", *RECALL, "--dry-run", languages="de", size=400)
    assert "Expected width of the 95% interval of recall, in points: de " in out
    assert "label a uniform task on the corpus first." in notes


def test_a_post_drawn_for_two_languages_is_two_units(open_task, reader):
    open_task("t", *RECALL, languages="de no", size=400)
    task = Task.objects.get()
    both = set(keys(task, "de")) & set(keys(task, "no"))
    assert both
    assert Item.objects.count() < task.units.count()
    work(task, reader, lambda unit: unit.asked)
    for unit in task.units.filter(item__key__in=both, copy_of=None):
        assert (unit.stage, unit.label) == (stages.LABELLED, unit.asked)


def test_the_same_seed_draws_the_same_and_a_smaller_task_is_the_beginning_of_a_larger(open_task):
    for name, size, seed in (("one", 8, "7"), ("two", 8, "7"), ("large", 15, "7"), ("other", 8, "8")):
        open_task(name, *PRECISION, languages="de", size=size, seed=seed)
    one, two, large, other = (keys(Task.objects.get(name=name), "de") for name in ("one", "two", "large", "other"))
    assert one == two == large[:8]
    assert set(one) != set(other)


def test_if_there_are_fewer_than_requested_all_are_drawn_and_command_and_card_state_it(open_task, reader, tmp_path):
    _, notes = open_task("t", *PRECISION, languages="de nl")
    task = Task.objects.get()
    sizes = Counter(task.units.values_list("asked", flat=True))
    assert max(sizes.values()) < 1000
    for language, posts in sizes.items():
        assert f"{language} {posts}" in notes
    export(task, tmp_path / "gold")
    _, card = card_of(tmp_path / "gold")
    for language, name in (("de", "German"), ("nl", "Dutch")):
        assert f"| {language} | {name} | {sizes[language]} | 1,000 | {sizes[language]} | 0 |" in card
    assert "fewer posts than were asked for, and all were taken, of `de`, `nl`." in card


# --- exporting


def answers(unit):
    """Yes where a detector that did not draw the post agrees, except for every third post, which is undefined."""
    if unit.position % 3 == 0:
        return "und"
    first = [code for code, _ in unit.item.votes["langid"][:1]]
    return unit.asked if first == [unit.asked] else f"not-{unit.asked}"


@pytest.mark.parametrize(("design", "options"), [("recall", RECALL), ("precision", PRECISION)])
def test_recall_keeps_what_is_in_the_language_and_precision_all_that_people_said_and_the_card_says_so(
    open_task, reader, tmp_path, design, options
):
    open_task("t", *options, languages="de nl", size=40)
    task = Task.objects.get()
    work(task, reader, answers)
    manifest = export(task, tmp_path / "gold")
    counts = Counter((unit.copy_of or unit).label for unit in task.units.select_related("copy_of"))
    of_recall = {"not-nl", "not-de"} if design == "recall" else set()
    assert set(counts) >= {"de", "nl", "und", *of_recall}
    expected = {label: count for label, count in counts.items() if design == "precision" or label in ("de", "nl")}
    rows, left_out = (json_lines(tmp_path / "gold" / f"{name}.jsonl") for name in ("gold", "left_out"))
    assert Counter(row["label"] for row in rows) == expected == manifest["counts"]["by_label"]
    assert len(rows) + len(left_out) == manifest["counts"]["posts"] == task.units.count()
    assert {row["left_out"] for row in left_out} == ({"other_label"} if design == "recall" else set())
    pairs = [line.split("\t") for line in (tmp_path / "gold" / f"{design}_oriented.tsv").read_text().splitlines()]
    assert sorted(pairs) == sorted([row["label"], row["id"]] for row in rows)
    for row in rows:
        assert row["asked"] in ("de", "nl")
        assert (row["stratum"], row["agreed"], row["audit_chance"]) == (None, None, 1.0)
        [draw] = [draw for draw in manifest["draws"] if draw["language"] == row["asked"]]
        assert row["chance"] == draw["chance"] == draw["size"] / draw["frame_size"]
    assert (manifest["audit"], manifest["finished"]) == (None, True)
    gold = read_gold_set(tmp_path / "gold")
    assert (gold.design, gold.name, gold.corpus, gold.frame_size) == (design, "t", NAME, None)
    assert gold.predictors == dict.fromkeys(["de", "nl"], "cld2" if design == "precision" else "fasttext")
    assert len(gold.rows) == len(rows)

    header, text = card_of(tmp_path / "gold")
    assert header["language"] == ["de", "nl"]
    assert header["annotations_creators"] == ["expert-generated"]
    assert header["configs"][0]["data_files"][0]["path"] == "gold.parquet"
    of_design = {
        "recall": (
            "`fasttext` takes for\nthe language",
            "- history: 2014-07-01 to 2014-07-16\n",
            "- window: 2014-07-16 to 2014-08-01\n",
            "- share: 1/10\n",
        ),
        "precision": ("posts were randomly drawn from those that `cld2` takes for it",),
    }
    for sentence in (
        f"A {design}-oriented set from the corpus `{NAME}`",
        "the question “Is this post in it?”",
        "None were hidden among the posts, so how often readers said Yes by mistake is not known.",
        *of_design[design],
        *(f"`{name}`" for name in manifest["files"] if name != "README.md"),
    ):
        assert sentence in text


# --- what is refused


@pytest.mark.parametrize(
    ("options", "languages", "message"),
    [
        (["--design", "precision"], "de", "--predictor is needed to open a task by the precision-oriented design."),
        (PRECISION, None, "--languages is needed to open a task by the precision-oriented design."),
        ([*PRECISION, "--labels", "de"], "de", f"--labels {NONE_OF_PRECISION}"),
        ([*PRECISION, "--window", "2014-07-05..2014-07-05"], "de", "is empty. Its end must be after its start."),
        ([*RECALL, "--window", "2014-07-10..2014-08-01"], "de", "must end before the window"),
        ([*RECALL, "--history", "2013-07-01..2013-08-01"], "de", "in the history"),
        (["--design", "precision", "--predictor", "mine@2"], "de", "mine"),
        (PRECISION, "xx", "'xx': unknown language code"),
        (PRECISION, "und", "'und': unknown language code"),
        ([*PRECISION, "--decoy-share", "2"], "de", "--decoy-share is 2. It must be 0 to 1."),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence_and_leaves_nothing_behind(open_task, options, languages, message):
    assert message in refused(open_task, "t", *options, languages=languages, size=5)


def test_a_language_for_which_nothing_is_found_has_its_record_too(open_task, tmp_path):
    _, err = open_task("t", *RECALL, languages="de sh", size=5)
    task = Task.objects.get()
    assert "Note: the design finds no post for: sh." in err
    assert task.labels == ["de"]
    assert task.draws.order_by("language").values_list("language", "asked", "size", "frame_size")[1] == ("sh", 5, 0, 0)
    manifest = export(task, tmp_path / "out")
    assert [(draw["language"], draw["size"]) for draw in manifest["draws"]] == [("de", 5), ("sh", 0)]


def test_a_design_that_finds_nothing_opens_no_task_and_one_that_verifies_cannot_be_extended(open_task):
    sentence = refused(open_task, "t", *RECALL, languages="yi", size=5)
    assert sentence.startswith("No post of corpus demo fits the recall-oriented design for any of the languages.")
    open_task("t", *PRECISION, languages="de", size=5)
    before = everything()
    sentence = "t cannot be enlarged, because it is drawn by the precision-oriented design. Open another"
    with pytest.raises(CommandError, match=sentence):
        call_command("extend_task", "t", size=20)
    assert everything() == before
