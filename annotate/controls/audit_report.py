"""How often detectors are wrong where they agree: counts of the audit, and what pages, commands and cards show of them.

agreement_audit.py chooses the posts and acts on the counts.
"""

from collections import Counter
from collections.abc import Iterable

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.db.models.lookups import GreaterThan

from annotate.controls.checks import slips
from annotate.core import stages
from annotate.core.aggregation.majority import majority
from annotate.core.estimation.detector_error import Audit, bounds, error, is_over, overall_bounds, overall_error
from annotate.core.estimation.proportions import Estimate
from annotate.models import Judgment, Task, Unit
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
from annotate.work.moves import contested_labels
from corpora.database.bulk_rows import listed

# How often adjudicators slip where nothing measures it: the report then shows what this would change.
ASSUMED = Estimate(0.01, 0.01, 0.01, 0.0, 0.0)

Stratum = tuple[str, ...]  # a unit's values at the paths of Statistics.audit_strata


def audits(task: Task, labels: Iterable[str] | None = None) -> dict[str, Audit]:
    """Label -> what the audit found of the posts on which the detectors agreed; in order of label."""
    posts = task.units.exclude(agreed_label="")
    if labels is not None:
        posts = posts.filter(agreed_label__in=labels)
    return {label: audit for (label,), audit in audits_of(task, posts).items()}


def audits_of(task: Task, posts: QuerySet[Unit]) -> dict[Stratum, Audit]:
    """Stratum -> what the audit found of its posts; in order."""
    paths = task.kind.statistics.audit_strata
    sizes = {tuple(of): number for *of, number in posts.order_by(*paths).values_list(*paths).annotate(Count("pk"))}
    judged = [Coalesce(f"copy_of__{name}", name) for name in ("pk", "label", "stage", "agreed_label", "recheck")]
    rows = list(posts.filter(audited=True).order_by().values_list(*paths, *judged))
    answers: dict[int, list[str]] = {}
    live = Judgment.objects.live().answers().filter(unit__in=listed({row[-5] for row in rows}))
    for unit, label in live.order_by().values_list("unit_id", "label"):
        answers.setdefault(unit, []).append(label)
    counts = {stratum: Counter[str]() for stratum in sizes}
    for *of, unit, label, stage, agreed_label, recheck in rows:
        counts[tuple(of)].update(_outcome(answers.get(unit, []), label, stage, agreed_label, recheck))
    fields = ("doubted", "doubted_wrong", "confirmed", "checked", "checked_wrong", "unresolved")
    return {of: Audit(posts=size, **{name: counts[of][name] for name in fields}) for of, size in sizes.items()}


def _outcome(answers: list[str], label: str, stage: str, agreed_label: str, recheck: bool) -> list[str]:
    """The fields of Audit in which an audited post counts. answers: what people answered."""
    if stage != stages.LABELLED:
        return ["unresolved"]
    doubted = majority(answers) != agreed_label
    if not (doubted or recheck):
        return ["confirmed"]
    found = "doubted" if doubted else "checked"
    wrong = [f"{found}_wrong"] if label != agreed_label else []
    return [found, *wrong] if doubted else ["confirmed", found, *wrong]


def over_limit(task: Task, audit: Audit) -> bool:
    return is_over(audit, task.audit_limit, slips(task))


def audit_counts(task: Task) -> dict[Stratum, tuple[int, int]]:
    """Stratum -> how many posts machines label there, and how many of those were chosen for the audit."""
    counts = task.units.exclude(agreed_label="").order_by().values_list(*task.kind.statistics.audit_strata)
    counts = counts.annotate(posts=Count("pk"), chosen=Count("pk", filter=Q(audited=True)))
    return {tuple(of): (posts, chosen) for *of, posts, chosen in counts}


def contested_waiting() -> dict[int, dict[str, int]]:
    """Task -> label of a language that failed its audit -> units that people have yet to read for that. All tasks."""
    units = Unit.objects.filter(stage=stages.QUEUED, transitions__event="contested").order_by()
    found: dict[int, dict[str, int]] = {}
    for task, label, number in units.values_list("task", "agreed_label").annotate(Count("pk", distinct=True)):
        found.setdefault(task, {})[label] = number
    return found


def of_audit() -> Q:
    """Of a task's units: those that were chosen for the audit, and those whose text a chosen copy has.

    The copies are counted: to know whether there is one, PostgreSQL would gather those of all tasks, with every answer.
    """
    copies = Unit.objects.filter(copy_of=OuterRef("pk"), audited=True).order_by().values("copy_of")
    return Q(audited=True) | Q(GreaterThan(Subquery(copies.values(number=Count("pk"))), 0))


def waiting(units: QuerySet[Unit]) -> QuerySet[Unit]:
    """Those of a task's units that are of the audit and not done yet. In a language that failed it, the rest that
    people read does not count.
    """
    return units.filter(of_audit(), stage__in=(stages.QUEUED, stages.ADJUDICATION))


def labels_of(units: QuerySet[Unit]) -> set[str]:
    return set(units.exclude(agreed_label="").order_by().values_list("agreed_label", flat=True).distinct())


def report(task: Task) -> dict:
    """What the audit found, in all and by language, in JSON's terms.

    slips: how often adjudicators slip, as far as two of them decided the same, which overall and error take off; None
    where that is not known, and then assumed is overall if they slipped in 1%. languages: one row for each label on
    which the detectors agreed; posts: how many such there are; audited: how many of them people have read to the end;
    error: the share in which the detectors are wrong, with its 95% interval; checked: how many that readers confirmed
    an adjudicator decided too, and overruled: of these, found wrong; bounds: the ends of error if all unresolved
    (discarded, or not done yet) were right, or all wrong, and of overall in overall_bounds; waiting: some of it is not
    done; over_limit: it is done, too much may be wrong, and some were not read; all_read: the same, but nothing is left
    that people do not read; contested: people label them all.
    """
    found, slipping = audits(task), slips(task)
    unread, unfinished = labels_of(task.units.filter(stage=stages.AGREED)), labels_of(waiting(task.units))
    contested = contested_labels(task)
    over = {label for label, audit in found.items() if label not in unfinished and over_limit(task, audit)}
    return {
        "limit": task.audit_limit,
        "overall": overall_error(found.values(), slipping).as_dict(),
        "overall_bounds": list(overall_bounds(found.values(), slipping)),
        "slips": slipping and slipping.as_dict(),
        "assumed": None if slipping else overall_error(found.values(), ASSUMED).as_dict(),
        "languages": [
            {
                "language": label,
                "posts": audit.posts,
                "audited": audit.resolved,
                "unresolved": audit.unresolved,
                "checked": audit.checked,
                "overruled": audit.checked_wrong,
                "error": error(audit, slipping).as_dict(),
                "bounds": list(bounds(audit, slipping)),
                "waiting": label in unfinished,
                "over_limit": label in over & unread,
                "all_read": label in over - unread - contested,
                "contested": label in contested,
            }
            for label, audit in found.items()
        ],
    }


# --- sentences, a table and a plot


def audit_words(audit: dict) -> list[str]:
    """Sentences on the audit in all; none if nobody was asked."""
    rows = audit["languages"]
    agreed, read = (sum(row[key] for row in rows) for key in ("posts", "audited"))
    chosen = sum(map(_chosen, rows))
    if not chosen:
        return []
    words = [
        f"The detectors agree on {count(agreed)} posts. {count(chosen)} of these were chosen by lot for people to "
        f"read, who were not told, and {count(read)} have been read to the end."
    ]
    if audit["overall"]["value"] is not None:
        slips = audit.get("slips")
        less = f", less what adjudicators call wrong by mistake ({estimate(slips)} of their decisions)" if slips else ""
        words.append(
            f"Of all on which they agree, the detectors are wrong in {estimate(audit['overall'])}, "
            f"each language weighted by its posts{less}."
        )
        if chosen > read:
            low, high = map(percent, audit["overall_bounds"])
            words.append(
                f"The interval takes the {are(chosen - read, 'post', 'posts')} of the audit without a label to be like "
                f"those that were read. Whatever {'it is' if chosen - read == 1 else 'they are'}, the detectors are "
                f"wrong in {low} to {high}."
            )
        assumed = audit.get("assumed")
        if assumed and assumed["low"] is not None:
            words.append(
                "How often the adjudicators slip is not known, since no two have decided the same. If they did in 1%, "
                f"the detectors would be wrong in {estimate(assumed)}."
            )
    return words


def audit_table(audit: dict) -> Table:
    """A row for each language: those over the limit first, then those with the most errors, then with the
    most posts.
    """

    def language(row: dict) -> Cell:
        return Cell(row["language"], row["language"], mark="stuck" if row["over_limit"] else "")

    columns = (
        Column("language", "language", says=language),
        LANGUAGE[1],
        numbered("posts", "agreed on"),
        Column("audited", "read", NUMBER, lambda row: f"{count(row['audited'])} of {count(_chosen(row))}"),
        Column("error", "wrong, 95% interval", NUMBER, lambda row: share(row["error"])),
        Column("note", "", NOTE, lambda row: _audit_note(row, audit["limit"])),
    )
    return table(many(len(audit["languages"]), "language"), columns, _in_order(audit))


def _chosen(row: dict) -> int:
    return row["audited"] + row["unresolved"]


def _in_order(audit: dict) -> list[dict]:
    return sorted(
        audit["languages"],
        key=lambda row: (
            not row["over_limit"],
            not row["contested"],
            -(row["error"]["value"] or 0),
            -row["posts"],
            row["language"],
        ),
    )


def _audit_note(row: dict, limit: float) -> str:
    overruled = discarded = ""
    if number := row.get("overruled"):
        confirmations = many(row["checked"], "confirmation")
        overruled = f"of {confirmations} that an adjudicator checked {are(number, 'was', 'were')} wrong"
    if row["over_limit"]:
        return "; ".join(filter(None, (f"more than {whole_percent(limit)} may be wrong", overruled)))
    if row["waiting"]:
        return "not done yet"
    if row["unresolved"]:
        low, high = map(percent, row["bounds"])
        discarded = f"{count(row['unresolved'])} discarded; wrong in {low} to {high}, whatever these are"
    contested = "contested: people label all of it" if row["contested"] else ""
    return "; ".join(filter(None, (contested, overruled, discarded)))


def audit_plot(audit: dict) -> str:
    """The error by language, for languages in which somebody has read a post; empty if there are none."""
    rows = [plotted(row["language"], [(row["error"], row["audited"])]) for row in _in_order(audit) if row["audited"]]
    return forest(rows, title="Where the detectors agree and are wrong", counted="read") if rows else ""


def whole_percent(share: float) -> str:
    """A share as a person has set it: 10%, 2.5%."""
    return f"{100 * share:g}%"


def limit_words(audit: dict, task: str) -> list[str]:
    """Which languages are over the limit, and what became of them."""
    limit = whole_percent(audit["limit"])
    over, contested, read = (
        sorted(row["language"] for row in audit["languages"] if row[key])
        for key in ("over_limit", "contested", "all_read")
    )
    words = []
    if contested:
        words.append(f"Contested, since more than {limit} may be wrong; people label all of it: {' '.join(contested)}.")
    if read:
        words.append(f"More than {limit} may be wrong, but nothing is left that people do not read: {' '.join(read)}.")
    if over:
        return [
            *words,
            f"Over the limit of {limit}: {' '.join(over)}; `assay audit {task} --contest` has people label them.",
        ]
    if len(contested) + len(read) == len(audit["languages"]):
        return words
    other = "No other language" if words else "No language"
    return [*words, f"{other} that has unread posts and a finished audit is over the limit of {limit}."]


def contested(sent: dict[str, int]) -> str:
    """What contest_all did. sent: label -> units."""
    if not sent:
        return (
            "No language that has unread posts and a finished audit is over the limit, so nothing was sent to people."
        )
    return f"Sent to people: {', '.join(f'{count(units)} of {label}' for label, units in sent.items())}."


def added(posts: dict[str, int], wanted: int, to: str) -> str:
    """What `audit --add` added. wanted: how many it was asked for; to: "audit" or "checks"."""
    by_language = ", ".join(f"{count(number)} of {label}" for label, number in posts.items())
    number = sum(posts.values())
    all_there_are = f" These are all there are, and not {count(wanted)}." if number < wanted else ""
    return f"Added to the {to} by lot: {many(number, 'post')}: {by_language}.{all_there_are}"


def plotted(language: str, estimates: list[tuple[dict, int]]) -> Row:
    """estimates: each with the posts that it rests on, as people counted them."""
    marks = tuple(Mark(made["value"], made["low"], made["high"], posts) for made, posts in estimates)
    return Row(language, beside(language), marks)
