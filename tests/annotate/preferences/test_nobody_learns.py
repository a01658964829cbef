"""Nobody who answers or adjudicates learns whose a set is, whatever they try of the pages and of the API.

Two tasks differ in one thing: which system suggested which replies. Where the same replies stand first in both, all
that somebody is told must be the same, byte for byte: then nothing in it depends on whose a set is.
"""

import re

import pytest
from django.test import Client

from annotate.kinds import Answer
from annotate.models import Judgment, Side, Task
from annotate.pages.item_view import sides_of
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.preferences.comparing import open_comparison

pytestmark = pytest.mark.django_db

SYSTEMS = ("mt5", "bert")
HTMX = {"HX-Request": "true"}
JSON = "application/json"
# What differs from one task to the next, and from one moment to the next.
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
    """A reply with its headers, without what varies."""
    text = "\n".join([str(reply.status_code), *(f"{k}: {v}" for k, v in sorted(reply.items())), reply.content.decode()])
    text = re.sub(r"(?m)^(?:Content-Security-Policy|X-Request-ID|Content-Length): .*$", "", text)
    # What the first page counts of the day goes over both tasks.
    text = re.sub(r'(?s)<section class="own-work".*?</section>', "", text)
    text = re.sub(r"(?m)^\s*\n", "", text)
    for pattern, instead in VARYING:
        text = re.sub(pattern, instead, text)
    return text


def check_unnamed(pages) -> None:
    """No system is named, but for what was sent and is said to be no answer."""
    for page in pages:
        rest = re.sub(r"(?:'|&#x27;)(?:mt5|bert)(?:'|&#x27;) is not a valid answer", "", page)
        assert not re.search(r"mt5|bert", rest, re.IGNORECASE)


@pytest.fixture
def two(tmp_path):
    """Two tasks of one comparison, in which the systems have each other's replies; and a way to have the same replies
    stand first for somebody in both.
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
    """What somebody is told who does all that an annotator can do, and tries what they cannot."""
    path, api = f"/tasks/{task.name}", f"/api/v1/tasks/{task.name}"
    lease = None

    def judged(answer):
        return client.post(f"{path}/judge/", {"lease": lease, "answer": answer}, headers=HTMX)

    tried = [client.get("/"), client.get(f"{path}/"), client.get(f"{api}/"), client.get("/api/v1/tasks/")]
    tried += [client.get(f"{path}/guidelines/"), client.post(f"{path}/start/", headers=HTMX)]
    lease = re.search(r'name="lease" value="(\d+)"', tried[-1].text)[1]
    tried += [client.get(f"{path}/"), client.post(f"{api}/next/"), client.get(f"{path}/answers/")]
    # What a person may not send: names of systems, those of others, and several at once.
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
    # What is for others.
    unit = task.units.get().pk
    for address in (f"{path}/adjudication/", f"{path}/adjudication/{unit}/", f"{api}/adjudication/{unit}/"):
        tried.append(client.get(address))
    tried += [client.get(f"/manage{path}/{address}") for address in ("", "people/", "agreement/", "tests/")]
    return tried


@pytest.mark.slow
@pytest.mark.parametrize("side", ["first", "second", "tie"])
def test_nothing_that_pages_and_api_show_an_annotator_depends_on_whose_a_set_is(two, person, client, side):
    ann = person("ann", "en")
    client.force_login(ann.user)
    replies = []
    for task in two(ann):
        # One at a time, since the first page lists all that are open.
        Task.objects.update(is_open=False)
        Task.objects.filter(pk=task.pk).update(is_open=True)
        replies.append([plain(reply) for reply in everything_tried(client, task, side)])
    for one, other in zip(*replies, strict=True):
        assert one == other
    check_unnamed(replies[0])
    labels = set(Judgment.objects.live().values_list("label", flat=True))
    assert labels == ({"tie"} if side == "tie" else set(SYSTEMS))


@pytest.mark.slow
def test_nothing_that_an_adjudicator_is_told_does_either(two, person):
    people = [person(name, "en") for name in ("ann", "bea", "cem")]
    ada = person("ada", adjudicates=True)
    tasks = two(*people, ada)
    client = Client()
    client.force_login(ada.user)
    told = []
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
        told.append(list(map(plain, tried)))
    for one, other in zip(*told, strict=True):
        assert one == other
    check_unnamed(told[0])
    dossier = client.get(f"/api/v1/tasks/same/adjudication/{tasks[0].units.get().pk}/").json()
    assert dossier["sets"][0][0] == "Plum 1"
    assert [each["label"] for each in dossier["judgments"]][:3] == ["first", "second", "tie"]
    assert {task.units.get().label for task in tasks} == set(SYSTEMS)


@pytest.mark.slow
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
        assert [each["label"] for each in dossier["judgments"]] == [sides.seen(label) for label in stored]
        turned += Side.objects.get(unit=unit, annotator=people[0]).first != sides.first
    assert turned


def test_the_order_of_work_is_the_same_whoever_suggested_what(tmp_path, person):
    pear, plum = (lambda row: [f"Pear {row['id']}"]), (lambda row: [f"Plum {row['id']}"])
    same = open_comparison(tmp_path, *SYSTEMS, name="same", number=30, replies={"mt5": plum, "bert": pear})
    swapped = open_comparison(tmp_path, *SYSTEMS, name="swapped", number=30, replies={"mt5": pear, "bert": plum})
    orders = [[*task.units.order_by("position").values_list("item__key", flat=True)] for task in (same, swapped)]
    assert orders[0] == orders[1]
    assert Task.objects.count() == 2
