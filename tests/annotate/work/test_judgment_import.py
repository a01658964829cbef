"""Judgments that were made elsewhere, imported into a new task or an existing one."""

import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.utils import timezone

from annotate.actions.judgment_files import JudgmentFileError, import_judgments
from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.models import Annotator, Judgment, Lease, Task, Transition
from annotate.work import judgment_import
from annotate.work.people_file import BadTable
from annotate.work.queue import take
from annotate.work.task_creation import TaskError
from corpora.core import CorpusError, TooManyRejected
from corpora.models import Corpus, Item
from tests.annotate.people_tables import rows_of

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
HEADER = "task\tworker\tlabel"


@pytest.fixture
def file_of(tmp_path):
    """file_of("1 ann yes", "1 bob no") writes a TSV of task, worker and label; header= gives other columns."""

    def make(*rows, header=HEADER, name="judgments.tsv"):
        path = tmp_path / name
        path.write_text("\n".join([header, *("\t".join(row.split(" ")) for row in rows)]) + "\n", encoding="utf-8")
        return path

    return make


def reasons(imported):
    """Line -> reason, from the list on disk."""
    rows = imported.rejects_file.read_text(encoding="utf-8").splitlines() if imported.rejects_file else []
    return {row["line"]: row["reason"] for row in map(json.loads, rows)}


def output_of(capsys):
    return capsys.readouterr().out.strip()


def test_a_file_makes_a_closed_task_whose_units_have_the_labels_of_their_majorities(file_of):
    file = file_of("b ann 1", "b bob 1", "b cy 0", "a ann 0", "a bob 1", "c ann 10")
    imported = import_judgments("crowd", file)
    task = imported.task
    assert (imported.is_new, imported.judgments, imported.annotators, imported.units) == (True, 6, 3, 3)
    assert (task.kind_slug, task.labels, task.languages, task.is_open) == ("imported", ["0", "1", "10"], [], False)
    units = list(task.units.values_list("item__key", "item__text", "stage", "label", "redundancy"))
    assert units == [
        ("b", "b", stages.LABELLED, "1", 3),
        ("a", "a", stages.DISCARDED, "", 2),
        ("c", "c", stages.LABELLED, "10", 1),
    ]
    moves = Transition.objects.filter(unit__item__key="b").values_list("event", "to_stage", "label", "judgment__label")
    assert list(moves) == [("asked", "QUEUED", "", None), ("answered", "LABELLED", "1", "0")]
    assert imported.stages == {stages.LABELLED: 2, stages.DISCARDED: 1}


def test_judgments_keep_the_time_in_the_column_answered_at(file_of):
    header = f"{HEADER}\tanswered_at"
    imported = import_judgments(
        "crowd", file_of("a ann 1 2020-05-01T10:00:00Z", "a bob 1 ", "b ann 0 2999-01-01", header=header)
    )
    ann, bob = imported.task.units.get(item__key="a").judgments.order_by("pk")
    assert ann.answered_at.isoformat() == "2020-05-01T10:00:00+00:00"
    assert timezone.now() - bob.answered_at < timedelta(minutes=1)
    assert reasons(imported) == {4: "The time 2999-01-01 is in the future."}


def test_workers_become_annotators_of_one_task_who_cannot_log_in_and_bear_a_name_that_nobody_can_type(
    file_of, person, client
):
    import_judgments("crowd", file_of("a w1 x", "a w/2 y", "a w3 x"))
    users = User.objects.filter(annotator__isnull=False).order_by("username")
    assert [user.username for user in users] == ["imported:crowd:w/2", "imported:crowd:w1", "imported:crowd:w3"]
    assert not any(user.is_active or user.has_usable_password() or user.is_staff for user in users)
    assert all(one.pseudonym.startswith("annotator-") for one in Annotator.objects.all())
    with pytest.raises(BadTable, match="is not a valid user name"):
        rows_of("username,name,languages\nimported:crowd:w1,W,de:5\n")
    # Each answer has a closed lease and a place of its own.
    assert list(Lease.objects.values_list("place", "outcome")) == [(n, "answered") for n in (1, 2, 3)]
    assert Judgment.objects.filter(kind="answer", lease__closed_at__isnull=False, shown_at=None).count() == 3
    import_judgments("other", file_of("a w1 x"))
    assert Annotator.objects.count() == 4
    client.force_login(person("eve", "en").user)
    answers = client.get("/api/v1/tasks/crowd/").json()["answers"]
    assert [(answer["asked"], answer["label"]) for answer in answers] == [("", "x"), ("", "y")]


def test_a_second_answer_by_a_worker_is_rejected_with_its_line_or_kept_for_analysis_only(file_of):
    file = file_of("a w1 x", "a w1 y", "a w2 x", "a w1 x")
    imported = import_judgments("crowd", file)
    assert reasons(imported) == dict.fromkeys((3, 5), "w1 has already answered a with x. The first answer counts.")
    assert list(Judgment.objects.values_list("kind", "label")) == [("answer", "x"), ("answer", "x")]
    later = import_judgments("crowd", file, keep_repeats=True)
    assert (later.already, later.repeats, later.rejects_file) == (2, 2, None)
    assert not imported.rejects_file.exists()
    assert [judgment.lease for judgment in Judgment.objects.filter(kind="repeat")] == [None, None]
    assert imported.task.units.get().label == "x"


@pytest.mark.parametrize("keep_repeats", [False, True])
def test_run_again_it_adds_nothing_and_rejects_the_same(file_of, keep_repeats):
    file = file_of("a w1 x", "a w1 x", "a w1 y", "a w2 x", "b w1 q", "b w1 ")
    first = import_judgments("crowd", file, keep_repeats=keep_repeats)
    before = (reasons(first), list(Judgment.objects.values()), list(Transition.objects.values()))
    again = import_judgments("crowd", file, keep_repeats=keep_repeats)
    assert (again.is_new, again.judgments, again.repeats, again.units) == (False, 0, 0, 0)
    assert again.already == first.judgments + first.repeats
    assert (reasons(again), list(Judgment.objects.values()), list(Transition.objects.values())) == before
    assert Annotator.objects.count() == 2


def test_rows_that_cannot_be_taken_are_listed_with_line_and_reason(file_of):
    long, odd = "w" * 71, "w\u202e"
    file = file_of("a w1 x", "a w2 ", "a  x", f"a {long} x", f"a {odd} x", "a w3", " w4 x", "a w5 z")
    imported = import_judgments("crowd", file, labels=["x", "y"])
    assert reasons(imported) == {
        3: "The label is empty.",
        4: "The worker is empty.",
        5: "The worker has 71 characters. The limit is 70.",
        6: "The worker contains a tab, a newline or another invisible character.",
        7: "The row has 2 fields, but the header has 3.",
        8: "The task is empty.",
        9: "The label 'z' is not one of the task's labels: x y.",
    }
    assert imported.judgments == 1


def test_json_may_have_numbers_be_one_array_and_have_other_names_for_its_columns(tmp_path):
    file = tmp_path / "judgments.jsonl"
    rows = [
        {"item": 7, "who": "w1", "answer": 1},
        {"item": 7, "who": 2, "answer": 0.5},
        {"item": 7, "who": 3},
        {"item": 7, "who": True, "answer": 1},
        {"item": 7, "who": 4, "answer": 1.0},
        {"item": 7, "who": 5, "answer": float("nan")},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    columns = {"task": "item", "worker": "who", "label": "answer"}
    imported = import_judgments("crowd", file, columns=columns)
    assert (imported.task.units.get().item.key, imported.task.labels) == ("7", ["1"])
    assert reasons(imported) == {
        2: "The label is 0.5, neither a string nor an integer; save it as text.",
        3: "The label is missing.",
        4: "The worker is True, neither a string nor an integer; save it as text.",
        6: "The label is nan, which programs write for a missing value.",
    }
    for name in ("array.json", "array.jsonl"):
        (tmp_path / name).write_text(json.dumps([rows[0], rows[4]], indent=1))
        imported = import_judgments(name.replace(".", "-"), tmp_path / name, columns=columns)
        assert (imported.judgments, imported.rejects) == (2, {})


def test_a_column_may_say_the_language_of_each_item(file_of):
    file = file_of("a w1 x de", "a w2 x fra", "b w1 x fre", "b w2 x klingon", header=f"{HEADER}\tlanguage")
    imported = import_judgments("crowd", file)
    assert imported.task.languages == ["de", "fr"]
    assert dict(imported.task.units.values_list("item__key", "item__language")) == {"a": "de", "b": "fr"}
    assert imported.notes == ["The languages of 2 rows were converted: fra as fr (1, line 3), fre as fr (1, line 4)."]
    assert reasons(imported) == {
        3: "a has the language de in an earlier row.",
        5: "The language 'klingon' is not a known language code; write a code such as de or zh-CN.",
    }


def test_the_units_of_a_task_there_is_get_the_judgments_and_wait_for_those_that_are_missing(
    make_records_task, person, file_of
):
    task = make_records_task("qa_match", 4, gold={"queue": ["1"]})
    done, open_one, split, labelled = task.units.filter(honeypot=False)
    pot = task.units.get(honeypot=True)
    reader = person("ann", "en")
    task.units.filter(pk=labelled.pk).update(stage=stages.LABELLED, label="1")
    file = file_of(
        *(f"{done.item.key} w{n} 1" for n in (1, 2, 3)),
        f"{open_one.item.key} w1 0",
        *(f"{split.item.key} w{n} {n % 2}" for n in (1, 2, 3, 4)),
        f"{labelled.item.key} w1 1",
        f"{pot.item.key} w1 1",
        "elsewhere w1 1",
        f"{done.item.key} w5 Good",
    )
    lease = take(reader, task)
    assert lease.unit in (done, open_one, split)
    imported = import_judgments(task.name, file)
    assert reasons(imported) == {
        10: f"{labelled.item.key} already has a label; import all judgments of an item in one file.",
        11: f"{pot.item.key} is a gold answer of the task crowd and cannot get judgments.",
        12: "elsewhere is not an item of the task crowd.",
        13: "The label 'Good' is not one of the task's labels: 1 0.",
    }
    for unit in (done, open_one, split):
        unit.refresh_from_db()
    assert (done.stage, done.label) == (stages.LABELLED, "1")
    assert (open_one.stage, open_one.judgments.count(), open_one.redundancy) == (stages.QUEUED, 1, 3)
    assert (split.stage, split.redundancy) == (stages.DISCARDED, 4)
    assert imported.stages == {stages.LABELLED: 1, stages.DISCARDED: 1}
    assert not Corpus.objects.filter(name=task.name).exists()


def test_what_a_manager_voided_does_not_come_back(file_of, manager):
    file = file_of("a w1 x", "a w2 x")
    import_judgments("crowd", file)
    Judgment.objects.filter(annotator__user__username="imported:crowd:w1").update(
        voided_at=timezone.now(), voided_by=manager
    )
    assert import_judgments("crowd", file).already == 2
    assert Judgment.objects.filter(voided_at=None).count() == 1


def test_where_it_breaks_off_nothing_is_written(file_of, monkeypatch):
    def broken(*args):
        raise RuntimeError("the machine went off")

    monkeypatch.setattr(judgment_import, "decide_all", broken)
    with pytest.raises(RuntimeError):
        import_judgments("crowd", file_of("a w1 x"))
    for model in (Task, Corpus, Item, User, Annotator, Lease, Judgment):
        assert not model.objects.exists()


WORDS = ("a ann good", "a bob bad", "b ann fair", "b bob good", "c ann bad", "c bob bad")


def test_words_are_no_grades_until_somebody_says_their_order(file_of, capsys):
    call_command("import_judgments", "words", file_of(*WORDS))
    with pytest.raises(CommandError, match=r"whose order is not known: bad, fair, good\. Import them"):
        call_command("agreement", "words", ordinal=True)
    call_command("import_judgments", "graded", file_of(*WORDS), labels="good fair bad")
    call_command("import_judgments", "numbers", file_of("a ann 1", "a bob 2", "b ann 10", "b bob 10"))
    capsys.readouterr()
    for task in ("graded", "numbers"):
        call_command("agreement", task, ordinal=True)
        assert "ordinal" in output_of(capsys)
    # Nor in a task created before their order was stored.
    draw = Task.objects.get(name="graded").draw
    del draw.parameters["labels_in_order"]
    draw.save()
    with pytest.raises(CommandError, match="whose order is not known"):
        call_command("agreement", "graded", ordinal=True)


def test_labels_that_differ_in_capital_letters_alone_are_told_apart_and_named(file_of, capsys):
    sentence = "The labels Yes and yes differ only in case"
    call_command("import_judgments", "cases", file_of("a ann Yes", "a bob yes", "b ann no", "b bob no"))
    assert sentence in capsys.readouterr().err
    assert Task.objects.get().labels == ["Yes", "no", "yes"]
    call_command("agreement", "cases")
    assert sentence in output_of(capsys)
    call_command("import_judgments", "plain", file_of("a ann yes"))
    assert capsys.readouterr().err == ""
    call_command("agreement", "plain")
    singular = (
        "1 judgment by 1 annotator on 1 item, none of them with two or more judgments, so there is no agreement to me"
    )
    assert singular in " ".join(output_of(capsys).split())


def test_of_too_many_rejects_the_first_that_counts_is_said_and_no_task_is_made(file_of):
    file = file_of("a w1 x", "a w1 x", "b w1 x", "c w1 q")
    for labels, most, sentence in (
        (["x", "y"], 0.01, r"1 of its 4 rows was rejected, .* line 5: The label 'q' is not one"),
        (["x", "y"], 0, r"First rejected row: line 5: "),
        (["0", "1"], 1, r"all of its 4 rows were rejected. First rejected row: line 2: .*'x' is not one"),
    ):
        with pytest.raises(TooManyRejected, match=sentence):
            import_judgments("crowd", file, labels=labels, max_rejects=most)
    with pytest.raises(JudgmentFileError, match="contains no rows"):
        import_judgments("crowd", file_of())
    assert not Task.objects.exists()
    assert import_judgments("crowd", file_of("a w1 x", "a w1 x"), max_rejects=0).judgments == 1


def test_what_cannot_be_imported_is_refused_with_what_to_do(file_of, make_task, make_records_task):
    file = file_of("a w1 x")
    make_task([("de", "en", "de")], asked="de", name="verify")
    make_records_task("qa_match", 1)
    Corpus.objects.create(name="taken")
    for name, options, sentence in [
        ("verify", {}, "verify asks about one language at a time"),
        ("crowd", {"labels": ["0", "1"]}, "crowd already has the labels 1 0. Remove --labels"),
        ("taken", {}, "The corpus 'taken' already exists"),
        ("../crowd", {}, "is not a valid task name"),
        ("new", {"labels": ["x", "x"]}, "--labels contains the same label twice"),
        ("new", {"labels": ["x" * 65]}, "more than 64 characters"),
    ]:
        with pytest.raises(TaskError if name == "taken" else JudgmentFileError, match=sentence):
            import_judgments(name, file, **options)
    with pytest.raises(CorpusError, match="has no column label"):
        import_judgments("new", file_of(header="task\tworker\tanswer"))


def test_the_command_ends_in_one_sentence_with_counts(file_of, capsys):
    file = file_of("a w1 x", "a w1 y", "a w2 x", "b w1 y")
    call_command("import_judgments", "crowd", str(file))
    output = output_of(capsys)
    assert output.startswith(
        "Task crowd is new: 3 judgments of 2 annotators on 2 items imported (2 labelled), 0 repeats kept for analysis; "
        "0 rows were imported before, 1 was rejected, listed in "
    )
    call_command("import_judgments", "crowd", str(file), "--keep-repeats")
    assert output_of(capsys) == (
        "Task crowd: no new judgments, 1 repeat kept for analysis; 3 rows were imported before, 0 were rejected."
    )
    with pytest.raises(CommandError, match="The fields are: task, worker, label"):
        call_command("import_judgments", "crowd", str(file), "--column", "item=a")


def test_a_word_for_none_is_an_answer_if_labels_name_it(file_of):
    imported = import_judgments("named", file_of("a r1 None", "a r2 None", "b r1 Some"), labels=["None", "Some"])
    assert (imported.judgments, imported.rejects_file) == (3, None)


def test_1_0_and_1_are_one_label_and_a_note_says_so(file_of, tmp_path, capsys):
    file = file_of("1 a 1.0", "1 b 1", "1 c 1.0", "2 a 0", "2 b 0.0", "2 c 0")
    gold = tmp_path / "gold.tsv"
    gold.write_text("task\tlabel\n1\t1\n2\t0.0\n")
    call_command("import_judgments", "crowd", file)
    assert (
        "The labels of 3 rows were corrected: 1.0 as 1 (2, first in line 2), 0.0 as 0 (1, line 6)."
        in capsys.readouterr().err
    )
    assert Task.objects.get().labels == ["0", "1"]
    # True labels match even if the task's labels are written as 1.0.
    import_judgments("floats", file_of("1 a 1.0", "1 b 1.0", "2 a 0.0", "2 b 0.0"), labels=["0.0", "1.0"])
    for task in ("crowd", "floats"):
        call_command("agreement", task, gold=gold, json=True)
        report = json.loads(output_of(capsys))["all"]
        assert (report["nominal"]["value"], report["gold"]["majority"]["value"]) == (1.0, 1.0)


def test_labels_items_and_workers_that_look_the_same_are_one_and_a_note_says_which(tmp_path, capsys):
    file = tmp_path / "judgments.csv"
    rows = ("1,a,café", "1,b,cafe\u0301", '2,a," yes"', "2,b,yes", "é,zoé,yes", "e\u0301,zoe\u0301,yes", "é,bob,yes")
    file.write_text("\n".join(["task,worker,label", *rows]), encoding="utf-8")
    call_command("import_judgments", "crowd", file)
    printed = capsys.readouterr()
    assert (
        "The labels of 2 rows were corrected: cafe\u0301 (NFD) as café (1, line 3), ' yes' as yes (1, line 4)."
        in printed.err
    )
    assert printed.out.startswith("Task crowd is new: 6 judgments of 4 annotators on 3 items imported")
    assert Task.objects.get().labels == ["café", "yes"]
