"""Tasks with a secret, and tasks from before lots had one, which go on as they were: what is told of either."""

import io

import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from annotate.core import lottery
from annotate.core.lots import gold_places
from annotate.kinds import Answer
from annotate.models import Task
from annotate.work.auditing import add_audits
from annotate.work.judging import judge, skip
from annotate.work.queue import take
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.told_sets import manifest_of, of_lots, settle_all, tell, verified, with_manifest_of

POTS = ["1", "0"] * 4


@pytest.fixture
def out(tmp_path):
    return tmp_path / "gold"


def test_decisions_that_nobody_could_make_a_second_time_are_told_apart(make_task, person, out):
    task = make_task([DISPUTED] * 30, rounds=1, second_share=0.5)
    with_manifest_of("corpus")
    reader, ada = person("reader", "de"), person("ada", adjudicates=True)
    while lease := take(reader, task):
        skip(reader, lease.pk)
    settle_all((ada,), task)
    tell(task, out)
    status, told = verified(out)
    assert (status, of_lots(told)) == (0, {"second": (30, 0), "outcome": (1, 0)})


def test_a_decision_after_the_close_is_fixed_anew_and_the_first_digest_stays(make_task, person, out):
    task = make_task([DISPUTED] * 12, check_share=1.0, check_least=12)
    with_manifest_of("corpus")
    reader, ada = person("reader", "de"), person("ada", adjudicates=True)
    while lease := take(reader, task):
        judge(reader, lease.pk, Answer("de"))
    call_command("close", "task", stdout=(said := io.StringIO()))
    call_command("export_gold", "task", out=out, stdout=io.StringIO())
    [first] = manifest_of(out)["lots"]["outcomes"]
    assert f"Publish this digest of what became of its drawn units: {first['digest']}." in said.getvalue()
    settle_all([ada], task)
    tell(task, out)
    digests = [each["digest"] for each in manifest_of(out)["lots"]["outcomes"]]
    assert (digests[0], len(digests)) == (first["digest"], 2)
    assert verified(out)[0] == 0


def test_an_open_task_does_not_tell_its_secret(make_records_task, out):
    make_records_task(count=1)
    with pytest.raises(CommandError, match=r"crowd is open, and whoever knows its secret.*Close it first"):
        call_command("export_gold", "crowd", out=out, tell_secret=True)
    assert not out.exists()


def test_a_task_opened_before_lots_had_a_secret_goes_on_by_its_seed_where_it_was(make_records_task, person, out):
    task = make_records_task("qa_match", 20, gold={"queue": POTS}, gold_share=0.25, pause_below=0)
    with_manifest_of("records")
    ann = person("ann", "en")
    Task.objects.update(secret="", lots_by_seed=True)
    task = Task.objects.get()
    given = []
    while lease := take(ann, task):
        given.append((lease.unit.honeypot, lease.unit.item_id))
        judge(ann, lease.pk, Answer("1"))
    # As it was drawn then: by MD5 of the seed and the name of the task, and by the keys of person and record.
    by_seed, pots = lottery.by_seed("1:crowd"), task.units.filter(honeypot=True)
    is_gold = gold_places(by_seed, str(ann.pk), "en", 4)
    order = lottery.drawn(
        [str(pk) for pk in pots.values_list("item", flat=True)], 8, lots=by_seed, purpose=f"honeypots of {ann.pk}"
    )
    places = [place for place in range(len(given)) if is_gold(place)]
    assert [place for place, (pot, _) in enumerate(given) if pot] == places
    assert [str(item) for pot, item in given if pot] == order[: len(places)]
    assert len(places) >= 5
    call_command("close", "crowd", verbosity=0)
    with pytest.raises(
        CommandError, match=r"crowd was opened when lots were drawn by the seed.*leave --tell-secret out"
    ):
        call_command("export_gold", "crowd", out=out, tell_secret=True, verbosity=0)
    call_command("export_gold", "crowd", out=out, verbosity=0, stdout=io.StringIO())
    assert manifest_of(out)["lots"] == {"secret_sha256": None, "secret": None, "file": None, "outcomes": []}
    with pytest.raises(CommandError, match="opened when lots were drawn by the seed"):
        call_command("verify_lots", out)


def test_its_audit_goes_on_by_the_seed_too(make_task):
    task = make_task([AGREED] * 30, audit_least=0)
    Task.objects.update(secret="", lots_by_seed=True)
    add_audits(Task.objects.get(), 6)
    keys = task.units.values_list("item__key", flat=True)
    audited = set(task.units.filter(audited=True).values_list("item__key", flat=True))
    assert audited == set(lottery.drawn(keys, 6, lots=lottery.by_seed("1"), purpose="audit"))
