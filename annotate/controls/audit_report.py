"""Results of auditing the detectors' agreement, and the sentences, table and plot that present these results.

agreement_audit.py draws the audit sample, and sends languages that fail the audit to people.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.db.models.lookups import GreaterThan

from annotate.controls.check_report import slips
from annotate.core import stages
from annotate.core.aggregation.answer_table import majority
from annotate.core.estimation.label_errors import (
    LEAST_READ_IN_ALL,
    Audit,
    bounds,
    error,
    is_over,
    overall_bounds,
    overall_error,
)
from annotate.core.estimation.proportions import UNKNOWN, Estimate
from annotate.models import Judgment, Task, Unit
from annotate.quality.agreement_strata import contested_strata, in_strata, strata
from annotate.reports.numbers import count, estimate, percent
from annotate.reports.plots import Mark, Row, forest
from annotate.reports.tables import (
    LANGUAGE,
    NOTE,
    NUMBER,
    Cell,
    Column,
    Table,
    are,
    beside,
    many,
    numbered,
    share,
    table,
)
from corpora.database.bulk_rows import listed

# If the adjudicators' error rate was not measured, reports also show the results for this assumed rate.
ASSUMED = Estimate(0.01, 0.01, 0.01, 0.0, 0.0)

Stratum = tuple[str, ...]  # a unit's values in the fields that Statistics.audit_strata names


def audits(task: Task, names: Iterable[str] | None = None) -> dict[str, Audit]:
    """Return the audit counts for units labelled by agreement. Strata are sorted.

    names: strata to count, named as in agreement_strata.strata; None for all.
    """
    posts = task.units.exclude(agreed_label="")
    if names is not None:
        posts = posts.filter(in_strata(task, names))
    return {" ".join(stratum): audit for stratum, audit in audits_of(task, posts).items()}


def audits_of(task: Task, posts: QuerySet[Unit]) -> dict[Stratum, Audit]:
    """Return the audit counts for some automatically labelled units. Strata are sorted.

    posts: the units to count, all from the same task.
    """
    paths = task.kind.statistics.audit_strata
    sizes = {
        tuple(stratum): number for *stratum, number in posts.order_by(*paths).values_list(*paths).annotate(Count("pk"))
    }
    judged = [Coalesce(f"copy_of__{name}", name) for name in ("pk", "label", "stage", "agreed_label", "recheck")]
    rows = list(posts.filter(audited=True).order_by().values_list(*paths, *judged))
    answers: dict[int, list[str]] = {}
    live = Judgment.objects.live().answers().filter(unit__in=listed({row[-5] for row in rows}))
    for unit, label in live.order_by().values_list("unit_id", "label"):
        answers.setdefault(unit, []).append(label)
    counts = {stratum: Counter[str]() for stratum in sizes}
    for *stratum, unit, label, stage, agreed_label, recheck in rows:
        counts[tuple(stratum)].update(_outcome(answers.get(unit, []), label, stage, agreed_label, recheck))
    fields = ("doubted", "doubted_wrong", "confirmed", "checked", "checked_wrong", "unresolved")
    return {
        stratum: Audit(posts=size, **{name: counts[stratum][name] for name in fields})
        for stratum, size in sizes.items()
    }


def _outcome(answers: list[str], label: str, stage: str, agreed_label: str, recheck: bool) -> list[str]:
    """Return the names of the Audit fields in which to count an audited unit.

    answers: labels that readers chose for the unit.
    """
    if stage != stages.LABELLED:
        return ["unresolved"]
    doubted = majority(answers) != agreed_label
    if not (doubted or recheck):
        return ["confirmed"]
    outcome = "doubted" if doubted else "checked"
    wrong = [f"{outcome}_wrong"] if label != agreed_label else []
    return [outcome, *wrong] if doubted else ["confirmed", outcome, *wrong]


def over_limit(task: Task, audit: Audit) -> bool:
    return is_over(audit, task.audit_limit, slips(task))


def audit_counts(task: Task) -> dict[Stratum, tuple[int, int]]:
    """Return (posts, drawn) by stratum: the number of automatically labelled items, and how many were drawn."""
    counts = task.units.exclude(agreed_label="").order_by().values_list(*task.kind.statistics.audit_strata)
    counts = counts.annotate(posts=Count("pk"), chosen=Count("pk", filter=Q(audited=True)))
    return {tuple(stratum): (posts, chosen) for *stratum, posts, chosen in counts}


def contested_waiting() -> dict[int, dict[str, int]]:
    """Return how many units of failed audits are still queued for readers, as {task key: {label: count}}."""
    # Without the first condition, the join would read the transitions of all queued units.
    units = Unit.objects.exclude(agreed_label="").filter(stage=stages.QUEUED, transitions__event="contested").order_by()
    numbers: dict[int, dict[str, int]] = {}
    for task, label, number in units.values_list("task", "agreed_label").annotate(Count("pk", distinct=True)):
        numbers.setdefault(task, {})[label] = number
    return numbers


def in_audit() -> Q:
    """Return a filter for units that were drawn for the audit or that have a drawn copy.

    The filter counts copies instead of using EXISTS, which would make PostgreSQL read all tasks' copies each time.
    """
    copies = Unit.objects.filter(copy_of=OuterRef("pk"), audited=True).order_by().values("copy_of")
    return Q(audited=True) | Q(GreaterThan(Subquery(copies.values(number=Count("pk"))), 0))


def unfinished_units(units: QuerySet[Unit]) -> QuerySet[Unit]:
    """Select the unfinished units of the audit.

    Units that are queued only because their language failed the audit are not selected.
    """
    return units.filter(in_audit(), stage__in=(stages.QUEUED, stages.ADJUDICATION))


def report(task: Task) -> dict[str, Any]:
    """Return the results of the audit, in total and by language, as JSON data.

    limit: largest acceptable error rate.
    overall: the detectors' error rate with its 95% interval, corrected for the adjudicators' errors.
    overall_bounds: lower end of the interval if the detectors are right about all unresolved items, and upper end if
        they are wrong about all of them.
    slips: the adjudicators' error rate, measured on items that two of them decided; None if there are no such items.
    assumed: what `overall` would be if 1% of the adjudicators' decisions were wrong; None if `slips` was measured.
    languages: a row for each stratum of the items that the detectors agree on. In language tasks, a stratum is a label.
        In other tasks, it is a language and a label.

    Each row has:

    posts: number of items that the detectors gave this label.
    audited: number of drawn items that have a final label.
    unresolved: number of drawn items that were discarded or are not finished.
    checked: number of items that a reader confirmed and that an adjudicator then rechecked.
    overruled: number of checked items that the detectors labelled wrongly.
    error, bounds: like `overall` and `overall_bounds`, but for this stratum only.
    waiting: whether the audit is unfinished.
    over_limit: whether the audit is finished and over the limit, and some items still have only the detectors' label.
    all_read: whether the audit is finished and over the limit, but readers have labelled all items anyway.
    contested: whether readers label all items because the audit failed.
    """
    label_audits, slip_rate, contested = audits(task), slips(task), contested_strata(task)
    # The error rate of strata without drawn items is unknown.
    drawn = {label: audit for label, audit in label_audits.items() if audit.resolved + audit.unresolved}
    unfinished = strata(task, unfinished_units(task.units.all())) if drawn else set()
    finished = {label: audit for label, audit in drawn.items() if label not in unfinished}
    over = {label for label, audit in finished.items() if is_over(audit, task.audit_limit, slip_rate)}
    unread = strata(task, task.units.filter(stage=stages.AGREED)) if over else set()
    return {
        "limit": task.audit_limit,
        "overall": overall_error(label_audits.values(), slip_rate).as_dict(),
        "overall_bounds": list(overall_bounds(label_audits.values(), slip_rate)) if drawn else [0.0, 1.0],
        "slips": slip_rate and slip_rate.as_dict(),
        "assumed": None if slip_rate else overall_error(label_audits.values(), ASSUMED).as_dict(),
        "languages": [
            {
                **_columns(task, label),
                "posts": audit.posts,
                "audited": audit.resolved,
                "unresolved": audit.unresolved,
                "checked": audit.checked,
                "overruled": audit.checked_wrong,
                "error": (error(audit, slip_rate) if label in drawn else UNKNOWN).as_dict(),
                "bounds": list(bounds(audit, slip_rate)) if label in drawn else [0.0, 1.0],
                "waiting": label in unfinished,
                "over_limit": label in over & unread,
                "all_read": label in over - unread - contested,
                "contested": label in contested,
            }
            for label, audit in label_audits.items()
        ],
    }


def _columns(task: Task, name: str) -> dict[str, str]:
    """Split the name of a stratum into columns for the report."""
    *language, label = name.split(" ", len(task.kind.statistics.audit_strata) - 1)
    return {"language": language[0], "label": label} if language else {"language": label}


# --- Text, table and plot


def name_of(row: dict[str, Any]) -> str:
    """Return the name of a row's stratum, as in agreement_strata.strata."""
    return " ".join(row[key] for key in ("language", "label") if key in row)


def audit_words(audit: dict[str, Any], who: str = "detectors", noun: str = "post") -> list[str]:
    """Return sentences that summarize the audit of all languages; an empty list if no items were drawn.

    who: plural noun for the voters.
    noun: noun for an item.
    """
    rows = audit["languages"]
    agreed, read, unresolved = (sum(row[key] for row in rows) for key in ("posts", "audited", "unresolved"))
    chosen = read + unresolved
    if not chosen:
        return []
    sentences = [
        f"The {who} agree on {count(agreed)} {noun}s. People read {count(chosen)} of these, drawn at random, "
        f"without knowing which. {count(read)} have a final label."
    ]
    if audit["overall"]["value"] is not None:
        slips = audit.get("slips")
        correction = f", corrected for adjudicators' mistakes ({estimate(slips)} of their decisions)" if slips else ""
        sentences.append(
            f"The {who} are wrong on {estimate(audit['overall'])} of the {noun}s on which they agree, with each "
            f"{_weighting_unit(rows)} weighted by its {noun}s{correction}."
        )
        if read < min(agreed, LEAST_READ_IN_ALL):
            sentences.append(
                f"With fewer than {LEAST_READ_IN_ALL} audited {noun}s, the interval is wide. Add audits to narrow it."
            )
        if chosen > read:
            low, high = map(percent, audit["overall_bounds"])
            sentences.append(
                f"The interval assumes the same error rate for the {are(chosen - read, noun, f'{noun}s')} of the audit "
                f"without a label. With all of these right at its lower end and all wrong at its upper end, the 95% "
                f"interval is {low} to {high}."
            )
        assumed = audit.get("assumed")
        if assumed and assumed["low"] is not None:
            sentences.append(
                f"The adjudicators' error rate is unknown, because no {noun} was decided by two of them. If the rate "
                f"were 1%, the {who} would be wrong on {estimate(assumed)}."
            )
    return sentences


def audit_table(audit: dict[str, Any]) -> Table:
    """Return a table with a row for each language.

    Languages over the limit come first, followed by languages that readers label because the audit failed. Each group
    is sorted by error rate, the highest first.
    """

    def language(row: dict[str, Any]) -> Cell:
        return Cell(row["language"], row["language"], mark="stuck" if row["over_limit"] else "")

    rows = _in_order(audit)
    columns = (
        Column("language", "language", says=language),
        LANGUAGE[1],
        *([Column("label", "label")] if rows and "label" in rows[0] else ()),
        numbered("posts", "agreed on"),
        Column("audited", "read", NUMBER, lambda row: f"{row['audited']:,} of {row['audited'] + row['unresolved']:,}"),
        Column("error", "wrong, 95% interval", NUMBER, lambda row: share(row["error"])),
        Column("note", "", NOTE, lambda row: _audit_note(row, audit["limit"])),
    )
    return table(many(len({row["language"] for row in rows}), "language"), columns, rows)


def _weighting_unit(rows: list[dict[str, Any]]) -> str:
    return "language and label" if "label" in rows[0] else "language"


def _in_order(audit: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(
        audit["languages"],
        key=lambda row: (
            not row["over_limit"],
            not row["contested"],
            -(row["error"]["value"] or 0),
            -row["posts"],
            name_of(row),
        ),
    )


def _audit_note(row: dict[str, Any], limit: float) -> str:
    overruled = discarded = ""
    if number := row.get("overruled"):
        confirmations = many(row["checked"], "confirmation")
        overruled = f"{number:,} of {confirmations} checked by an adjudicator {'was' if number == 1 else 'were'} wrong"
    if row["over_limit"]:
        return "; ".join(filter(None, (f"more than {whole_percent(limit)} may be wrong", overruled)))
    if row["waiting"]:
        return "not finished"
    if row["unresolved"]:
        low, high = map(percent, row["bounds"])
        discarded = f"{count(row['unresolved'])} discarded; regardless of their labels, {low} to {high} are wrong"
    contested = "contested: people label all" if row["contested"] else ""
    return "; ".join(filter(None, (contested, overruled, discarded)))


def audit_plot(results: dict[str, Any]) -> str:
    """Plot the error rates of all languages with audited items. Return "" if there are no such languages."""
    rows = [
        plot_row(row["language"], [(row["error"], row["audited"])], row.get("label", ""))
        for row in _in_order(results)
        if row["audited"]
    ]
    if not rows:
        return ""
    who = "voters" if "label" in results["languages"][0] else "detectors"
    return forest(rows, title=f"Error rate of the {who} where they agree", counted="read")


def whole_percent(share: float) -> str:
    """Format a share as a percentage without rounding, such as 10% or 2.5%."""
    return f"{100 * share:g}%"


def limit_words(audit: dict[str, Any], task: str, noun: str = "post") -> list[str]:
    """Return sentences about languages over the audit's limit, and what was done or can be done about them.

    noun: noun for an item.
    """
    limit = whole_percent(audit["limit"])
    over, contested, read = (
        sorted(name_of(row) for row in audit["languages"] if row[key])
        for key in ("over_limit", "contested", "all_read")
    )
    sentences = []
    if contested:
        sentences.append(f"People label all {noun}s, because more than {limit} may be wrong: {' '.join(contested)}.")
    if read:
        sentences.append(f"More than {limit} may be wrong, but people already read all {noun}s: {' '.join(read)}.")
    if over:
        return [
            *sentences,
            f"Over the limit of {limit}: {' '.join(over)}. To have people label these, run `assay audit {task} "
            "--contest`.",
        ]
    if len(contested) + len(read) == len(audit["languages"]):
        return sentences
    other = "No other language" if sentences else "No language"
    return [*sentences, f"{other} with unread {noun}s and a finished audit is over the limit of {limit}."]


def contested_sentence(sent: dict[str, int], noun: str = "post") -> str:
    """Return a sentence that reports the units that `contest_all` sent to readers.

    sent: number of units sent, by label.
    noun: noun for an item.
    """
    if not sent:
        return f"No language with unread {noun}s and a finished audit is over the limit, so nothing was sent to people."
    return f"Sent to people: {', '.join(f'{count(units)} of {label}' for label, units in sent.items())}."


def added_sentence(posts: dict[str, int], requested: int, target: str, noun: str = "post") -> str:
    """Return a sentence that reports the items added by `audit --add`.

    posts: number of added items by language.
    requested: number of requested items.
    target: what the items were added to, "audit" or "checks".
    noun: noun for an item.
    """
    by_language = ", ".join(f"{count(number)} of {label}" for label, number in posts.items())
    number = sum(posts.values())
    shortfall = f" No more are available, although {count(requested)} were requested." if number < requested else ""
    return f"Drawn at random and added to the {target}: {many(number, noun)}: {by_language}.{shortfall}"


def plot_row(language: str, estimates: list[tuple[dict[str, Any], int]], label: str = "") -> Row:
    """Return a language's row in a plot.

    estimates: pairs of an estimate and the number of items that it is based on.
    label: the only label that the row counts; "" for all labels.
    """
    marks = tuple(Mark(rate["value"], rate["low"], rate["high"], posts) for rate, posts in estimates)
    return Row(language, label or beside(language), marks)
