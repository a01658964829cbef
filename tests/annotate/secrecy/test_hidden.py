"""What annotators must not know: all units look the same to them, on every page and through the API."""

import io
import json
import re

import pytest
from django.core.management import CommandError

from annotate.actions.opening_summary import reader_warnings
from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import Annotator, Lease, Task, Unit
from annotate.work.eligible import waiting_units
from annotate.work.judgments import judge
from annotate.work.permit import permit_of
from annotate.work.queue import take
from annotate.work.routes import Routes
from annotate.work.routing import lacking_readers
from tests.annotate.acts import progress_of, signed_in, work_through
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.hands import sent
from tests.annotate.told_sets import manifest_of, of_lots, settle_all, tell, verified, with_manifest_of


def without_what_may_differ(html, lease):
    # The person's work today and this week grows from task to task.
    html = re.sub(r'<section class="own-work".*?</section>', "", html, flags=re.DOTALL)
    html = re.sub(r'(csrfmiddlewaretoken" value="|X-CSRFToken": ")\w+', r"\1", html)
    return html.replace(f'name="lease" value="{lease}"', 'name="lease" value=""')


def all_an_annotator_sees(task, annotator, answer="fr"):
    """Return every page and response on the way of one unit, without the form's token and the lease's number."""
    client = signed_in(annotator)
    path = f"/tasks/{task.name}"
    seen = [client.post(f"{path}/start/", headers={"HX-Request": "true"}).text]
    lease = re.search(r'name="lease" value="(\d+)"', seen[0])[1]
    seen.append(client.get(f"{path}/").text)
    response = client.post(f"/api/v1{path}/next/").json()
    assert str(response["lease"].pop("id")) == lease
    assert response["lease"].pop("expires_at")
    seen.append(json.dumps(response))
    seen.append(client.post(f"{path}/judge/", {"lease": lease, **sent(answer)}, headers={"HX-Request": "true"}).text)
    answers = client.get(f"{path}/answers/").text
    answers = re.sub(r'name="judgment" value="\d+"|answers/\d+/|\d\d:\d\d:\d\d', "", answers)
    seen += [answers, client.get("/").text, client.get(f"{path}/guidelines/").text]
    seen = [without_what_may_differ(html, lease).replace(f"/{task.name}/", "/task/") for html in seen]
    return [re.sub(rf"(<small>|<bdi>){task.name}(</small>|</bdi>)", r"\1task\2", html) for html in seen]


def test_nothing_that_an_annotator_sees_depends_on_votes_queue_round_stage_or_other_people(make_task, person):
    ann = person("ann", "de fr")
    others = [person("bea", "de", adjudicates=True), person("cem", "de")]
    plain = {"text": "the same text", "letters": 40}
    alike = [
        {"votes": ("de en", "en de", "de"), **plain},
        {"votes": ("fr en", "en fr he", "fr"), **plain},
        {"votes": ("he", "ar", "en"), "author": "a1b2", "url": "https://example.org/1", **plain},
    ]
    seen = []
    for number, entry in enumerate(alike):
        task = make_task([{"key": f"alike-{number}", **entry}], name=f"alike{number}", redundancy=2, skip_limit=3)
        if number == 2:
            task.units.update(language="fr", round=2, visited=["he", "fr"])
        if number == 0:
            judge(others[0], take(others[0], task).pk, Answer("en", comment="a comment of Bea's"))
            task.rounds = 4
            task.save()
        seen.append(all_an_annotator_sees(task, ann))
        Task.objects.filter(pk=task.pk).update(is_open=False)
    for page, *others_of_it in zip(*seen, strict=True):
        assert [page] * 2 == others_of_it


AUDITED = {"votes": ("de", "de", "de"), "text": "the same text", "letters": 40}
PLAIN = {"votes": DISPUTED, "text": "the same text", "letters": 40}


def seen_alone(make_task, annotator, entry, answer, **fields):
    """Return the unit of a new task, and all views of it: until the answer, after undoing it, and on a sheet."""
    name = f"task{Task.objects.count()}"
    # Nobody gets a hidden unit with a text that they have seen.
    text = f"{entry['text']} of {name}"
    task = make_task([{"key": name, **entry, "text": text}], name=name, **fields)
    pages = all_an_annotator_sees(task, annotator, answer)
    client = signed_in(annotator)
    for address in ("undo/", *(["sheet/start/"] if fields.get("asked") else [])):
        page = client.post(f"/tasks/{name}/{address}", headers={"HX-Request": "true"}).text
        lease = re.search(r'name="lease" value="(\d+)"', page)[1]
        page = without_what_may_differ(page, lease).replace(f'-{lease}"', '-"').replace(f"/{name}/", "/task/")
        pages.append(page)
    Task.objects.filter(pk=task.pk).update(is_open=False)
    return task.units.get(), [page.replace(text, entry["text"]) for page in pages]


AUDITS = [{"audit_least": 1, "audit_recheck": recheck} for recheck in (0, 1)]
VERIFIED = {"asked": "de", "check_share": 1.0}


@pytest.mark.parametrize(
    ("answer", "entry", "fields", "hidden"),
    [
        ("de", AUDITED, AUDITS[0], "audited"),
        ("und mixed", AUDITED, AUDITS[1], "audited"),
        ("fr", PLAIN, {"check_share": 1.0}, "recheck"),
        ("not-de", PLAIN, VERIFIED, "recheck"),
        ("de", AUDITED, {"asked": "de", "decoys": 1}, "known_answer"),
        *(
            pytest.param(*sample, marks=pytest.mark.slow)
            for sample in [
                *((answer, AUDITED, AUDITS[0], "audited") for answer in ("fr", "und mixed")),
                *((answer, AUDITED, AUDITS[1], "audited") for answer in ("de", "fr")),
                *((answer, PLAIN, {"check_share": 1.0}, "recheck") for answer in ("de", "und mixed")),
                ("de", PLAIN, VERIFIED, "recheck"),
                *(
                    (answer, AUDITED, {"asked": "de", "decoys": 1}, "known_answer")
                    for answer in ("not-de", "und mixed")
                ),
            ]
        ),
    ],
)
def test_an_audited_or_checked_unit_or_a_decoy_is_like_any_other_one_by_one_and_on_a_sheet(
    make_task, person, answer, entry, fields, hidden
):
    ann, plain_fields = person("ann", "de fr"), {name: fields[name] for name in ("asked",) if name in fields}
    plain, first = seen_alone(make_task, ann, PLAIN, answer, **plain_fields)
    other, second = seen_alone(make_task, ann, entry, answer, **fields)
    assert (bool(getattr(plain, hidden)), bool(getattr(other, hidden))) == (False, True)
    if hidden == "recheck":
        # Another person confirms an answer in another language in any case.
        assert other.transitions.filter(event="named" if answer == "fr" else "checked").exists()
    assert other.recheck == (hidden == "recheck" or fields.get("audit_recheck") == 1)
    assert second == first


def test_whoever_verifies_sees_nothing_of_votes_others_or_known_answers(make_task, person):
    ann, bea = person("ann", "de"), person("bea", "de")
    task = make_task([DISPUTED] * 3, asked="de", decoys=1, redundancy=2)
    for _ in range(3):
        judge(bea, take(bea, task).pk, Answer("not-de", comment="a comment of Bea's"))
    text = "\n".join(all_an_annotator_sees(task, ann, "de"))
    client = signed_in(ann)
    text += client.post("/tasks/task/sheet/start/", headers={"HX-Request": "true"}).text
    assert text.count('class="posts"') == 1
    for word in (*stages.STAGES, "Bea", "langid", "cld2", "fasttext", "predictor", "decoy", "gold", "audit", "agreed"):
        assert word not in text, word
    assert all(annotator.pseudonym not in text for annotator in Annotator.objects.all())


def two_records(make_records_task, annotator, *, hidden):
    """Open a task whose two records have the same texts each time. hidden: whether the first is a gold answer"""
    for number in range(40):
        name = f"{'hidden' if hidden else 'plain'}{number}"
        gold = {"queue": ["1"], "test": ["0"], "practice": ["1"]} if hidden else {}
        task = make_records_task("qa_match", 1 if hidden else 2, name=name, gold=gold, gold_share=0.5 if hidden else 0)
        lease = take(annotator, task)
        if lease.unit.honeypot == hidden:
            break
        # With the draw of this name, the gold answer would come second.
        Task.objects.filter(pk=task.pk).update(is_open=False)
    for unit, text in zip([lease.unit, *task.units.exclude(pk=lease.unit_id)], ("first", "second"), strict=True):
        unit.item.fields = {"question": f"the {text}?", "passage": f"the {text}."}
        unit.item.text = "\n".join(unit.item.fields.values())
        unit.item.save()
    return task


@pytest.mark.parametrize("answer", ["1", "0"])
def test_a_honeypot_is_like_any_other_record(make_records_task, person, answer):
    ann, bea, seen = person("ann", "en"), person("bea", "en"), []
    for hidden in (False, True):
        task = two_records(make_records_task, ann, hidden=hidden)
        judge(bea, take(bea, task).pk, Answer("0", comment="a comment of Bea's"))
        pages = all_an_annotator_sees(task, ann, answer)
        client = signed_in(ann)
        # undone, then skipped, then all answered
        for address, fields in (("undo", {}), ("judge", {"skip": "1"}), ("judge", {"answer": "1"})):
            lease = ann.leases.filter(unit__task=task, closed_at=None).first()
            page = client.post(
                f"/tasks/{task.name}/{address}/", {"lease": lease.pk, **fields}, headers={"HX-Request": "true"}
            ).text
            pages.append(without_what_may_differ(page, "").replace(f"/{task.name}/", "/task/"))
        pages.append(json.dumps(client.get(f"/api/v1/tasks/{task.name}/progress/").json()))
        seen.append([re.sub(r'name="lease" value="\d+"', "", page) for page in pages])
        Task.objects.filter(pk=task.pk).update(is_open=False)
    for first, second in zip(*seen, strict=True):
        assert first.splitlines() == second.splitlines()
    text = "\n".join(seen[1])
    assert text.count("the first?") > 3
    for word in (*stages.STAGES, "Bea", "Because of", "honeypot", "gold", "known", "explanation"):
        assert word not in text, word
    assert all(annotator.pseudonym not in text for annotator in Annotator.objects.all())


# --- decoys, audits and gold answers are not given to a person who has seen the text, whatever it was shown as


def all_given(person, task):
    """Return all units that a person is given while they answer them."""
    return [lease.unit for lease in work_through(person, task, lambda lease: lease.unit.asked or task.labels[0])]


@pytest.mark.parametrize("copied", [False, True], ids=["the post", "a copy of another corpus"])
@pytest.mark.parametrize(
    ("posts", "hidden"),
    [([DISPUTED] * 8, {"asked": "de", "decoys": 4}), ([DISPUTED, AGREED] * 4, {"audit_least": 4})],
    ids=["decoys", "audits"],
)
def test_hidden_posts_go_to_those_alone_who_have_not_seen_the_text(make_task, person, posts, hidden, copied):
    task = make_task(posts, name="later", **hidden)
    hidden = set(task.units.filter(known_answer__gt="") | task.units.filter(audited=True))
    assert len(hidden) == 4
    earlier = make_task([DISPUTED] * 4, name="earlier")
    for unit, other in zip(sorted(hidden, key=lambda unit: unit.pk), earlier.units.all(), strict=True):
        if copied:
            other.item.text = unit.item.text
            other.item.save()
        else:
            Unit.objects.filter(pk=other.pk).update(item=unit.item)
    ann, bea = person("ann", "de"), person("bea", "de")
    assert len(all_given(ann, earlier)) == 4
    assert not hidden.intersection(waiting_units(permit_of(ann, task)))
    assert progress_of(ann, task)["waiting"] == task.units.queued().count() - 4
    assert lacking_readers(task, Routes.load(task).readers()) == {}
    assert not hidden.intersection(all_given(ann, task))
    assert hidden == set(all_given(bea, task))


def test_a_manager_hears_that_the_readers_have_seen_the_items_in_another_task(make_task, person):
    task, earlier = make_task([AGREED] * 5, name="later", audit_share=1.0), make_task([DISPUTED] * 5, name="earlier")
    for unit, other in zip(task.units.all(), earlier.units.all(), strict=True):
        Unit.objects.filter(pk=other.pk).update(item=unit.item)
    ann = person("ann", "de")
    assert reader_warnings(task) == []
    all_given(ann, earlier)
    [warning] = reader_warnings(task)
    assert warning.startswith("Warning: too few readers of these languages have not yet seen the items")
    assert warning.endswith(": de (5). Invite others.")


def test_gold_answers_go_to_those_alone_who_have_not_seen_the_record(make_records_task, person):
    task = make_records_task("qa_match", 12, gold={"queue": ["1", "0"] * 3}, gold_share=0.34, pause_below=0.0)
    pots = set(task.units.filter(honeypot=True))
    earlier = make_records_task("qa_match", 4, name="earlier")
    for pot, other in zip(sorted(pots, key=lambda pot: pot.pk), earlier.units.all(), strict=False):
        other.item.text = pot.item.text
        other.item.save()
    ann = person("ann", "en")
    assert len(all_given(ann, earlier)) == 4
    met = {lease.unit.item.text for lease in Lease.objects.filter(annotator=ann)}
    left = {pot for pot in pots if pot.item.text not in met}
    assert len(left) == 2
    waits = progress_of(ann, task)["waiting"]
    units = all_given(ann, task)
    assert pots.intersection(units) == left
    assert len(units) == waits


# --- tasks with a secret, and tasks from before lots had one, which go on as they were


@pytest.fixture
def out(tmp_path):
    return tmp_path / "gold"


def test_decisions_that_nobody_could_make_a_second_time_are_told_apart(skipped, ada, out):
    task = skipped(30, check_share=0.5)
    with_manifest_of("corpus")
    settle_all((ada,), task)
    tell(task, out)
    status, report = verified(out)
    assert (status, of_lots(report)["second"]) == (0, (30, 0))


def test_a_decision_after_the_close_is_fixed_anew_and_the_first_digest_stays(make_task, person, ada, out):
    task = make_task([DISPUTED] * 12, check_share=1.0)
    with_manifest_of("corpus")
    reader = person("reader", "de")
    work_through(reader, task)
    call_command("close", "task", stdout=(output := io.StringIO()))
    call_command("export_gold", "task", out=out, stdout=io.StringIO())
    [first] = manifest_of(out)["lots"]["outcomes"]
    assert f"Publish this digest of the outcomes of randomly drawn items: {first['digest']}." in output.getvalue()
    settle_all([ada], task)
    tell(task, out)
    digests = [outcome["digest"] for outcome in manifest_of(out)["lots"]["outcomes"]]
    assert (digests[0], len(digests)) == (first["digest"], 2)
    assert verified(out)[0] == 0


def test_an_open_task_does_not_tell_its_secret(make_records_task, out):
    make_records_task(count=1)
    with pytest.raises(CommandError, match=r"crowd is open, so its secret.*Close the task first"):
        call_command("export_gold", "crowd", out=out, tell_secret=True)
    assert not out.exists()
