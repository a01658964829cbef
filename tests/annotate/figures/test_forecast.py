"""The forecast: its range holds in simulated campaigns, small and large, and matches a manager's judgment."""

from collections import Counter
from math import inf

import pytest

from annotate.figures.finish_simulation import (
    ADJUDICATION,
    MANY,
    Assumed,
    Queue,
    Reader,
    Share,
    forecast,
    sample,
    with_more,
)
from benchmarks.forecasts import within
from benchmarks.forecasts_work import World, run

pytestmark = pytest.mark.slow
USUAL = Assumed(seconds=12, weekly=10)
CREW = [Reader(f"p{n}", (("de", "en"), ("en",), ("hr",), ("hr", "en"))[n % 4]) for n in range(12)]
WORK = [Queue("de", 4000), Queue("en", 9000), Queue("hr", 6000)]


def seen(key, queues, seconds=12.0, hours=2.0, **how):
    """A reader who has worked five days a week for six weeks at a steady pace."""
    return Reader(
        key, queues, **{"answers": 15_000, "seconds": seconds, "worked": 30, "days": 42, "hours": hours} | how
    )


@pytest.mark.parametrize(
    "world", [World(units=1200), World(units=2500, elapsed=2)], ids=["before it begins", "after two days"]
)
def test_simulated_campaigns_of_twenty_readers_end_within_the_range(world):
    rows = [row for number in range(20) if (row := run(world, f"fixed {number}"))]
    assert len(rows) >= 18
    assert within(rows) >= 0.9 * len(rows)
    # The range is not so wide that it always holds.
    assert sorted(row.foretold[2] for row in rows)[len(rows) // 2] < 4 * sorted(row.end for row in rows)[len(rows) // 2]


def test_two_more_readers_of_a_language_make_it_done_earlier_and_no_other_later():
    before, after = (forecast(WORK, crew, USUAL).queues for crew in (CREW, with_more(CREW, "hr", 2)))
    assert after["hr"].middle < before["hr"].middle
    assert all(after[name].middle <= before[name].middle for name in ("de", "en"))


def test_a_queue_that_nobody_reads_is_not_foretold_and_all_is_done_no_earlier_than_each_of_the_rest():
    estimate = forecast([*WORK, Queue("nl", 10), Queue("fy", 1), Queue("da", 0)], CREW, USUAL)
    assert estimate.queues["nl"] == estimate.queues["fy"] == (inf, inf, inf)
    assert estimate.queues["da"] == (0, 0, 0)
    read = [of for name, of in estimate.queues.items() if name not in (ADJUDICATION, "nl", "fy")]
    assert max(of.middle for of in read) <= estimate.all.middle < inf
    assert all(of.low <= of.middle <= of.high for of in read)
    assert forecast([Queue("nl", 10)], [], USUAL).all.high == 0  # adjudicators have nothing to do
    assert forecast(WORK, CREW, USUAL, seed="a") == forecast(WORK, CREW, USUAL, seed="a")
    assert forecast(WORK, CREW, USUAL, seed="a") != forecast(WORK, CREW, USUAL, seed="b")


def days(posts, *readers, **how):
    return forecast([Queue("de", posts)], readers, USUAL, **how).queues["de"].middle


def test_absence_a_weekend_and_a_daily_limit_delay_the_end():
    here, away = (days(20_000, seen("a", ("de",)), seen("b", ("de",), idle=idle)) for idle in (0, 20))
    assert away > 1.5 * here
    on_monday, on_saturday = (days(3000, *(seen(f"p{n}", ("de",)) for n in range(6)), weekday=day) for day in (0, 5))
    assert on_saturday > on_monday
    free, bound = (days(3000, seen("a", ("de",), most=most)) for most in (inf, 100))
    assert bound > 29 > free


def test_the_range_is_narrower_where_the_pace_was_measured():
    def width(crew):
        span = forecast([Queue("de", 60_000)], crew, USUAL).queues["de"]
        return span.high / span.low

    assert width([seen(f"p{n}", ("de",)) for n in range(8)]) < 0.6 * width([Reader(f"p{n}", ("de",)) for n in range(8)])


def test_twice_as_slow_takes_about_twice_as_long():
    once, twice = (
        forecast([Queue("de", 60_000)], [seen(f"p{n}", ("de",), seconds) for n in range(8)], USUAL).queues["de"].middle
        for seconds in (12.0, 24.0)
    )
    assert 1.7 < twice / once < 2.3
    # Eight people, two hours on five days a week, 12 s: 24,000 answers a week.
    assert 14 < once < 22


def test_a_reader_of_two_languages_goes_to_the_queue_with_most_left():
    """The queue that is behind comes first, in the order of the draw."""
    crew = [seen("both", ("de", "hr")), seen("de", ("de",)), seen("hr", ("hr",))]
    even = forecast([Queue("de", 6000), Queue("hr", 6000)], crew, USUAL).queues
    behind = forecast([Queue("de", 6000, whole=6000), Queue("hr", 6000, whole=60_000)], crew, USUAL).queues
    assert behind["de"].middle < even["de"].middle
    assert behind["hr"].middle > even["hr"].middle


def test_what_is_skipped_goes_on_to_the_next_language_and_takes_time_there():
    crew = [seen("d", ("de",)), seen("h", ("hr",))]
    stays, goes = (
        forecast([Queue("de", 4000, onward=onward), Queue("hr", 4000)], crew, USUAL, skips=Share(3000, 10_000)).queues
        for onward in ({}, {"hr": 1.0})
    )
    assert goes["de"].middle < stays["de"].middle
    assert goes["hr"].middle > stays["hr"].middle


def test_nobody_is_asked_twice_about_a_unit():
    work = Queue("de", 9000, units=3000)
    three = [seen("quick", ("de",), 4.0), seen("a", ("de",)), seen("b", ("de",))]
    # All three have to read all of it, however quick one is.
    assert forecast([work], three, USUAL).queues["de"].middle > 2 * 3000 * 12 / 3600 / 2 / 3
    assert forecast([work], three[:2], USUAL).queues["de"].middle == inf


def test_adjudicators_get_what_is_chosen_for_them_and_what_people_differ_on():
    crew = [*(seen(f"p{n}", ("de",)) for n in range(4)), seen("ada", (ADJUDICATION,))]
    alone = forecast([Queue("de", 6000)], crew, USUAL).queues[ADJUDICATION]
    chosen = forecast([Queue("de", 6000, decided=6000)], crew, USUAL).queues[ADJUDICATION]
    differ = forecast([Queue("de", 6000, units=2000)], crew, USUAL, conflicts=Share(1800, 2000)).queues[ADJUDICATION]
    assert alone.high == 0
    assert chosen.middle > 8
    assert differ.middle > 2
    waiting = forecast([Queue(ADJUDICATION, 3000)], crew, USUAL).queues[ADJUDICATION]
    assert waiting.middle > 4


def test_a_sample_of_a_large_crowd_keeps_rare_readers_and_the_forecast():
    languages = ("en", "de", "fr", "es")
    crowd = [
        Reader(f"p{n}", (languages[n % 4], languages[n // 4 % 4])[: 1 + n % 2], *measured)
        for n in range(800)
        for measured in [(500, 9 + n % 7, 9, 5, 2.0) if n % 3 else ()]
    ]
    crowd += [Reader(f"rare{n}", ("yi", "en")) for n in range(3)]
    some = sample(crowd, "seed")
    counts = Counter(name for reader in some for name in reader.queues)
    assert counts["yi"] == 3
    assert all(0.8 * MANY < counts[name] < 2 * MANY for name in languages)
    for name in ("yi", *languages):
        all_of, stand_for = ([of for of in readers if name in of.queues] for readers in (crowd, some))
        assert sum(of.stands_for for of in stand_for) == pytest.approx(len(all_of), rel=0.1)
    work, usual = [Queue(name, 300_000) for name in languages], Assumed(seconds=12, weekly=10)
    exact, sampled = (forecast(work, readers, usual).all for readers in (crowd, some))
    assert sampled.middle == pytest.approx(exact.middle, rel=0.1)
    assert sample(crowd[:MANY], "seed") == crowd[:MANY]
