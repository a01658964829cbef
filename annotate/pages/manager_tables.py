"""How the figures of managing.py, queue_states.py and agreeing.py are shown: tables that sort, plots, sentences."""

from datetime import datetime

from django.urls import reverse
from django.utils import timezone

from annotate.core import stages
from annotate.core.labels import label_name
from annotate.core.pausing import ACCURACIES, ASKED, CHOICES, Rule, table
from annotate.models import Task
from annotate.reports.numbers import NOT_MEASURED, count, estimate, percent
from annotate.reports.sortable import NUMBER, SENTENCE, SHORT, Cell, Column, SortedTable, sorted_table

# What stacked bars are made of: stage and its words.
PARTS = (
    (stages.LABELLED, "labelled by people"),
    (stages.AGREED, "labelled by the detectors"),
    (stages.DISCARDED, "left out"),
    (stages.ADJUDICATION, "with an adjudicator"),
    (stages.QUEUED, "waiting for annotators"),
)


def when(at: datetime | None) -> Cell:
    """A time in the installation's time zone."""
    return Cell(f"{timezone.localtime(at):%Y-%m-%d %H:%M}", at) if at else Cell(NOT_MEASURED)


def number(value: float | None) -> Cell:
    return Cell(count(value), value)


def share(of: dict | None, note: str = "") -> Cell:
    """An estimate with its interval, sorted by its value."""
    return Cell(estimate(of), of["value"], note=note) if of and of["value"] is not None else Cell(NOT_MEASURED)


def language(code: str) -> Cell:
    return Cell(label_name(code) or "not in a queue yet", label_name(code), note=code)


def person(task: Task, row: dict) -> Cell:
    return Cell(row["name"], row["name"].casefold(), reverse("manage-person", args=[task.name, row["annotator"]]))


def tasks_table(rows: list[dict], asked: str) -> SortedTable:
    heads = [
        Column("task", "task"),
        Column("type", "type"),
        Column("done", "done", NUMBER),
        Column("units", "of units", NUMBER),
        Column("queued", "waiting", NUMBER),
        Column("adjudication", "with an adjudicator", NUMBER),
        Column("today", "answers in 24 hours", NUMBER),
        Column("paused", "paused", NUMBER),
        Column("stuck", "queues that stand still", NUMBER),
    ]
    cells = [
        [
            Cell(row["title"], row["title"], reverse("manage-task", args=[row["name"]]), note=_closed(row)),
            Cell(row["task_type"], row["task_type"]),
            Cell(percent(row["done"] / row["units"]), row["done"] / row["units"])
            if row["units"]
            else Cell(NOT_MEASURED),
            *(number(row[key]) for key in ("units", "queued", "adjudication", "answers_today")),
            Cell(
                count(row["paused"]), row["paused"], note=f"{row['newly_paused']:,} new" if row["newly_paused"] else ""
            ),
            number(row["stuck"]),
        ]
        for row in rows
    ]
    return sorted_table("tasks", "All tasks", heads, cells, asked)


def _closed(row: dict) -> str:
    return row["name"] if row["is_open"] else f"{row['name']}, closed"


def progress_table(progress: dict, asked: str) -> SortedTable:
    """Stages that no unit is at have no column."""
    at = [(stage, words) for stage, words in (*PARTS, (stages.COPIED, "copies")) if progress["all"][stage]]
    heads = [
        Column("language", "language", SHORT),
        Column("units", "units", NUMBER),
        Column("done", "done", NUMBER),
        *(Column(stage.lower(), words, NUMBER) for stage, words in at),
        Column("missing", "answers missing", NUMBER),
    ]
    rows = progress["languages"]
    in_all = [{**progress["all"], "language": None}] if len(rows) > 1 else []
    cells = [
        [
            Cell("all languages") if row["language"] is None else language(row["language"]),
            number(row["units"]),
            Cell(percent(row["done"] / row["units"]), row["done"] / row["units"])
            if row["units"]
            else Cell(NOT_MEASURED),
            *(number(row[stage]) for stage, _ in at),
            number(row["missing"]),
        ]
        for row in rows
    ]
    table = sorted_table("progress", "Progress by language", heads, cells, asked)
    for row in in_all:
        kinds = [head.kind for head in heads]
        last = [Cell("all languages"), number(row["units"]), Cell(percent(row["done"] / max(1, row["units"])))]
        last += [number(row[stage]) for stage, _ in at] + [number(row["missing"])]
        table.rows.append(list(zip(last, kinds, strict=True)))
    return table


def remaining(missing: int, today: int) -> str:
    """How long what is missing takes, if people go on as in the last 24 hours."""
    if not missing or not today:
        return ""
    days = missing / today
    if days < 1:
        return "less than a day at the pace of the last 24 hours"
    return f"about {days:,.0f} day{'' if round(days) == 1 else 's'} at the pace of the last 24 hours"


def queues_table(task: Task, states: dict, asked: str) -> SortedTable:
    tested = bool(task.test_items)
    heads = [
        Column("queue", "queue"),
        Column("said", "how it stands", SENTENCE),
        Column("waiting", "waiting", NUMBER),
        Column("missing", "answers missing", NUMBER),
        Column("leased", "open now", NUMBER),
        Column("readers", "readers", NUMBER),
        *([Column("passed", "passed", NUMBER)] if tested else []),
        Column("able", "may work", NUMBER),
        Column("last", "last judged", SHORT),
    ]
    cells = [
        [
            language(row["queue"]),
            Cell(row["said"], not row["stuck"], note="stuck" if row["stuck"] else ""),
            *(
                number(row[key])
                for key in ("waiting", "missing", "leased", "readers", *(["passed"] if tested else []), "able")
            ),
            when(row["last"]),
        ]
        for row in states["queues"]
    ]
    return sorted_table("queues", "Queues", heads, cells, asked)


def idle_table(task: Task, states: dict, asked: str) -> SortedTable:
    heads = [
        Column("name", "annotator"),
        Column("queues", "languages"),
        Column("last", "last judged", SHORT),
        Column("said", "why", SENTENCE),
    ]
    cells = [
        [
            person(task, row),
            Cell(", ".join(row["queues"]), row["queues"]),
            Cell(when(row["last"]).shown, row["last"], note="within the last hour" if row["at_work"] else ""),
            Cell(row["said"], row["said"]),
        ]
        for row in states["idle"]
    ]
    return sorted_table("idle", "Annotators who are left nothing", heads, cells, asked)


def people_table(task: Task, people: list[dict], times: dict, pauses: list[dict], asked: str) -> SortedTable:
    quartiles = {row["annotator"]: row["quartiles"] for row in times["annotators"]}
    running = {row["annotator"]: row for row in pauses if row["running"]}
    knows = any(row["known"] or row["left"] for row in people)
    heads = [
        Column("name", "annotator"),
        Column("answers", "answers", NUMBER),
        Column("skips", "skips", NUMBER),
        Column("voided", "voided", NUMBER),
        Column("time", "seconds, median (quartiles)", NUMBER),
        *([Column("asked", "gold answers", NUMBER), Column("right", "right, 95% interval", NUMBER)] if knows else []),
        *([Column("left", "gold answers left", SHORT)] if knows else []),
        Column("last", "last judged", SHORT),
        Column("state", "may work in", SENTENCE),
    ]
    cells = []
    for row in people:
        low, middle, high = quartiles.get(row["annotator"], (0, None, 0))
        spent = Cell(f"{middle:,.1f} ({low:,.1f}–{high:,.1f})", middle) if middle is not None else Cell(NOT_MEASURED)
        known = row["known"]
        cells.append(
            [
                person(task, row),
                *(number(row[key]) for key in ("answers", "skips", "voided")),
                spent,
                *([number(known["asked"] if known else 0), share(known and known["accuracy"])] if knows else []),
                *([_left(row["left"])] if knows else []),
                when(row["last"]),
                _now(task, row, running.get(row["annotator"])),
            ]
        )
    return sorted_table("people", "Annotators", heads, cells, asked)


def _left(left: dict[str, int]) -> Cell:
    """The least first: whoever has none left in a language is not watched there any more."""
    fewest = sorted(left.items(), key=lambda row: (row[1], row[0]))
    return Cell(", ".join(f"{queue} {count:,}" for queue, count in fewest), min(left.values(), default=-1))


def _now(task: Task, row: dict, pause: dict | None) -> Cell:
    if pause:
        return Cell("none: paused", "", note="new" if pause["new"] else "")
    if not row["active"]:
        return Cell("none: locked out", "")
    why_none = "none: no test passed" if task.test_items else "none: reads none of them"
    return Cell(", ".join(row["may"]) or why_none, ", ".join(row["may"]))


def paused_table(task: Task, pauses: list[dict], asked: str, *, named: bool = True) -> SortedTable:
    heads = [
        *([Column("name", "annotator")] if named else []),
        Column("at", "since", SHORT),
        Column("why", "why", SENTENCE),
        Column("right", "right", NUMBER),
        Column("asked", "of gold answers", NUMBER),
        Column("until", "until"),
    ]
    cells = [
        [
            *([person(task, row)] if named else []),
            when(row["at"]),
            Cell(why_paused(row), why_paused(row), note="new" if row["new"] else ""),
            number(row["right"]),
            number(row["asked"]),
            Cell(f"{when(row['lifted_at']).shown}, {row['lifted_by']}", row["lifted_at"])
            if row["lifted_at"]
            else Cell("now"),
        ]
        for row in pauses
    ]
    return sorted_table("paused", "Pauses", heads, cells, asked)


def why_paused(row: dict) -> str:
    if row["by"]:
        return f"{row['by']}: {row['reason']}"
    return f"the task’s rule; {row['reason']}" if row["reason"] else "the task’s rule"


def labels_table(rows: list[dict], asked: str) -> SortedTable:
    heads = [Column("label", "label"), Column("own", "theirs", NUMBER), Column("all", "everybody’s", NUMBER)]
    cells = [
        [Cell(row["label"], row["label"]), *(Cell(percent(row[key]), row[key]) for key in ("own", "all"))]
        for row in rows
    ]
    return sorted_table("labels", "Labels", heads, cells, asked)


def given_table(rows: list[dict], asked: str) -> SortedTable:
    heads = [
        Column("at", "when", SHORT),
        Column("text", "text", SENTENCE),
        Column("label", "known answer"),
        Column("said", "theirs"),
        Column("right", "right"),
    ]
    cells = [
        [
            when(row["at"]),
            text(row["text"]),
            Cell(row["label"], row["label"]),
            Cell(row["said"], row["said"], note="voided" if row["voided"] else ""),
            Cell("yes" if row["right"] else "no", row["right"]),
        ]
        for row in rows
    ]
    return sorted_table("given", "Gold answers given", heads, cells, asked)


def voided(annotator, done) -> str:
    """What pausing.void did."""
    if not done.answers and not done.reopened:
        return f"{annotator} had no answers that count, so nothing was voided."
    answers = "1 answer" if done.answers == 1 else f"{done.answers:,} answers"
    units = "1 unit is" if done.reopened == 1 else f"{done.reopened:,} units are"
    return f"Voided {answers} of {annotator}; {units} back in the queue."


def tested_table(tests: dict, asked: str) -> SortedTable:
    heads = [
        Column("language", "language", SHORT),
        Column("took", "took it", NUMBER),
        Column("passed", "passed", NUMBER),
        Column("granted", "let in without it", NUMBER),
        Column("failed", "no try left", NUMBER),
        Column("tests", "tests", NUMBER),
        Column("share", "tests passed, 95% interval", NUMBER),
    ]
    cells = [
        [
            language(row["language"]),
            *(number(row[key]) for key in ("took", "passed", "granted", "failed", "tests")),
            share(row["share"]),
        ]
        for row in tests["languages"]
    ]
    return sorted_table("tested", "Tests by language", heads, cells, asked)


def trials_table(task: Task, rows: list[dict], asked: str, *, named: bool = True) -> SortedTable:
    heads = [
        *([Column("name", "annotator")] if named else []),
        Column("language", "language", SHORT),
        Column("tries", "tries", NUMBER),
        Column("score", "best score", NUMBER),
        Column("last", "last", SHORT),
        Column("state", "now", SHORT),
    ]
    cells = [
        [
            *([person(task, row)] if named else []),
            language(row["language"]),
            number(row["tries"]),
            Cell(f"{row['right']} of {row['asked']}", row["right"] / max(1, row["asked"]))
            if row["right"] is not None
            else Cell(NOT_MEASURED),
            when(row["last"]),
            _tested(row),
        ]
        for row in rows
    ]
    return sorted_table("tests", "Tests by annotator", heads, cells, asked)


def _tested(row: dict) -> Cell:
    if row["qualified"]:
        return Cell("let in by a manager" if row["granted"] else "passed", 0)
    if row["open"]:
        return Cell("taking it", 1)
    return Cell(f"may try again ({row['left']})", 2) if row["left"] else Cell("no try left", 3)


SHOWN = 140  # letters of a record's text


def text(words: str) -> Cell:
    """The beginning of a record's text, its fields one after the other."""
    words = " · ".join(words.split("\n"))
    return Cell(words[:SHOWN] + ("…" if len(words) > SHOWN else ""), words)


def known_table(rows: list[dict], asked: str) -> SortedTable:
    heads = [
        Column("item", "record"),
        Column("text", "text", SENTENCE),
        Column("language", "language", SHORT),
        Column("purpose", "for"),
        Column("label", "known answer"),
        Column("said", "others say"),
        Column("asked", "asked", NUMBER),
        Column("right", "agree with it", NUMBER),
    ]
    cells = [
        [
            Cell(row["item"], row["item"]),
            text(row["text"]),
            language(row["language"]),
            Cell(row["purpose"], row["purpose"]),
            Cell(row["label"], row["label"]),
            Cell(row["said"], row["said"]),
            number(row["asked"]),
            Cell(f"{row['right']:,} of {row['asked']:,}", row["right"] / row["asked"])
            if row["asked"]
            else Cell(NOT_MEASURED),
        ]
        for row in rows
    ]
    return sorted_table("known", "Known answers", heads, cells, asked)


def rule_tables(rule: Rule, asked: str) -> list[tuple[str, SortedTable]]:
    """What each rule does to people of each accuracy, the task's own rule among them; a table for each question."""
    rules = list(dict.fromkeys([rule, *CHOICES]))
    found = table(rules)
    made = []
    for place, number_asked in enumerate(ASKED):
        cells = {(row.rule, row.accuracy): _chance(row, row.by[place][1]) for row in found}
        words = f"Paused by the {number_asked}th gold answer"
        made.append((words, _by_rule(f"by{number_asked}", words, rules, rule, cells, asked)))
    cells = {(row.rule, row.accuracy): Cell(f"{row.mean:,.1f}", row.mean) if row.mean else Cell("") for row in found}
    words = "Gold answers until the pause, on average"
    return [*made, (words, _by_rule("mean", words, rules, rule, cells, asked))]


def _chance(row, chance: float) -> Cell:
    return Cell(percent(chance), chance, mark="falsely" if row.falsely else "")


def _by_rule(slug: str, words: str, rules: list[Rule], own: Rule, cells: dict, asked: str) -> SortedTable:
    heads = [
        Column("rule", "pause who is right in less than"),
        Column("confidence", "how certain", NUMBER),
        Column("least", "from gold answer", NUMBER),
        *(Column(f"of{100 * accuracy:g}", f"right in {100 * accuracy:g}%", NUMBER) for accuracy in ACCURACIES),
    ]
    rows = [
        [
            Cell(f"{100 * rule.below:g}%", rule.below, note="this task" if rule == own else ""),
            Cell(f"{100 * rule.confidence:g}%", rule.confidence),
            number(rule.least),
            *(cells[rule, accuracy] for accuracy in ACCURACIES),
        ]
        for rule in rules
    ]
    return sorted_table(slug, words, heads, rows, asked)


def measure(made: dict | None) -> Cell:
    """A coefficient, as agreeing.py writes it: it may be below 0, and have no interval."""
    if not made or made["value"] is None:
        return Cell(NOT_MEASURED)
    interval = f" [{made['low']:.2f}, {made['high']:.2f}]" if made["low"] is not None else ""
    return Cell(f"{made['value']:.2f}{interval}", made["value"])


def agreement_table(report: dict, asked: str) -> SortedTable:
    heads = [
        Column("language", "language", SHORT),
        Column("units", "units of two answers or more", NUMBER),
        Column("annotators", "annotators", NUMBER),
        Column("observed", "observed agreement, 95% interval", NUMBER),
        Column("nominal", "alpha, nominal", NUMBER),
        *([Column("ordinal", "alpha, ordinal", NUMBER)] if report["ordered"] else []),
    ]

    def cells(part: dict, first: Cell) -> list[Cell]:
        ordinal = [measure(part["ordinal"])] if report["ordered"] else []
        counts = [number(part["units_of_two"]), number(part["annotators"])]
        return [first, *counts, measure(part["observed"]), measure(part["nominal"]), *ordinal]

    rows = [cells(part, language(code)) for code, part in report["languages"].items()]
    table = sorted_table("agreement", "Agreement by language", heads, rows, asked)
    last = cells(report["all"], Cell("all languages"))
    table.rows.append(list(zip(last, (head.kind for head in heads), strict=True)))
    return table


def differs_table(rows: list[dict], asked: str) -> SortedTable:
    """Units of which Dawid and Skene's model says what no label with the most votes is."""
    heads = [
        Column("item", "record"),
        Column("language", "language", SHORT),
        Column("votes", "answers"),
        Column("majority", "most say"),
        Column("model", "the model says"),
        Column("posterior", "with a probability of", NUMBER),
    ]
    cells = [
        [
            Cell(row["item"], row["item"], reverse("admin:annotate_unit_change", args=[row["unit"]])),
            language(row["language"]),
            Cell(", ".join(f"{label}: {number}" for label, number in row["votes"].items())),
            *(Cell(" or ".join(row[key]), row[key]) for key in ("majority", "dawid_skene")),
            Cell(percent(row["posterior"]), row["posterior"]),
        ]
        for row in rows
    ]
    return sorted_table("differs", "Where the model says otherwise", heads, cells, asked)


def against_rest_table(task: Task, report: dict, names: dict[int, str], asked: str) -> SortedTable:
    heads = [
        Column("name", "annotator"),
        Column("units", "units shared", NUMBER),
        Column("agreement", "agreement with the others, 95% interval", NUMBER),
        Column("kappa", "kappa", NUMBER),
    ]
    cells = [
        [
            person(task, {"annotator": row["annotator"], "name": names.get(row["annotator"], row["pseudonym"])}),
            number(row["units"]),
            measure(row["agreement"]),
            measure(row["kappa"]),
        ]
        for row in report["all"]["against_rest"]
    ]
    return sorted_table("rest", "Each annotator against the rest", heads, cells, asked)
