"""Records on which voters agree look like any others to annotators, and plain tasks run no code of panels."""

import sys

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotate.kinds import Answer
from annotate.models import Task
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.secrecy.test_hidden import all_an_annotator_sees

pytestmark = [pytest.mark.django_db, pytest.mark.on_sqlite]


@pytest.mark.parametrize("answer", ["1", "0"])
@pytest.mark.parametrize("recheck", [0, 1])
def test_a_record_of_the_audit_looks_like_one_on_which_the_voters_disagree(make_records_task, person, answer, recheck):
    ann, seen = person("ann", "de"), []
    for name, votes in (("disputed", "1 0 1"), ("audited", "1 1 1")):
        task = make_records_task(
            name=name, languages=["de"], panel=[votes], audit_least=1, audit_recheck=recheck, redundancy=1
        )
        unit = task.units.select_related("item").get()
        assert unit.audited == (name == "audited")
        text = unit.item.text.split("\n")
        pages = all_an_annotator_sees(task, ann, answer)
        for number, line in enumerate(text):
            pages = [page.replace(line, f"line {number}") for page in pages]
        seen.append(pages)
        Task.objects.filter(pk=task.pk).update(is_open=False)
    assert seen[0] == seen[1]


# Modules of which a task without a panel must not run anything when somebody answers.
OF_PANELS = ("panel_kind.py", "panels.py", "voters.py", "agreement_audit.py", "audit_report.py")


def run_by(act):
    """Return the files whose functions an act runs, and its statements without values."""
    files = set()

    def note(frame, event, argument):
        files.add(frame.f_code.co_filename.rpartition("/")[2])

    with CaptureQueriesContext(
        connection,
    ) as queries:
        sys.setprofile(note)
        try:
            act()
        finally:
            sys.setprofile(None)
    return files, len(queries)


def test_an_answer_in_a_task_without_voters_runs_nothing_of_panels(make_records_task, person):
    ann = person("ann", "de")
    counted = {}
    for name, panel in (("plain", ()), ("voted", ["1 0 1"] * 4)):
        task = make_records_task(name=name, count=4, languages=["de"], panel=panel, redundancy=1)
        judge(ann, take(ann, task).pk, Answer("1"))  # prepares the statements
        counted[name] = run_by(lambda task=task: judge(ann, take(ann, Task.objects.get(pk=task.pk)).pk, Answer("0")))
    files, statements = counted["plain"]
    assert not files.intersection(OF_PANELS)
    assert "agreement_audit.py" in counted["voted"][0]
    assert statements <= counted["voted"][1]
