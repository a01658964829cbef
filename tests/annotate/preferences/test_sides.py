"""Which of two systems is first for whom, the effect of choosing a side, and who can see it."""

import re
from collections import Counter
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from annotate.actions.registry import call_command
from annotate.controls.pair_order import sides_of
from annotate.core import stages
from annotate.core.estimation.proportions import proportion
from annotate.core.refusals import AlreadyAnswered, InvalidAnswer
from annotate.kinds import Answer
from annotate.models import Comparison, Judgment, Lease, Side, Task
from annotate.work import adjudication
from annotate.work.answer_changes import undo
from annotate.work.judgments import judge, skip
from annotate.work.queue import release, take
from tests.annotate.preferences.comparing import MARKS, open_comparison

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def even(counts: Counter) -> bool:
    """Return whether both systems were first equally often, within the interval."""
    (_, number), *_ = sorted(counts.items())
    interval = proportion(number, counts.total())
    return interval.low <= 0.5 <= interval.high


def test_of_hundreds_handed_out_either_system_stands_first_in_half_and_it_is_what_was_shown(compare, person):
    task = compare(number=100, redundancy=3)
    firsts = Counter()
    for name in ("ann", "bea", "cem"):
        somebody = person(name, "en")
        while lease := take(somebody, task):
            shown = sides_of(somebody, lease.unit)
            assert Side.objects.get(unit=lease.unit, annotator=somebody).first == shown.first
            assert shown.sets[0][0].startswith(MARKS[shown.first])
            firsts[shown.first] += 1
            judge(somebody, lease.pk, Answer("first"))
    assert firsts.total() == Side.objects.count() == 300
    assert even(firsts)
    # A person who always chooses the first side prefers either system half of the time, and this is stored.
    assert Counter(Judgment.objects.values_list("label", flat=True)) == firsts


def test_the_lots_of_two_people_and_of_two_tasks_have_nothing_to_do_with_each_other(person, tmp_path):
    tasks = [open_comparison(tmp_path, number=60, name=name, secret="") for name in ("one", "other")]
    assert len({task.secret for task in tasks}) == 2
    assert all(len(task.secret) == 64 for task in tasks)
    ann, bea = person("ann", "en"), person("bea", "en")
    same = [
        {unit.item.key: sides_of(who, unit).first for unit in task.units.select_related("item", "task")}
        for task, who in ((tasks[0], ann), (tasks[0], bea), (tasks[1], ann))
    ]
    for one, other in ((0, 1), (0, 2)):
        alike = sum(same[one][key] == same[other][key] for key in same[0])
        assert 10 < alike < 50  # of 60; 5.2 standard deviations


def test_the_order_stays_through_a_reload_a_return_a_skip_and_an_undo(compare, ann):
    task = compare(number=8)
    for _ in range(7):
        lease = take(ann, task)
        first = sides_of(ann, lease.unit).first
        assert sides_of(ann, take(ann, task).unit).first == first
        release(ann, lease.pk)
        assert sides_of(ann, lease.unit).first == first
        lease = take(ann, task)
        first = sides_of(ann, lease.unit).first
        skip(ann, lease.pk)
        again = undo(ann, task)
        assert again.unit_id == lease.unit_id
        assert sides_of(ann, again.unit).first == first
        judge(ann, again.pk, Answer("second"))
    # A stored side is kept even if a new draw would differ.
    lease = take(ann, task)
    other = "mt5" if sides_of(ann, lease.unit).first == "bert" else "bert"
    Side.objects.filter(unit=lease.unit).update(first=other)
    Lease.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    assert judge(ann, take(ann, task).pk, Answer("first")).label == other
    assert Side.objects.count() == 8


def test_a_task_is_deleted_with_its_sides(compare, ann):
    task = compare("mt5", "bert", "seq2seq")
    release(ann, take(ann, task).pk)
    call_command("delete", "talk", yes=True, verbosity=0)
    assert not any(model.objects.exists() for model in (Task, Side, Comparison))


@pytest.mark.parametrize("side", ["first", "second", "tie"])
def test_what_is_sent_as_a_side_is_stored_as_the_system_that_stood_there_and_no_system_can_be_sent(compare, ann, side):
    lease = take(ann, compare(number=1))
    for label in ("mt5", "bert", "none", "nobody"):
        with pytest.raises(InvalidAnswer) as refused:
            judge(ann, lease.pk, Answer(label))
        assert str(refused.value) == f"'{label}' is not a valid answer. Valid answers: first, second, tie."
    assert not Judgment.objects.exists()
    sides = sides_of(ann, lease.unit)
    judgment = judge(ann, lease.pk, Answer(side))
    assert judgment.label == {"first": sides.first, "second": sides.second, "tie": "tie"}[side]
    # Repeating the answer is a retry, and another answer is refused in terms of sides.
    assert judge(ann, lease.pk, Answer(side)) == judgment
    name = {"first": "Set 1", "second": "Set 2", "tie": "No difference"}[side]
    with pytest.raises(AlreadyAnswered, match=rf"^You have already answered {name}\. To change"):
        judge(ann, lease.pk, Answer("first" if side == "tie" else "tie"))


def answer_all(task, person, *systems):
    """Have three people answer all units, each for the system in this position or with a tie."""
    for name, system in zip(("ann", "bea", "cem"), systems, strict=True):
        annotator = person(name, "en")
        while lease := take(annotator, task):
            sides = sides_of(annotator, lease.unit)
            judge(annotator, lease.pk, Answer({sides.first: "first", sides.second: "second"}.get(system, "tie")))


@pytest.mark.parametrize(
    ("systems", "stage", "label"),
    [
        (("mt5", "mt5", "bert"), stages.LABELLED, "mt5"),
        (("bert", "tie", "bert"), stages.LABELLED, "bert"),
        (("tie", "tie", "mt5"), stages.LABELLED, "tie"),
        (("mt5", "bert", "tie"), stages.DISCARDED, ""),
    ],
)
def test_the_majority_is_of_systems_wherever_they_stood(compare, person, systems, stage, label):
    task = compare(number=6)
    answer_all(task, person, *systems)
    assert set(task.units.values_list("stage", "label")) == {(stage, label)}


def test_where_no_system_has_a_majority_an_adjudicator_decides_by_sides_of_their_own(compare, person):
    task = compare(number=12, on_conflict="ADJUDICATION")
    answer_all(task, person, "mt5", "bert", "tie")
    ada = person("ada", adjudicates=True)
    units = list(adjudication.to_adjudicate(task, ada))
    assert len(units) == 12
    for unit, cells in adjudication.rows(units, ada):
        assert cells == ["en", "Set 1 1, Set 2 1, No difference 1"]
        adjudication.settle(ada, unit.pk, Answer("first", reason="The guidelines say so"))
    sides = Side.objects.filter(annotator=ada)
    assert dict(sides.values_list("unit", "first")) == dict(task.units.values_list("pk", "label"))
    assert {"mt5", "bert"} == set(sides.values_list("first", flat=True))
    # A decision can be changed.
    unit = task.units.first()
    decision = adjudication.settle(ada, unit.pk, Answer("first", reason="The guidelines say so"))
    adjudication.unsettle(ada, unit.pk)
    second = adjudication.settle(ada, unit.pk, Answer("second", reason="I know"))
    assert decision.label == sides_of(ada, unit).first != second.label


# --- no annotator or adjudicator can find out the system of a set with pages or the API

# Two tasks differ only in which system suggested which replies. If the same replies come first in both, all responses
# must be the same byte for byte, so nothing in them depends on the system of a set.

SYSTEMS = ("mt5", "bert")
HTMX = {"HX-Request": "true"}
JSON = "application/json"
# Parts that differ between tasks and over time.
VARYING = (
    (r'(csrfmiddlewaretoken" value="|X-CSRFToken": ")\w+', r"\1"),
    (r'(name="(?:lease|judgment|question)" value=")\d+', r"\1"),
    (r'("(?:id|unit)": ?)\d+', r"\1"),
    (r"(/adjudication/)\d+|(decided=)\d+", r"\1\2"),
    (r"\d{4}-\d\d-\d\d(?:T| )[\d:.]+Z?|\d\d:\d\d:\d\d", "now"),
    (r'"active_seconds": ?[\d.]+|\d+\.\d s<', "0"),
    (r"(same|swapped)", "task"),
)


def plain(reply) -> str:
    """Return a reply with its headers, without the varying parts."""
    text = "\n".join([str(reply.status_code), *(f"{k}: {v}" for k, v in sorted(reply.items())), reply.content.decode()])
    text = re.sub(r"(?m)^(?:Content-Security-Policy|X-Request-ID|Content-Length): .*$", "", text)
    # The first page counts the day's work in both tasks.
    text = re.sub(r'(?s)<section class="own-work".*?</section>', "", text)
    text = re.sub(r"(?m)^\s*\n", "", text)
    for pattern, instead in VARYING:
        text = re.sub(pattern, instead, text)
    return text


def check_unnamed(pages) -> None:
    """Check that no reply names a system, except to repeat an invalid answer that was sent."""
    for page in pages:
        rest = re.sub(r"(?:'|&#x27;)(?:mt5|bert)(?:'|&#x27;) is not a valid answer", "", page)
        assert not re.search(r"mt5|bert", rest, re.IGNORECASE)


@pytest.fixture
def two(tmp_path):
    """Return two tasks of one comparison whose systems have swapped replies, and a function that makes the same replies
    come first for a person in both.
    """
    pear, plum = (lambda row: ["Pear 1", "Pear 2", "Pear 3"]), (lambda row: ["Plum 1", "Plum 2"])
    how = {"number": 1, "on_conflict": "ADJUDICATION"}
    tasks = [
        open_comparison(tmp_path, *SYSTEMS, name="same", replies={"mt5": plum, "bert": pear}, **how),
        open_comparison(tmp_path, *SYSTEMS, name="swapped", replies={"mt5": pear, "bert": plum}, **how),
    ]

    def alike(*people):
        for task in tasks:
            for number in range(1000):
                task.secret = f"secret {number}"
                unit = task.units.get()
                unit.task = task
                if all(sides_of(who, unit).sets[0][0] == "Plum 1" for who in people):
                    break
            task.save()
        return tasks

    return alike


def everything_tried(client, task, side) -> list:
    """Return all responses to a person who does everything that annotators can do, and tries what they cannot."""
    path, api = f"/tasks/{task.name}", f"/api/v1/tasks/{task.name}"
    lease = None

    def judged(answer):
        return client.post(f"{path}/judge/", {"lease": lease, "answer": answer}, headers=HTMX)

    tried = [client.get("/"), client.get(f"{path}/"), client.get(f"{api}/"), client.get("/api/v1/tasks/")]
    tried += [client.get(f"{path}/guidelines/"), client.post(f"{path}/start/", headers=HTMX)]
    lease = re.search(r'name="lease" value="(\d+)"', tried[-1].text)[1]
    tried += [client.get(f"{path}/"), client.post(f"{api}/next/"), client.get(f"{path}/answers/")]
    # Answers that a person may not send: names of systems, other people's answers, and several at once.
    tried += [judged(sent) for sent in (*SYSTEMS, "none", "gpt", "", ["first", "second"])]
    tried += [client.post(f"/api/v1/leases/{lease}/judge/", {"label": sent}, content_type=JSON) for sent in SYSTEMS]
    tried += [client.post(f"{path}/judge/", {"lease": lease, "skip": "1"}, headers=HTMX)]
    tried += [client.post(f"{path}/undo/", headers=HTMX)]
    lease = re.search(r'name="lease" value="(\d+)"', tried[-1].text)[1]
    tried += [judged(side), judged("tie" if side == "first" else "first"), judged(side)]
    tried += [client.post(f"/api/v1/leases/{lease}/judge/", {"label": side}, content_type=JSON)]
    tried += [client.get(f"{path}/answers/"), client.get("/"), client.get(f"{api}/progress/")]
    tried += [client.post(f"{api}/undo/"), client.get(f"{path}/")]
    lease = re.search(r'name="lease" value="(\d+)"', tried[-1].text)[1]
    tried += [client.post(f"/api/v1/leases/{lease}/judge/", {"label": side}, content_type=JSON)]
    tried += [client.post(f"/api/v1/leases/{lease}/skip/", {}, content_type=JSON), client.get(f"{path}/")]
    # Pages for other people.
    unit = task.units.get().pk
    for address in (f"{path}/adjudication/", f"{path}/adjudication/{unit}/", f"{api}/adjudication/{unit}/"):
        tried.append(client.get(address))
    tried += [client.get(f"/manage{path}/{address}") for address in ("", "people/", "agreement/", "tests/")]
    return tried


@pytest.mark.parametrize("side", ["first", "second", "tie"])
def test_nothing_that_pages_and_api_show_an_annotator_depends_on_whose_a_set_is(two, person, client, side):
    ann = person("ann", "en")
    client.force_login(ann.user)
    replies = []
    for task in two(ann):
        # One task at a time, because the first page lists all open ones.
        Task.objects.update(is_open=False)
        Task.objects.filter(pk=task.pk).update(is_open=True)
        replies.append([plain(reply) for reply in everything_tried(client, task, side)])
    for one, other in zip(*replies, strict=True):
        assert one == other
    check_unnamed(replies[0])
    labels = set(Judgment.objects.live().values_list("label", flat=True))
    assert labels == ({"tie"} if side == "tie" else set(SYSTEMS))


def test_nothing_that_an_adjudicator_is_told_does_either(two, person):
    people = [person(name, "en") for name in ("ann", "bea", "cem")]
    ada = person("ada", adjudicates=True)
    tasks = two(*people, ada)
    client = Client()
    client.force_login(ada.user)
    replies = []
    for task in tasks:
        for somebody, side in zip(people, ("first", "second", "tie"), strict=True):
            judge(somebody, take(somebody, task).pk, Answer(side))
        path, api, unit = f"/tasks/{task.name}", f"/api/v1/tasks/{task.name}", task.units.get().pk
        reason = {"reason": "I know"}
        tried = [client.get(f"{path}/adjudication/"), client.get(f"{path}/adjudication/{unit}/")]
        tried += [client.get(f"{api}/adjudication/"), client.get(f"{api}/adjudication/{unit}/")]
        tried += [client.post(f"{path}/adjudication/{unit}/", {"label": sent, **reason}) for sent in SYSTEMS]
        tried += [client.post(f"{path}/adjudication/{unit}/", {"label": "second", **reason})]
        tried += [client.get(f"{path}/adjudication/?decided={unit}"), client.get(f"{path}/adjudication/{unit}/")]
        tried += [client.get(f"{api}/adjudication/{unit}/")]
        tried += [client.post(f"{api}/adjudication/{unit}/unsettle/")]
        tried += [client.post(f"{api}/adjudication/{unit}/settle/", {"label": "first", **reason}, content_type=JSON)]
        tried += [client.post(f"{api}/adjudication/{unit}/settle/", {"label": "tie", **reason}, content_type=JSON)]
        replies.append(list(map(plain, tried)))
    for one, other in zip(*replies, strict=True):
        assert one == other
    check_unnamed(replies[0])
    dossier = client.get(f"/api/v1/tasks/same/adjudication/{tasks[0].units.get().pk}/").json()
    assert dossier["sets"][0][0] == "Plum 1"
    assert [judgment["label"] for judgment in dossier["judgments"]][:3] == ["first", "second", "tie"]
    assert {task.units.get().label for task in tasks} == set(SYSTEMS)


def test_an_adjudicator_for_whom_the_other_stands_first_sees_votes_by_their_own_sides(compare, person, client):
    task = compare(number=24, on_conflict="ADJUDICATION")
    people = [person(name, "en") for name in ("ann", "bea", "cem")]
    ada = person("ada", adjudicates=True)
    for annotator, side in zip(people, ("first", "first", "tie"), strict=True):
        while lease := take(annotator, task):
            judge(annotator, lease.pk, Answer(side))
    client.force_login(ada.user)
    turned = 0
    for unit in task.units.filter(stage="ADJUDICATION").select_related("task", "item"):
        dossier = client.get(f"/api/v1/tasks/talk/adjudication/{unit.pk}/").json()
        sides = sides_of(ada, unit)
        assert dossier["sets"] == list(sides.sets)
        stored = unit.judgments.order_by("pk").values_list("label", flat=True)
        assert [judgment["label"] for judgment in dossier["judgments"]] == [sides.side_of(label) for label in stored]
        turned += Side.objects.get(unit=unit, annotator=people[0]).first != sides.first
    assert turned
