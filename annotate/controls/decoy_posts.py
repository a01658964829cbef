"""Decoys: posts known not to be in the language asked about, hidden among the posts of a verification."""

from collections.abc import Iterator
from typing import Any

from annotate.controls.audit import copies
from annotate.core import stages
from annotate.core.estimation.annotator_error import ASSUMED, AskedSet
from annotate.kinds.control import Panel, QualityControl, register
from annotate.kinds.designs import DESIGNS
from annotate.kinds.language_labels import negative
from annotate.models import Task
from annotate.quality.audit_report import decoy_plot, decoy_table, decoy_words
from annotate.quality.decoys import asked_set, decoys, known_units, mixed, report, reusable
from annotate.reports.tables import many
from annotate.work.task_opening import Entry, Opened

SHOWN = 5  # languages whose expected width is shown


class Decoys(QualityControl):
    """Whoever says Yes to a decoy was wrong. Labels of other tasks that answer the question are reused on request."""

    name = "decoys"
    manifest_key = "decoys"
    look_at = "audit"
    hides = True

    def section(self, task: Task) -> Any:
        return report(task)

    def panel(self, task: Task) -> Panel:
        found = report(task)
        words, tables = decoy_words(found), [decoy_table(found)]
        return Panel(
            "Decoys",
            words,
            tables,
            found,
            empty="No decoys are hidden among its posts: when the task was opened, no labelled post could be one.",
            plot=decoy_plot(found),
        )

    def opened(self, opened: Opened, size: int | None, *, extended: bool) -> tuple[list[str], list[str]]:
        return _said_of(opened)

    def enter(self, entry: Entry) -> None:
        task, asked, opened = entry.task, entry.asked, entry.opened
        if "known" not in entry.shared:
            entry.shared["known"] = known_units(entry.corpus)
        known = entry.shared["known"]
        drawn = list(entry.items)
        entry.reused = reusable(drawn, asked, known) if entry.reuses else {}
        hidden, opened.wanted[asked] = decoys(task, asked, drawn, known, entry.reused)
        entry.items = mixed(task, drawn, hidden, asked)
        entry.known_answers = dict.fromkeys((item.pk for item in hidden), negative(asked))
        opened.decoys[asked], opened.reused[asked] = len(hidden), len(entry.reused)


def _said_of(opened: Opened) -> tuple[list[str], list[str]]:
    drawn = sum(len(sample.rows) for sample in opened.samples)
    said = (
        f"Task {opened.task.name}: {many(drawn, 'post')} drawn for {' '.join(opened.task.labels)}; "
        f"{many(opened.stages[stages.QUEUED], 'unit')} queued for readers, {opened.decoys.total():,} of them decoys; "
        f"{copies(opened)}, {many(opened.reused.total(), 'label')} reused."
    )
    return [said, *_expected_width(opened)], [*_short(opened), *_bare(opened)]


def _expected_width(opened: Opened) -> Iterator[str]:
    """How wide the interval of a language's figure will be with these decoys, for the languages with the most posts."""
    seen = {sample.language: len(sample.rows) for sample in opened.samples if sample.rows}
    if not seen or DESIGNS[opened.task.draw.design].of_uniform:
        return
    expected = asked_set(opened.task)
    most = sorted(seen, key=lambda code: (-seen[code], code))[:SHOWN]
    widths = ", ".join(f"{code} {_points(expected, seen[code], opened.decoys[code])}" for code in most)
    yield (
        f"Expected width of the 95% interval of {'recall' if expected.by_author else 'precision'}, in points: {widths}"
        f"{' …' if len(seen) > SHOWN else ''}. This takes it to be {expected.accuracy:.0%}"
        + (f", and {expected.others:.0%} of the posts to be in another language." if expected.by_author else ".")
    )


def _points(expected: AskedSet, posts: int, hidden: int) -> str:
    found = expected.estimate(posts, hidden)
    unbounded = "" if hidden else " if no reader says Yes by mistake"
    return f"{100 * (found.high - found.low):.1f}{unbounded}" if found.has_interval else "no interval"


def _short(opened: Opened) -> list[str]:
    """Notes on languages for which there is less than was asked for."""
    short = [sample for sample in opened.samples if len(sample.rows) < sample.asked or not sample.rows]
    notes = []
    if some := ", ".join(f"{sample.language} {len(sample.rows):,}" for sample in short if sample.rows):
        notes.append(f"Note: the design finds fewer than {many(short[0].asked, 'post')} for: {some}.")
    if none := " ".join(sample.language for sample in short if not sample.rows):
        notes.append(f"Note: the design finds no post for: {none}.")
    return notes


def _bare(opened: Opened) -> Iterator[str]:
    """Notes on languages with too few decoys. If every label is reused, nobody is asked, and no decoy is needed."""
    queued = opened.task.units.filter(stage=stages.QUEUED).order_by()
    asked = set(queued.values_list("asked", flat=True).distinct())
    short = [code for code in opened.task.labels if code in asked and opened.decoys[code] < opened.wanted[code]]
    if opened.task.decoy_share == 0 and asked:
        yield (
            "Note: --decoy-share 0 leaves unknown how often readers say Yes by mistake; `evaluate` will show what "
            f"{' and '.join(f'{share:.0%}' for share in ASSUMED)} of such posts would do to its figures."
        )
    if bare := [code for code in short if not opened.decoys[code]]:
        yield (
            f"Note: no decoys for {' '.join(bare)}, so false Yes stays unknown there: nobody has found posts of the "
            "corpus that resemble the language not to be in it. Label a uniform task of the corpus first."
        )
    if few := [code for code in short if opened.decoys[code]]:
        numbers = ", ".join(f"{code} {opened.decoys[code]:,} of {opened.wanted[code]:,}" for code in few)
        yield (
            f"Note: fewer decoys than wanted, as people have found too few such posts: {numbers}. That "
            "widens the intervals there; label more of a uniform task of the corpus first."
        )


register(Decoys())
