"""Decoys, which measure how often readers answer Yes by mistake, and the reuse of labels from other tasks.

The question about a decoy names a language that the decoy is known not to be in, although a hasty reader might think
that it is: either a detector assigned the language to the decoy, or the decoy is in a language that is easily confused
with it. Decoys are needed because readers are biased towards Yes if all items are candidates for one language
("Evaluating language identification performance", 2015, footnote 4).
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from typing import Any

from django.db.models import Count, Prefetch

from annotate.controls.agreement_audit import copies
from annotate.controls.audit_report import plotted
from annotate.core import stages
from annotate.core.draws import committed_draws, hash_order
from annotate.core.draws.committed_draws import DECOY, DECOY_PLACE
from annotate.core.estimation.label_errors import ASSUMED, AskedSet
from annotate.core.estimation.proportions import proportion
from annotate.kinds.control import Panel, QualityControl, register
from annotate.kinds.designs import DESIGNS
from annotate.kinds.interface_language import answer_about, negative
from annotate.kinds.language_questions import UNLISTED
from annotate.models import Judgment, LanguageRoute, Task, Unit
from annotate.quality.commitments import record_draw
from annotate.reports.numbers import NOT_MEASURED, count, estimate
from annotate.reports.plots import forest
from annotate.reports.tables import LANGUAGE, NUMBER, Column, Table, many, numbered, table
from annotate.work.task_creation import Entry, Opened
from corpora.core.languages import LANGUAGES, UND, confusable_with
from corpora.models import Corpus, Item


def known_units(corpus: Corpus) -> dict[int, list[Unit]]:
    """Return the units of all tasks in which people have labelled an item, by item key.

    A unit also counts for the other items with the same text that were copies of it.
    """
    said_und = Judgment.objects.filter(voided_at=None, label=UND)
    units = Unit.objects.filter(item__corpus=corpus, stage=stages.LABELLED, reused_from=None, known_answer="")
    units = units.exclude(pk__in=Unit.objects.filter(item__corpus=corpus).ended_by("unconfirmed").values("pk"))
    judged = {
        unit.pk: unit
        for unit in units.select_related("item", "task")
        .prefetch_related(Prefetch("judgments", said_und, to_attr="said_und"))
        .order_by("pk")
    }
    copies = Unit.objects.filter(item__corpus=corpus, stage=stages.COPIED).order_by("pk")
    units_by_item: dict[int, list[Unit]] = {}
    for item, unit in (
        *((unit.item_id, unit.pk) for unit in judged.values()),
        *copies.values_list("item_id", "copy_of_id"),
    ):
        if unit in judged:
            units_by_item.setdefault(item, []).append(judged[unit])
    return units_by_item


def reusable(items: Iterable[Item], code: str, labelled_units: dict[int, list[Unit]]) -> dict[int, tuple[Unit, str]]:
    """Find labels from other tasks that answer the question whether an item is in a language.

    An item is omitted if its labels imply different answers.

    items: items of the new task.
    code: code of the language that the question names.
    labelled_units: result of `known_units`.

    Return a mapping from item key to a pair: a unit with a label that implies the answer, and the answer.
    """
    labels = {}
    for item in items:
        answers = _answers(labelled_units.get(item.pk, ()), code)
        if len({answer for _, answer in answers}) == 1:
            labels[item.pk] = answers[0]
    return labels


def decoys(
    task: Task, language: str, drawn: list[Item], labelled_units: dict[int, list[Unit]], reused: Container[int] = ()
) -> tuple[list[Item], int]:
    """Select the decoys for one language.

    language: language that the question names.
    drawn: items drawn for the language.
    labelled_units: result of `known_units`.
    reused: keys of drawn items that get a label from another task, so that nobody is asked about them.

    Return the decoys, and the number of decoys wanted. More may be wanted than are returned, because people may have
    labelled too few suitable items.
    """
    drawn_texts = {item.text for item in drawn}
    by_text: dict[str, list[Unit]] = {}
    for units in labelled_units.values():
        by_text.setdefault(units[0].item.text, []).extend(units)
    eligible, similar = {}, _similar(task, language)
    for text, units in by_text.items():
        answers = {answer for _, answer in _answers(units, language)}
        if answers == {negative(language)} and text not in drawn_texts:
            ranked = {code for ranking in units[0].item.votes.values() for code, _ in ranking}
            if ranked & similar or any(unit.label in confusable_with(language) for unit in units):
                eligible[units[0].item.key] = units[0].item
    count = wanted(task, len({item.text for item in drawn if item.pk not in reused}))
    if not count:
        return [], 0
    drawn_keys = committed_draws.decoys(task.lots, language, eligible, count)
    record_draw(task, DECOY, [language], {"count": count}, list(eligible), drawn_keys)
    return [eligible[key] for key in drawn_keys], count


def wanted(task: Task, posts: int) -> int:
    """Return how many decoys to hide among a number of items.

    If the task does not set a share of decoys, their number is chosen so that the interval stays narrow
    (AskedSet.decoys).
    """
    if task.decoy_share is not None:
        return hash_order.part_of(task.decoy_share, posts)
    return asked_set(task).decoys(posts)


def asked_set(task: Task) -> AskedSet:
    """Return the expected properties of the task's set for one language."""
    return AskedSet(DESIGNS[task.draw.design].by_author)


def mixed(task: Task, drawn: list[Item], hidden: list[Item], language: str) -> list[Item]:
    """Return the drawn items in their order, with the hidden items inserted at random places."""
    if not hidden:
        return drawn
    insertion_points = {
        item.key: committed_draws.decoy_position(task.lots, language, item.key, len(drawn)) for item in hidden
    }
    record_draw(
        task, DECOY_PLACE, [language], {"among": len(drawn)}, list(insertion_points), list(insertion_points.values())
    )
    ranks = {item.key: index + 0.5 for index, item in enumerate(drawn)} | insertion_points
    return sorted([*drawn, *hidden], key=lambda item: (ranks[item.key], item.key))


def _answers(units: Iterable[Unit], language: str) -> list[tuple[Unit, str]]:
    return [(unit, answer) for unit in units if (answer := _answer(unit, language)) is not None]


def _answer(unit: Any, language: str) -> str | None:
    """Return the answer that a unit's label implies to the question; None if it implies no answer.

    The label und is ambiguous. Readers who choose from a list of languages also use it for languages that are not on
    the list, so their und implies an answer only if the language in the question was on the list. An adjudicator's und
    implies nothing, because adjudicators give their reasons as free text.

    unit: Unit with the attribute `said_und`, which `known_units` sets.
    """
    if unit.label != UND or unit.asked:
        return answer_about(language, unit.label)
    kind, listed = unit.task.kind, set(unit.task.labels)
    read_languages = set(unit.task.reading_languages)
    if language not in read_languages and not listed.intersection(kind.finer(language)):
        return None
    if any(judgment.kind == Judgment.SETTLE for judgment in unit.said_und):
        return None
    unlisted = {judgment.reason == UNLISTED for judgment in unit.said_und}
    return {(True,): negative(language), (False,): UND}.get(tuple(unlisted))


def _similar(task: Task, language: str) -> set[str]:
    """Return the codes that a detector might return for items in a language.

    They are the code of the language, the finer codes that it covers, and the coarse codes that cover it. Detectors do
    not know languages that the kind's file adds. For such a language, the result also contains the code that it is
    grouped under, the other codes in that group, and the languages after which the table of routes tries it.
    """
    kind = task.kind
    meant = {language, *kind.finer(language)}
    similar = meant | {code for code, entry in LANGUAGES.items() if meant.intersection(entry.labels)}
    if language in kind.languages:
        under = kind.languages[language].under
        routes = LanguageRoute.objects.values_list("language", "extra_candidates")
        similar |= {under, *kind.finer(under), *(code for code, extra in routes if language in extra)}
    return similar


def report(task: Task) -> dict[str, Any]:
    """Return how often readers answered Yes to decoys, as JSON data.

    share: share of decoys that the task sets; None if their number was chosen to keep the interval narrow.
    languages: a row for each language that questions name.

    Each row has:

    decoys: number of decoys.
    answers: number of answers to decoys.
    yes: number of these answers that are Yes.
    false_yes: share of answers that are Yes, with its 95% interval.
    sheets: answers, yes and false_yes for answers that were given on sheets.
    labelled: number of other items that are labelled as in the language (yes) and as not in it (no).
    """
    languages = task.draws.order_by("language").values_list("language", flat=True)
    counts: dict[str, Counter[str]] = {language: Counter() for language in languages}
    hidden = task.units.exclude(known_answer="")
    for language, number in hidden.order_by().values_list("asked").annotate(Count("pk")):
        counts[language]["decoys"] = number
    answers = Judgment.objects.filter(unit__in=hidden.order_by(), kind=Judgment.ANSWER, voided_at=None)
    for language, label, sheet in answers.values_list("unit__asked", "label", "lease__sheet"):
        for scope in ("all", *(["sheets"] if sheet else [])):
            counts[language][scope] += 1
            counts[language][f"{scope} yes"] += label == language
    work = task.units.exported().filter(stage=stages.LABELLED)
    for language, label, number in work.order_by().values_list("asked", "label").annotate(Count("pk")):
        counts[language]["is" if label == language else "is not"] += number

    def rate(count: Counter[str], where: str) -> dict[str, Any]:
        answers, yes = count[where], count[f"{where} yes"]
        return {"answers": answers, "yes": yes, "false_yes": proportion(yes, answers).as_dict()}

    return {
        "share": task.decoy_share,
        "languages": [
            {
                "language": language,
                "decoys": count["decoys"],
                **rate(count, "all"),
                "sheets": rate(count, "sheets"),
                "labelled": {"yes": count["is"], "no": count["is not"]},
            }
            for language, count in counts.items()
        ],
    }


def decoy_words(decoys: dict[str, Any]) -> list[str]:
    """Return sentences about the decoys in all languages. Return an empty list if there are no decoys."""
    rows = decoys["languages"]
    hidden, answers, yes = (sum(row[key] for row in rows) for key in ("decoys", "answers", "yes"))
    if not hidden:
        return []
    summary = f"Readers answered Yes in {count(yes)} of {count(answers)} answers to decoys."
    return [
        f"{many(hidden, 'post')} known not to be in the language {'was' if hidden == 1 else 'were'} hidden among the "
        "other posts.",
        summary if answers else "No reader has answered a decoy yet.",
    ]


def decoy_table(decoys: dict[str, Any]) -> Table:
    def rate(row: dict[str, Any]) -> str:
        if not row["answers"]:
            return NOT_MEASURED
        return f"{count(row['yes'])} of {count(row['answers'])}: {estimate(row['false_yes'])}"

    columns = (
        *LANGUAGE,
        numbered("decoys", "decoys"),
        Column("false_yes", "false Yes, 95% interval", NUMBER, rate),
        Column("sheets", "on sheets", NUMBER, lambda row: rate(row["sheets"])),
    )
    return table(many(len(decoys["languages"]), "language"), columns, decoys["languages"])


def decoy_plot(results: dict[str, Any]) -> str:
    answered = [row for row in results["languages"] if row["answers"]]
    series = ("all", "on sheets") if any(row["sheets"]["answers"] for row in answered) else ()
    rows = []
    for row in answered:
        parts = (row, row["sheets"]) if series else (row,)
        rows.append(plotted(row["language"], [(part["false_yes"], part["answers"]) for part in parts]))
    title = "How often readers answer Yes to decoys"
    return forest(rows, title=title, series=series, counted="answers") if rows else ""


# --- Quality control

SHOWN = 5  # maximum number of languages for which to show the expected interval width


class Decoys(QualityControl):
    """Decoys, for which Yes is always wrong. On request, the control also reuses labels from other tasks."""

    name = "decoys"
    manifest_key = "decoys"
    look_at = "audit"
    hides = True
    section = staticmethod(report)
    plot = staticmethod(decoy_plot)

    def panel(self, task: Task, results: dict[str, Any]) -> Panel:
        sentences, tables = decoy_words(results), [decoy_table(results)]
        return Panel(
            "Decoys",
            sentences,
            tables,
            results,
            empty="No decoys are hidden among the posts: when the task was opened, no labelled post was suitable.",
        )

    def opened(self, opened: Opened, size: int | None, *, extended: bool) -> tuple[list[str], list[str]]:
        drawn = sum(len(sample.rows) for sample in opened.samples)
        summary = (
            f"Task {opened.task.name}: {many(drawn, 'post')} drawn for {' '.join(opened.task.labels)}; "
            f"{many(opened.stages[stages.QUEUED], 'item')} queued for readers, {opened.decoys.total():,} of them "
            f"decoys; {copies(opened)}, {many(opened.reused.total(), 'label')} reused."
        )
        return [summary, *_expected_width(opened)], [*_short(opened), *_bare(opened)]

    def enter(self, entry: Entry) -> None:
        task, language, opened = entry.task, entry.asked, entry.opened
        if "known" not in entry.shared:
            entry.shared["known"] = known_units(entry.corpus)
        labelled_units = entry.shared["known"]
        drawn = list(entry.items)
        entry.reused = reusable(drawn, language, labelled_units) if entry.reuses else {}
        hidden, opened.wanted[language] = decoys(task, language, drawn, labelled_units, entry.reused)
        entry.items = mixed(task, drawn, hidden, language)
        entry.known_answers = dict.fromkeys((item.pk for item in hidden), negative(language))
        opened.decoys[language], opened.reused[language] = len(hidden), len(entry.reused)


def _expected_width(opened: Opened) -> Iterator[str]:
    """Yield a sentence about the expected width of the intervals with these decoys.

    The sentence names only the languages with the most items.
    """
    post_counts = {sample.language: len(sample.rows) for sample in opened.samples if sample.rows}
    if not post_counts or DESIGNS[opened.task.draw.design].of_uniform:
        return
    expected = asked_set(opened.task)
    largest = sorted(post_counts, key=lambda code: (-post_counts[code], code))[:SHOWN]
    widths = ", ".join(f"{code} {_points(expected, post_counts[code], opened.decoys[code])}" for code in largest)
    yield (
        f"Expected width of the 95% interval of {'recall' if expected.by_author else 'precision'}, in points: "
        f"{widths}{' …' if len(post_counts) > SHOWN else ''}. This assumes a value of {expected.accuracy:.0%}"
        + (f", and that {expected.others:.0%} of the posts are in another language." if expected.by_author else ".")
    )


def _points(expected: AskedSet, posts: int, hidden: int) -> str:
    interval = expected.estimate(posts, hidden)
    unbounded = "" if hidden else " if no reader answers Yes by mistake"
    return f"{100 * (interval.high - interval.low):.1f}{unbounded}" if interval.has_interval else "no interval"


def _short(opened: Opened) -> list[str]:
    """Return notes about languages for which fewer items were drawn than requested."""
    short = [sample for sample in opened.samples if len(sample.rows) < sample.asked or not sample.rows]
    notes = []
    if counts := ", ".join(f"{sample.language} {len(sample.rows):,}" for sample in short if sample.rows):
        notes.append(f"Note: the design finds fewer than {many(short[0].asked, 'post')} for: {counts}.")
    if without_posts := " ".join(sample.language for sample in short if not sample.rows):
        notes.append(f"Note: the design finds no post for: {without_posts}.")
    return notes


def _bare(opened: Opened) -> Iterator[str]:
    """Yield notes about languages that have too few decoys.

    A language is not mentioned if all of its labels are reused, because then nobody is asked about it.
    """
    queued = opened.task.units.filter(stage=stages.QUEUED).order_by()
    languages = set(queued.values_list("asked", flat=True).distinct())
    short = [code for code in opened.task.labels if code in languages and opened.decoys[code] < opened.wanted[code]]
    if opened.task.decoy_share == 0 and languages:
        yield (
            "Note: with --decoy-share 0, it is not known how often readers answer Yes by mistake. `evaluate` will "
            f"show the effect of {' and '.join(f'{share:.0%}' for share in ASSUMED)} of such posts on its figures."
        )
    if bare := [code for code in short if not opened.decoys[code]]:
        yield (
            f"Note: there are no decoys for {' '.join(bare)}, because nobody has labelled posts that resemble these "
            "languages but are not in them. To measure false Yes answers there, label a uniform task of the corpus "
            "first."
        )
    if few := [code for code in short if opened.decoys[code]]:
        numbers = ", ".join(f"{code} {opened.decoys[code]:,} of {opened.wanted[code]:,}" for code in few)
        yield (
            "Note: there are fewer decoys than needed, because people have labelled too few suitable posts: "
            f"{numbers}. To avoid wider intervals, label more of a uniform task of the corpus first."
        )


register(Decoys())
