"""Opening a task about records: what is drawn, what is hidden, and what is refused."""

import json
import re

import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.controls.gold_answers import GoldAnswerError, read_gold
from annotate.models import Task
from annotate.quality.guideline_versions import current
from corpora.models import Item

PURPOSES = ["practice"] * 2 + ["test"] * 16 + ["queue"] * 8


@pytest.fixture
def corpus(tmp_path):
    """A corpus `pairs` of 44 English and 34 German records, and a file with 26 gold answers in each language."""
    rows, gold = [], []
    for language, count in (("en", 44), ("de", 34)):
        for n in range(count):
            row = {"id": f"{language}{n}", "language": language, "question": f"q{n}?", "passage": f"{language} {n}"}
            rows.append(row)
            if n < len(PURPOSES):
                gold.append({"id": row["id"], "label": str(n % 2), "purpose": PURPOSES[n], "explanation": "So."})
    write(tmp_path / "pairs.jsonl", rows)
    write(tmp_path / "gold.jsonl", gold)
    call_command(
        "import_corpus",
        "pairs",
        str(tmp_path / "pairs.jsonl"),
        fields="question passage",
        licence="CC0-1.0",
        verbosity=0,
    )
    return tmp_path


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def open_task(folder, *more, name="t", gold="gold.jsonl"):
    options = ["--kind", "qa_match", "--corpus", "pairs", "--seed", "1"]
    call_command("open_task", name, *options, *(["--gold", str(folder / gold)] if gold else []), *more)
    return Task.objects.get(name=name)


def work(task):
    return task.units.filter(honeypot=False)


@pytest.mark.django_db
def test_gold_answers_are_never_work_nor_is_a_record_with_the_same_text(corpus, capsys):
    twin = {"id": "twin", "language": "en", "question": "q0?", "passage": "en 0"}
    write(corpus / "more.jsonl", [twin, twin | {"id": "other", "language": "de"}])
    call_command("import_corpus", "pairs", str(corpus / "more.jsonl"), licence="CC0-1.0")
    capsys.readouterr()
    task = open_task(corpus)
    keys = set(work(task).values_list("item__key", flat=True))
    assert keys == {f"en{n}" for n in range(26, 44)} | {f"de{n}" for n in range(26, 34)} | {"other"}
    assert task.units.filter(honeypot=True).count() == 16
    assert task.gold_answers.count() == 52
    printed = capsys.readouterr()
    assert re.search(r"27 records queued \(.*\), each for 3 people", printed.out)
    assert "Invite some; they must pass the test first.\n" in printed.err
    with pytest.raises(CommandError) as refused:
        call_command("extend_task", "t", "--size", "40")
    assert str(refused.value) == (
        "t cannot be enlarged, because it is drawn by the records design. Open another task for further records."
    )


@pytest.mark.django_db
def test_every_answer_of_the_draw_is_wanted_from_three_people_who_passed_a_test(corpus):
    task = open_task(corpus, "--languages", "en")
    assert not task.gold_answers.filter(item__language="de").exists()
    assert (task.languages, task.labels, task.redundancy, task.test_items) == (["en"], ["1", "0"], 3, 10)
    assert set(work(task).values_list("redundancy", flat=True)) == {3}
    assert set(task.guidelines.values_list("language", flat=True)) == {"de", "en", "fr"}
    assert current(task, "es").language == "en"
    # Files of guidelines have their language in their names. A gold answer of 1.0 means 1.
    for name in ("ours.md", "ours.fr.md"):
        (corpus / name).write_text(name, encoding="utf-8")
    gold = [json.loads(line) for line in (corpus / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
    write(corpus / "floats.jsonl", [row | {"label": f"{row['label']}.0"} for row in gold])
    guidelines = ("--guidelines", str(corpus / "ours.md"), str(corpus / "ours.fr.md"))
    tasks = [open_task(corpus, *guidelines, "--size", "5", name=name, gold="floats.jsonl") for name in "ab"]
    assert dict(tasks[0].guidelines.values_list("language", "text")) == {"en": "ours.md", "fr": "ours.fr.md"}
    assert set(tasks[0].gold_answers.values_list("label", flat=True)) == {"0", "1"}
    # The same seed gives the same units in the same order.
    first, second = (list(work(task).values_list("item__key", flat=True)) for task in tasks)
    assert first == second
    assert len(first) == 10


@pytest.mark.django_db
def test_two_gold_answers_that_say_the_same_are_refused(corpus):
    write(corpus / "more.jsonl", [{"id": "twin", "language": "en", "question": "q0?", "passage": "en 0"}])
    call_command("import_corpus", "pairs", str(corpus / "more.jsonl"), licence="CC0-1.0")
    gold = [json.loads(line) for line in (corpus / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
    write(corpus / "gold.jsonl", [*gold, {"id": "twin", "label": "1", "purpose": "queue"}])
    with pytest.raises(CommandError, match="The gold answers en0 and twin have the same content"):
        open_task(corpus)
    assert not Task.objects.exists()


@pytest.mark.django_db
def test_a_language_whose_hidden_answers_run_out_is_named(corpus, capsys):
    open_task(corpus, "--gold-share", "0.25")
    warnings = capsys.readouterr().err
    assert "run out" not in warnings
    assert "labels all items of en gets only 6 hidden gold answers, but the pause rule needs 8" in warnings
    open_task(corpus, "--gold-share", "0.4", name="other")
    warnings = capsys.readouterr().err
    assert "--gold-share 0.4 is rounded to 0.5, which is one in 2 items." in warnings
    assert "labels all of en meets 8" not in warnings
    assert "the 8 gold answers hidden in en run out for annotators who label more than 16 items there" in warnings
    assert "hidden in de" not in warnings


@pytest.mark.django_db
def test_what_cannot_work_is_refused_and_nothing_is_left(corpus):
    rows = [json.loads(line) for line in (corpus / "gold.jsonl").read_text().splitlines()]
    first, *others = rows
    one_label = [row | ({"label": "1"} if row["purpose"] == "queue" else {}) for row in rows]
    fields = "A web_ranking task needs the fields query, title, snippet, but the records of corpus"
    for gold, options, sentence in (
        (rows[:13], "", "The test in de asks 10 random questions. It needs at least 15"),
        (rows, "--test-items=11", "needs at least 17 gold answers with the purpose test"),
        (rows[:22] + rows[26:], "", "In en, only 4 gold answers have the purpose queue"),
        (
            one_label,
            "",
            "In de, 8 of the 8 gold answers with the purpose queue are 1, so a person who always gives this",
        ),
        (
            [*rows, first],
            "",
            "line 53: en0 occurs twice, but a gold answer can have only one purpose. Remove one of the rows.",
        ),
        ([*rows, first | {"id": "none"}], "", "none"),
        (
            [first | {"label": "2"}, *others],
            "",
            "The gold answer of en0: '2' is not a valid answer. Valid answers: 1, 0",
        ),
        ([first | {"purpose": "exam"}, *others], "", "line 1: the purpose is 'exam'; it must be one of practice"),
        ([first | {"label": ""}, *others], "", "line 1: a gold answer needs an id and a label."),
        (rows, "--redundancy=2", "With 2 as --redundancy, every item with two different answers is discarded"),
        (rows, "--aggregation=median", "The labels of qa_match are not grades, so they have no median."),
        (rows, "--aggregation=mean", "--aggregation is 'mean'. It must be one of majority, median, characters."),
        (rows, "--redundancy=3.5", "--redundancy must be a whole number."),
        (
            rows,
            "--audit-share=0.1",
            "--audit-share is not an option of qa_match tasks drawn by the records design. Rem",
        ),
        (rows, "--design=recall", "qa_match tasks are not drawn by the recall-oriented design. Set --design to re"),
        (rows, "--languages=xx", "xx"),
        (rows, "--kind=web_ranking", fields),
        (rows, "--kind=language --size=3 --stop-early", "an option of language tasks drawn by the uniform design"),
    ):
        write(corpus / "changed.jsonl", gold)
        with pytest.raises(CommandError) as refused:
            open_task(corpus, *options.split(), gold="changed.jsonl")
        assert sentence in str(refused.value)
        assert not Task.objects.exists()
        assert not Item.objects.exists()


@pytest.mark.django_db
def test_a_task_without_test_and_hidden_answers_needs_no_gold(corpus, capsys):
    task = open_task(corpus, "--test-items", "0", "--gold-share", "0", gold=None)
    assert work(task).count() == 78
    assert not task.gold_answers.exists()
    assert "Invite some.\n" in capsys.readouterr().err


@pytest.mark.django_db
def test_invited_people_who_have_not_passed_the_test_are_asked_to_take_it(corpus, capsys, person):
    for number in range(3):
        person(f"p{number}", "en de fr")
    open_task(corpus)
    warnings = capsys.readouterr().err
    assert "Invite some" not in warnings
    assert "3 people read English, but nobody has passed the test yet. Ask them to take it." in warnings


def test_gold_answers_of_a_table_with_gaps_are_taken_as_their_numbers(tmp_path):
    def read(*rows):
        write(tmp_path / "g.jsonl", rows)
        return [(row.id, row.label, row.explanation) for row in read_gold([tmp_path / "g.jsonl"])]

    assert read(
        {"id": "e\u0301", "label": 1.0, "purpose": "queue", "explanation": float("nan")},
        {"id": "b", "label": float("nan"), "purpose": float("nan")},
        {"id": "c", "label": "0", "purpose": "nan"},
        {"id": 0, "label": 0, "purpose": "test"},
    ) == [("é", "1", ""), ("0", "0", "")]
    with pytest.raises(GoldAnswerError, match=r"line 1: The id 2\.0 is a number that another program has rewritten"):
        read({"id": "2.0", "label": "1", "purpose": "queue"})
    with pytest.raises(GoldAnswerError, match="line 1: practice explains every item, but a has no explanation"):
        read({"id": "a", "label": "1", "purpose": "practice", "explanation": " "})
