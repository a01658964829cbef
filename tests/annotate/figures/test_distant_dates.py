"""A finish that is more than a year away: the pages give no date, but say what helps."""

import re

from annotate.figures import progress_report

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
