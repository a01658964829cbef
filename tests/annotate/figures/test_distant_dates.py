"""Forecasts at both ends: a finish that is more than a year away, and thousands of annotators."""

import re
from collections import Counter

import pytest

from annotate.figures import progress_report
from annotate.figures.finish_simulation import MANY, Assumed, Queue, Reader, forecast, sample

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


def test_a_distant_finish_is_more_than_a_year_and_asks_for_people():
    assert progress_report.draw_headline(RESULT).endswith(" It takes more than a year with 2 annotators; add people.")
    assert (progress_report.finish_day(RESULT), progress_report.finish_words(RESULT)) == ("over a year",) * 2
    sentences = progress_report.forecast_words(RESULT)
    assert sentences[0] == "In most simulations, the finish is more than a year from now. Add people."
    table = progress_report.forecast_table(RESULT)
    shown = [cell.shown for row in table.body for cell in row]
    assert shown.count("over a year") == 3
    assert not re.search(r"\b20\d\d\b", " ".join([*shown, *sentences]))


def test_a_finish_this_year_has_a_date_and_an_open_end_none():
    near = RESULT | {"all": {"low": 8.0, "middle": 9.0, "high": 700.0}}
    assert progress_report.draw_headline(near).endswith(" Done by 7 Dec with 2 annotators.")
    assert progress_report.finish_words(near) == "about 7 Dec, not before 6 Dec"


@pytest.mark.slow
def test_a_sample_of_a_large_crowd_keeps_rare_readers_and_the_forecast():
    languages = ("en", "de", "fr", "es")
    crowd = [
        Reader(f"p{n}", (languages[n % 4], languages[n // 4 % 4])[: 1 + n % 2], *measured)
        for n in range(800)
        for measured in [(500, 9 + n % 7, 9, 5, 2.0) if n % 3 else ()]
    ]
    crowd += [Reader(f"rare{n}", ("yi", "en")) for n in range(3)]
    some = sample(crowd, "seed")
    kept = Counter(name for reader in some for name in reader.queues)
    assert kept["yi"] == 3
    assert all(0.8 * MANY < kept[name] < 2 * MANY for name in languages)
    for name in ("yi", *languages):
        all_of, stand_for = ([of for of in readers if name in of.queues] for readers in (crowd, some))
        assert sum(of.stands_for for of in stand_for) == pytest.approx(len(all_of), rel=0.1)
    work, usual = [Queue(name, 300_000) for name in languages], Assumed(seconds=12, weekly=10)
    exact, sampled = (forecast(work, readers, usual).all for readers in (crowd, some))
    assert sampled.middle == pytest.approx(exact.middle, rel=0.1)
    assert sample(crowd[:MANY], "seed") == crowd[:MANY]
