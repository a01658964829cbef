"""Tasks with a secret, and tasks from before lots had one, which go on as they were: what is told of either."""

import io

import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from annotate.kinds import Answer
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.conftest import DISPUTED
from tests.annotate.told_sets import manifest_of, of_lots, settle_all, tell, verified, with_manifest_of


@pytest.fixture
def out(tmp_path):
    return tmp_path / "gold"


def test_decisions_that_nobody_could_make_a_second_time_are_told_apart(skipped, ada, out):
    task = skipped(30, check_share=0.5)
    with_manifest_of("corpus")
    settle_all((ada,), task)
    tell(task, out)
    status, told = verified(out)
    assert (status, of_lots(told)["second"]) == (0, (30, 0))


def test_a_decision_after_the_close_is_fixed_anew_and_the_first_digest_stays(make_task, person, ada, out):
    task = make_task([DISPUTED] * 12, check_share=1.0)
    with_manifest_of("corpus")
    reader = person("reader", "de")
    while lease := take(reader, task):
        judge(reader, lease.pk, Answer("de"))
    call_command("close", "task", stdout=(said := io.StringIO()))
    call_command("export_gold", "task", out=out, stdout=io.StringIO())
    [first] = manifest_of(out)["lots"]["outcomes"]
    assert f"Publish this digest of the outcomes of randomly drawn items: {first['digest']}." in said.getvalue()
    settle_all([ada], task)
    tell(task, out)
    digests = [each["digest"] for each in manifest_of(out)["lots"]["outcomes"]]
    assert (digests[0], len(digests)) == (first["digest"], 2)
    assert verified(out)[0] == 0


def test_an_open_task_does_not_tell_its_secret(make_records_task, out):
    make_records_task(count=1)
    with pytest.raises(CommandError, match=r"crowd is open, so its secret.*Close the task first"):
        call_command("export_gold", "crowd", out=out, tell_secret=True)
    assert not out.exists()
