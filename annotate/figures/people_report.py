"""Tables, a plot and sentences about annotators and their tests, answers and pauses.

The rows come from `annotator_statistics.py` and `task_statistics.py`. In all functions, `address` maps an annotator's
primary key to the URL of the annotator's page.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, partial
from typing import Any

from django.utils.safestring import SafeString

from annotate.core.pause_rule import ACCURACIES, ANSWERS, CHOICES, Rule
from annotate.core.pause_rule import table as chances
from annotate.kinds.interface_language import label_name
from annotate.reports.numbers import NOT_MEASURED, count, percent
from annotate.reports.plots import Mark, Row, forest
from annotate.reports.tables import (
    NUMBER,
    ONE_LANGUAGE,
    SENTENCE,
    SHORT,
    Cell,
    Column,
    LabelName,
    LazyList,
    Table,
    are,
    beginning,
    estimated,
    many,
    numbered,
    numbers,
    percentage,
    person,
    share,
    table,
    timed,
    to_csv,
    when,
)
from annotate.work.interventions import VoidResult

Address = Callable[[int], str]
Rows = list[dict[str, Any]]
Cells = dict[tuple[Rule, float], Cell]  # by rule and accuracy of an annotator
NONE = SafeString("")
FEW = 5  # maximum number of tasks in an annotator's row
GOLD = (
    numbered("asked", "gold answers", lambda row: row["known"]["asked"] if row["known"] else 0),
    Column("right", "right, 95% interval", NUMBER, lambda row: share(row["known"] and row["known"]["accuracy"])),
    Column("left", "gold answers left", SHORT, lambda row: _left(row["left"])),
)


def people_table(
    people: Rows, times: dict[str, Any], pauses: Rows, address: Address, sort: str, *, tested: bool
) -> Table:
    """Return the table of a task's annotators.

    tested: whether the task has a test.
    """
    quartiles = {row["annotator"]: row["quartiles"] for row in times["annotators"]}

    def time(row: dict[str, Any]) -> Cell:
        if row["annotator"] not in quartiles:
            return Cell(NOT_MEASURED)
        low, middle, high = quartiles[row["annotator"]]
        return Cell(f"{middle:,.1f} ({low:,.1f}–{high:,.1f})", middle)

    running = {row["annotator"]: row for row in pauses if row["running"]}
    heads = (
        person(address),
        *numbers({"answers": "answers", "skips": "skips", "voided": "voided"}),
        *numbers({"given_back": "given back", "ran_out": "ran out"}),
        Column("time", "seconds, median (quartiles)", NUMBER, time),
        *(GOLD if any(row["known"] or row["left"] for row in people) else ()),
        timed("last", "last judged"),
        Column(
            "state", "may work in", SENTENCE, lambda row: _queues_or_reason(row, running.get(row["annotator"]), tested)
        ),
    )
    return table("Annotators", heads, people, slug="people", sort=sort)


def members_table(rows: Rows) -> Table:
    heads = (
        Column("name", "member", says=_name),
        Column("role", "role"),
        numbered("answers", "answers"),
        numbered("quota", "quota"),
        timed("last", "last judged"),
    )
    return table("Members", heads, rows)


def _left(left: dict[str, int]) -> Cell:
    """Return a cell with the number of available gold items in each queue, fewest first.

    Once none are left in a queue, the annotator's accuracy is no longer measured there.
    """
    fewest = sorted(left.items(), key=lambda row: (row[1], row[0]))
    return Cell(", ".join(f"{queue} {count:,}" for queue, count in fewest), min(left.values(), default=-1))


def _queues_or_reason(row: dict[str, Any], pause: dict[str, Any] | None, tested: bool) -> Cell:
    if pause:
        return Cell("none: paused", "", note="new" if pause["new"] else "")
    if not row["active"]:
        return Cell("none: locked out", "")
    why_none = "none: no test passed" if tested else "none: reads no language of the task"
    return Cell(", ".join(row["may"]) or why_none, ", ".join(row["may"]))


def accuracy_plot(people: Rows, rule: Rule) -> SafeString:
    """Plot each annotator's accuracy on gold answers, lowest first. A line shows the threshold of the pause rule."""
    rows_with_gold = [row for row in people if row["known"]]
    rows_with_gold.sort(key=lambda row: (row["known"]["accuracy"]["value"], row["name"]))
    rows = [
        Row(row["name"], "", (Mark(accuracy["value"], accuracy["low"], accuracy["high"], row["known"]["asked"]),))
        for row in rows_with_gold
        if (accuracy := row["known"]["accuracy"])
    ]
    limit = (rule.below, f"required: {percent(rule.below)}") if rule.below else None
    if not rows:
        return NONE
    return forest(rows, title="Accuracy on gold answers", counted="asked", axis=(0, 100), limit=limit)


# --- A single annotator


def labels_table(rows: Iterable[dict[str, Any]], sort: str, name_of: LabelName) -> Table:
    heads = (
        Column("label", "label", says=lambda row: name_of(row["label"])),
        percentage("own", "this annotator"),
        percentage("all", "all annotators"),
    )
    return table("Labels", heads, rows, slug="labels", sort=sort)


# --- Pauses


def paused_table(pauses: Iterable[dict[str, Any]], sort: str, address: Address | None = None) -> Table:
    """Return the table of pauses.

    address: None for a single annotator's pauses, so that there is no column of names.
    """

    def until(row: dict[str, Any]) -> Cell:
        at = row["lifted_at"]
        return Cell(f"{when(at).shown}, {row['lifted_by']}", at) if at else Cell("now")

    heads = (
        *([person(address)] if address else []),
        timed("at", "since"),
        Column("why", "why", SENTENCE, lambda row: Cell(_why(row), _why(row), note="new" if row["new"] else "")),
        *numbers({"right": "right", "asked": "of gold answers"}),
        Column("until", "until", says=until),
    )
    return table("Pauses", heads, pauses, slug="paused", sort=sort)


def _why(row: dict[str, Any]) -> str:
    if row["by"]:
        return f"{row['by']}: {row['reason']}"
    return f"the pause rule; {row['reason']}" if row["reason"] else "the task’s rule"


def voided(annotator: object, done: VoidResult) -> str:
    """Return a sentence about the result of `void` in work/interventions.py."""
    if not done.answers and not done.reopened:
        return f"{annotator} had no valid answers, so nothing was voided."
    units = are(done.reopened, "item was", "items were")
    return f"Voided {many(done.answers, 'answer')} of {annotator}; {units} returned to the queue."


def comments_table(
    comments: Iterable[dict[str, Any]], sort: str, name_of: LabelName, unit: Address, address: Address | None = None
) -> Table:
    """Return the table of comments.

    unit: maps a unit's primary key to its URL.
    address: None for a single annotator's comments, so that there is no column of names.
    """

    def answer(row: dict[str, Any]) -> Cell:
        name = name_of(row["label"]) if row["label"] else row["kind"]
        return Cell(name, name, note="undone" if row["voided"] else "")

    heads = (
        timed("at", "when"),
        *([person(address)] if address else []),
        Column("comment", "comment", SENTENCE),
        Column("said", "answer", says=answer),
        Column("text", "about", SENTENCE, lambda row: replace(beginning(row), url=unit(row["unit"]))),
    )
    return table("Comments", heads, comments, slug="comments", sort=sort)


def agreed_table(consents: Iterable[dict[str, Any]], sort: str, address: Address) -> Table:
    heads = (person(address), timed("at", "agreed"), timed("withdrawn_at", "withdrawn"))
    return table("Agreements", heads, consents, slug="agreed", sort=sort)


# --- The pause rule


def rule_tables(rule: Rule, sort: str) -> list[tuple[str, Table]]:
    """Return tables on the effect of pause rules, as (heading, table) pairs.

    The rows are the rules, including the task's own rule. The columns are possible accuracies of an annotator.
    """
    rules = list(dict.fromkeys([rule, *CHOICES]))
    chances_by_rule = chances(rules)
    tables = []
    for place, number in enumerate(ANSWERS):
        chance_of = {
            (row.rule, row.accuracy): (row.by[place][1], "falsely" if row.is_false_pause else "")
            for row in chances_by_rule
        }
        cells = {key: Cell(percent(chance), chance, mark=mark) for key, (chance, mark) in chance_of.items()}
        words = f"Paused after {number} gold answers"
        tables.append((words, _by_rule(f"by{number}", words, rules, rule, cells, sort)))
    cells = {
        (row.rule, row.accuracy): Cell(f"{row.mean:,.1f}", row.mean) if row.mean else Cell("")
        for row in chances_by_rule
    }
    words = "Average number of gold answers before the pause"
    return [*tables, (words, _by_rule("mean", words, rules, rule, cells, sort))]


def _by_rule(slug: str, title: str, rules: list[Rule], task_rule: Rule, cells: Cells, sort: str) -> Table:
    def below(rule: Rule) -> Cell:
        return Cell(f"{100 * rule.below:g}%", rule.below, note="this task" if rule == task_rule else "")

    def right_in(accuracy: float) -> Column:
        value = f"{100 * accuracy:g}"
        return Column(f"of{value}", f"accuracy {value}%", NUMBER, lambda rule: cells[rule, accuracy])

    heads = (
        Column("rule", "pause if accuracy is below", says=below),
        Column("confidence", "confidence", NUMBER, lambda rule: Cell(f"{100 * rule.confidence:g}%", rule.confidence)),
        numbered("least", "minimum gold answers", lambda rule: rule.least),
        *map(right_in, ACCURACIES),
    )
    return table(title, heads, rules, slug=slug, sort=sort)


# --- Annotators of all tasks, and their timesheet


TIMESHEET = ("name", "username", "day", "task", "answers", "skips", "decisions", "hours")
HEADINGS = (*TIMESHEET[:-1], "active hours")


def everybody_table(people: LazyList, sort: str, address: Address, *, grouped: bool) -> Table:
    """Return the table of all annotators. grouped: whether any of them is in a group."""
    groups = Column("groups", "groups", SENTENCE, lambda row: ", ".join(row["groups"]))
    heads = (
        Column("name", "annotator", says=lambda row: replace(_name(row), url=address(row["annotator"]))),
        Column("languages", "reads (level)", SENTENCE, partial(_languages, name_of=cache(label_name))),
        *([groups] if grouped else []),
        Column("state", "account", SENTENCE),
        Column("tasks", "tasks", SENTENCE, lambda row: _tasks(row["tasks"])),
        *numbers({"answers": "answers", "decisions": "decisions"}),
        *(
            _hours(key, words)
            for key, words in (("today", "hours today"), ("week", "hours in 7 days"), ("all", "total hours"))
        ),
        estimated("right", "accuracy on gold answers"),
        estimated("same", "same as the label"),
        Column("paused", "paused in", NUMBER, lambda row: Cell(count(row["paused"]), row["paused"])),
        timed("last", "last seen"),
    )
    return table("Everybody", heads, people, slug="everybody", sort=sort)


def _name(row: dict[str, Any]) -> Cell:
    notes = [row["username"]] if row["username"] != row["name"] else []
    notes += ["adjudicates"] if row.get("adjudicates") else []
    notes += [] if row["active"] else ["locked out"]
    return Cell(row["name"], row["name"].casefold(), note=", ".join(notes))


def _tasks(names: list[str]) -> Cell:
    more = f" and {len(names) - FEW:,} more" if len(names) > FEW else ""
    return Cell(f"{', '.join(names[:FEW])}{more}", len(names))


def _languages(row: dict[str, Any], name_of: LabelName) -> Cell:
    """Return a cell with an annotator's languages, highest level first."""
    ordered = sorted(row["languages"].items(), key=lambda of: (-of[1], of[0]))
    return Cell(", ".join(f"{name_of(code)} {level}" for code, level in ordered), [code for code, _ in ordered])


def _hours(key: str, words: str) -> Column:
    def hours(row: dict[str, Any]) -> Cell:
        return Cell(f"{row['hours'][key]:,.1f}" if row["hours"][key] else "0", round(row["hours"][key], 2))

    return Column(key, words, NUMBER, hours)


def timesheet_csv(rows: Iterable[dict[str, Any]]) -> str:
    """Return the timesheet as CSV, with a row for each annotator, day and task, and hours with two decimal places."""
    rows_as_text = (row | {"day": row["day"].isoformat(), "hours": f"{row['hours']:.2f}"} for row in rows)
    return to_csv(HEADINGS, ([row[key] for key in TIMESHEET] for row in rows_as_text))


# --- Tests and gold answers

TEXT = Column("text", "text", SENTENCE, beginning)

BY_LANGUAGE = (
    ONE_LANGUAGE,
    *numbers({"took": "took the test", "passed": "passed", "granted": "exempted", "failed": "no tries left"}),
    numbered("tests", "tests"),
    estimated("share", "tests passed, 95% interval"),
)


def tested_table(rows: Iterable[dict[str, Any]], sort: str) -> Table:
    return table("Tests by language", BY_LANGUAGE, rows, slug="tested", sort=sort)


def trials_table(rows: Iterable[dict[str, Any]], sort: str, address: Callable[[int], str] | None = None) -> Table:
    """Return the table of tests, with a row for each annotator and language.

    address: None for a single annotator's tests, so that there is no column of names.
    """
    heads = (
        *([person(address)] if address else []),
        ONE_LANGUAGE,
        numbered("tries", "tries"),
        Column("score", "best score", NUMBER, _score),
        timed("last", "last"),
        Column("state", "now", SHORT, _test_state),
    )
    return table("Tests by annotator", heads, rows, slug="tests", sort=sort)


def _score(row: dict[str, Any]) -> Cell:
    share = f"{row['right']} of {row['asked']}"
    return Cell(NOT_MEASURED) if row["right"] is None else Cell(share, row["right"] / max(1, row["asked"]))


def _test_state(row: dict[str, Any]) -> Cell:
    if row["qualified"]:
        return Cell("exempted by a manager" if row["granted"] else "passed", 0)
    if row["open"]:
        return Cell("in progress", 1)
    return Cell(f"can try again ({row['left']})", 2) if row["left"] else Cell("no tries left", 3)


def gold_answers_table(rows: Iterable[dict[str, Any]], sort: str, name_of: LabelName) -> Table:
    def agreeing(row: dict[str, Any]) -> Cell:
        share = f"{row['right']:,} of {row['asked']:,}"
        return Cell(share, row["right"] / row["asked"]) if row["asked"] else Cell(NOT_MEASURED)

    heads = (
        Column("item", "record"),
        TEXT,
        ONE_LANGUAGE,
        Column("purpose", "for"),
        Column("label", "known answer", says=lambda row: name_of(row["label"])),
        Column("said", "most frequent other answer", says=lambda row: name_of(row["said"])),
        numbered("asked", "asked"),
        Column("right", "agree", NUMBER, agreeing),
    )
    return table("Known answers", heads, rows, slug="known", sort=sort)


def gold_judgments_table(rows: Iterable[dict[str, Any]], sort: str, name_of: LabelName) -> Table:
    """Return the table of an annotator's answers to gold items."""

    def answer(row: dict[str, Any]) -> Cell:
        name = name_of(row["said"])
        return Cell(name, name, note="voided" if row["voided"] else "")

    heads = (
        timed("at", "when"),
        TEXT,
        Column("label", "known answer", says=lambda row: name_of(row["label"])),
        Column("said", "answer", says=answer),
        Column("right", "right", says=lambda row: Cell("yes" if row["right"] else "no", row["right"])),
    )
    return table("Gold answers given", heads, rows, slug="given", sort=sort)
