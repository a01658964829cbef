"""Concepts that a person chooses otherwise later."""

from datetime import timedelta
from html import unescape

import pytest
from django.utils import timezone

from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import Change, Judgment
from annotate.work.answer_changes import change
from tests.annotate.concepts.acts import choose, task_of, values_of

pytestmark = pytest.mark.usefixtures("corpus")


@pytest.fixture
def ann(readers, client):
    client.force_login(readers[0].user)
    return readers[0]


def chosen(judgment):
    return dict(judgment.chosen.order_by("concept__key").values_list("concept__key", "way"))


def test_the_page_begins_with_what_was_chosen_and_what_is_sent_stands_with_what_led_to_it(ann, client, readers, plain):
    task = task_of(redundancy="3")
    one, two, three = plain[:3]
    first = choose(ann, task, one, two, ways={one: "browsed"})
    days_ago = timezone.now() - timedelta(days=3)
    Judgment.objects.update(shown_at=days_ago, answered_at=days_ago)
    address = f"/tasks/acts/answers/{first.pk}/"
    assert address in client.get("/tasks/acts/answers/").text
    form = client.get(address).text
    assert (values_of(form, "answer"), values_of(form, "way")) == ([one, two], [f"{one} browsed", f"{two} "])
    # What changes nothing stays on the page.
    refused = client.post(address, {"answer": [one, two], "comment": "still"})
    assert (refused.status_code, values_of(refused.text, "answer")) == (400, [one, two])
    assert "still" in refused.text
    state = {"answer": [one, two], "way": [f"{one} browsed", f"{two} "]}
    for do in (f"drop {two}", f"add {three} searched"):
        step = client.post(address, {**state, "do": do, "comment": "as I think now"}).text
        state = {name: values_of(step, name) for name in ("answer", "way")}
    assert "as I think now" in step
    part = client.post(address, {"do": f"add {plain[3]} browsed"}, headers={"HX-Request": "true"}).text
    assert (values_of(part, "answer"), "<html" in part) == ([plain[3]], False)
    assert not Change.objects.exists()
    assert client.post(address, state | {"comment": "now"}).status_code == 302
    [stands] = Judgment.objects.live()
    assert chosen(stands) == {one: "browsed", three: "searched"}
    assert stands.label == " ".join(sorted([one, three]))
    assert values_of(client.get(f"/tasks/acts/answers/{first.pk}/").text, "answer") == sorted([one, three])
    client.force_login(readers[1].user)
    assert client.post(address, {"do": f"add {plain[3]} browsed"}).status_code == 404


def test_where_others_have_gone_on_the_adjudicator_sees_the_concepts_by_name(ann, client, plain, person):
    task = task_of(redundancy="1")
    first = choose(ann, task, plain[0])
    change(ann, task, first.pk, Answer(plain[1]))
    first.refresh_from_db()
    assert (first.label, chosen(first), first.unit.stage) == (plain[0], {plain[0]: ""}, stages.ADJUDICATION)
    assert values_of(client.get(f"/tasks/acts/answers/{first.pk}/").text, "answer") == [plain[1]]
    client.force_login(person("ada", adjudicates=True).user)
    page = unescape(client.get(f"/tasks/acts/adjudication/{first.unit_id}/").text)
    assert f"{ann.pseudonym} would now answer {task.kind.name(plain[1])}." in page
