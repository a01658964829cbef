"""The queues and their readers, each person's day, and a distant finish."""

import re
from datetime import timedelta

from django.utils import timezone

from annotate.figures import progress_report
from annotate.figures.queue_states import queue_table
from annotate.figures.task_overview import undecidable
from annotate.kinds import Answer
from annotate.models import Judgment, Lease
from annotate.work import accounts
from annotate.work.answer_changes import undo
from annotate.work.judgments import judge, skip
from annotate.work.queue import release, take
from annotate.work.routing import reroute
from tests.annotate.acts import progress_of
from tests.annotate.conftest import AGREED, DISPUTED

FRENCH = ("fr", "fr en", "en")


def table(task):
    return [(row.queue, row.waiting, row.leased, row.readers) for row in queue_table(task)]


def counts_of(annotator, task):
    progress = progress_of(annotator, task)
    return progress["answered_today"], progress["skipped_today"], progress["waiting"]


# --- queues


def test_queues_come_fullest_first_with_their_active_readers_and_what_is_open_still_waiting(make_task, person):
    assert queue_table(make_task([], name="empty")) == []
    task = make_task([DISPUTED, DISPUTED, FRENCH, AGREED])
    other = make_task([DISPUTED, DISPUTED], name="other")
    person("bea", "de en")
    ann, out = person("ann", "de"), person("out", "de")
    accounts.set_active([out], False)
    rows = [("fr", 1, 0, []), ("en", 0, 0, ["bea"])]
    lease = take(ann, task)
    take(ann, other)
    assert table(task) == [("de", 2, 1, ["ann", "bea"]), *rows]
    assert table(other)[0] == ("de", 2, 1, ["ann", "bea"])
    release(ann, lease.pk)
    assert table(task) == [("de", 2, 0, ["ann", "bea"]), *rows]
    Lease.objects.update(expires_at=timezone.now())
    assert table(other)[0] == ("de", 2, 0, ["ann", "bea"])


def test_a_shared_queue_has_the_readers_of_all_its_labels_each_once(make_task, person):
    task = make_task([("zh", "zh", "zh")])
    person("mei", "zh-CN zh-TW")
    person("wei", "zh-TW")
    [row] = queue_table(task)
    assert (row.queue, row.labels, row.waiting, row.readers) == ("zh", ["zh-CN", "zh-TW"], 1, ["mei", "wei"])


# --- one's own day


def test_answers_and_skips_of_today_in_this_task_and_what_waits_are_counted(make_task, ann, person):
    task, other = make_task([DISPUTED] * 5 + [FRENCH, AGREED]), make_task([DISPUTED], name="other")
    person("ben", "en")
    judge(ann, take(ann, other).pk, Answer("de"))
    assert counts_of(ann, task) == (0, 0, 5)
    for answer in ("de", "en", "und"):
        judge(ann, take(ann, task).pk, Answer(answer))
    skip(ann, take(ann, task).pk)
    assert counts_of(ann, task) == (3, 1, 1)
    judge(ann, take(ann, task).pk, Answer("de"))
    undo(ann, task)
    assert counts_of(ann, task) == (3, 1, 1)


def test_what_others_have_open_still_waits_but_not_what_one_has_judged(make_task, person):
    task = make_task([DISPUTED], redundancy=2)
    ann, bea = person("ann", "de"), person("bea", "de")
    judge(ann, take(ann, task).pk, Answer("de"))
    take(bea, task)
    assert counts_of(ann, task) == (1, 0, 0)
    assert counts_of(bea, task) == (0, 0, 1)


def test_yesterday_is_not_today_and_midnight_is_the_installations(make_task, ann, judged, settings):
    task = make_task([DISPUTED, DISPUTED])
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    moments = (midnight, midnight - timedelta(microseconds=1))
    for unit, moment in zip(task.units.all(), moments, strict=True):
        Judgment.objects.filter(pk=judged(ann, unit).pk).update(answered_at=moment)
    assert counts_of(ann, task)[0] == 1
    # Far enough to the east, midnight was at another moment.
    settings.TIME_ZONE = "Pacific/Kiritimati"
    local = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    assert counts_of(ann, task)[0] == sum(moment >= local for moment in moments)


def test_a_unit_that_those_who_are_left_have_all_judged_lacks_readers_though_its_queue_has_some(make_task, person):
    task = make_task([DISPUTED, DISPUTED])
    both, second = person("both", "de en"), person("second", "en")
    skip(both, take(both, task).pk)
    assert {row.queue: row.lacking for row in queue_table(task)} == {"de": 0, "en": 0}
    second.user.is_active = False
    second.user.save()
    rows = {row.queue: row for row in queue_table(task)}
    assert (rows["en"].waiting, rows["en"].readers, rows["en"].lacking) == (1, ["both"], 1)
    assert rows["de"].lacking == 0
    assert reroute(task) == {"queues": 0, "adjudication": 1, "decided": 0}
    assert {row.queue: row.lacking for row in queue_table(task)} == {"de": 0, "en": 0}


def test_what_no_active_adjudicator_may_decide_is_undecidable(make_task, person):
    task = make_task([DISPUTED, DISPUTED], rounds=1)
    both = person("both", "de", adjudicates=True)
    assert undecidable(task) == 0
    skip(both, take(both, task).pk)
    assert undecidable(task) == 1
    other = person("other", adjudicates=True)
    assert undecidable(task) == 0
    accounts.set_active([other], False)
    assert undecidable(task) == 1
    both.adjudicates = False
    both.save()
    skip(both, take(both, task).pk)
    assert undecidable(task) == 2
    Judgment.objects.update(voided_at=timezone.now())
    assert undecidable(task) == 2
    accounts.set_active([other], True)
    assert undecidable(task) == 0


# --- a finish that is far away

FAR = {"low": 400.0, "middle": 5_400.0, "high": None}
QUEUE = {"queue": "de", "readers": 1, "answers": 9_000, "days": FAR, "more": {"days": FAR, "sooner": None}}
RESULT = {
    "from": "2026-11-28T08:00:00+00:00",
    "all": FAR,
    "queues": [QUEUE],
    "people": 2,
    "drawn": [{"posts": 90_000, "agreed": 60_000, "people": 32_000, "audits": 2_000}],
    "adjudication": {"adjudicators": 1, "waiting": 3, "chosen": 0, "days": FAR},
    "assumed": None,
    "measured": 2,
    "supposed": 0,
}


def test_a_distant_finish_asks_for_people_one_this_year_has_a_date_and_an_open_end_none():
    assert progress_report.draw_headline(RESULT).endswith(" It takes more than a year with 2 annotators; add people.")
    assert (progress_report.finish_day(RESULT), progress_report.finish_words(RESULT)) == ("over a year",) * 2
    sentences = progress_report.forecast_words(RESULT)
    assert sentences[0] == "In most simulations, the finish is more than a year from now. Add people."
    table = progress_report.forecast_table(RESULT)
    shown = [cell.shown for row in table.body for cell in row]
    assert shown.count("over a year") == 3
    assert not re.search(r"\b20\d\d\b", " ".join([*shown, *sentences]))
    near = RESULT | {"all": {"low": 8.0, "middle": 9.0, "high": 700.0}}
    assert progress_report.draw_headline(near).endswith(" Done by 7 Dec with 2 annotators.")
    assert progress_report.finish_words(near) == "about 7 Dec, not before 6 Dec"
