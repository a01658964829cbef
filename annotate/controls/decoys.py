"""Decoys, which measure how often readers answer Yes by mistake, and the reuse of labels from other tasks.

A decoy for German is an item that we know is not German, but that a hasty reader could mistake for German. Either a
detector took it for German, or it is in a language that is easily confused with German. Without decoys, all items
would be candidates for one language, which biases readers towards Yes ("Evaluating language identification
performance", 2015, footnote 4).
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from typing import Any

from django.db.models import Count, Prefetch

from annotate.controls.agreement_audit import copies
from annotate.controls.audit_report import plot_row
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


def load_labelled_units(corpus: Corpus) -> dict[int, list[Unit]]:
    """Return the units that annotators have labelled in any task, by item key.

    A unit is also listed under the items that were copies of it, because they have the same text.
    """
    und_judgments = Judgment.objects.filter(voided_at=None, label=UND)
    units = Unit.objects.filter(item__corpus=corpus, stage=stages.LABELLED, reused_from=None, known_answer="")
    units = units.exclude(pk__in=Unit.objects.filter(item__corpus=corpus).ended_by("unconfirmed").values("pk"))
    judged = {
        unit.pk: unit
        for unit in units.select_related("item", "task")
        .prefetch_related(Prefetch("judgments", und_judgments, to_attr="und_judgments"))
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
    """Find the items that other tasks have already labelled as in a language, or as not in it.

    Items with conflicting labels are left out.

    items: items of the new task.
    code: code of the language that the question names.
    labelled_units: result of `load_labelled_units`.

    Return a (unit, answer) pair by item key. The unit's label implies the answer.
    """
    reused = {}
    for item in items:
        answers = _answers(labelled_units.get(item.pk, ()), code)
        if len({answer for _, answer in answers}) == 1:
            reused[item.pk] = answers[0]
    return reused


def decoys(
    task: Task, language: str, drawn: list[Item], labelled_units: dict[int, list[Unit]], reused: Container[int] = ()
) -> tuple[list[Item], int]:
    """Select the decoys for one language.

    language: language that the question names.
    drawn: items drawn for the language.
    labelled_units: result of `load_labelled_units`.
    reused: keys of drawn items that get a label from another task, so readers are not asked about them.

    Return the decoys, and the number needed. There are fewer decoys than needed if too few labelled items are suitable.
    """
    drawn_texts = {item.text for item in drawn}
    by_text: dict[str, list[Unit]] = {}
    for units in labelled_units.values():
        by_text.setdefault(units[0].item.text, []).extend(units)
    eligible, similar = {}, _similar_codes(task, language)
    for text, units in by_text.items():
        answers = {answer for _, answer in _answers(units, language)}
        if answers == {negative(language)} and text not in drawn_texts:
            ranked = {code for ranking in units[0].item.votes.values() for code, _ in ranking}
            if ranked & similar or any(unit.label in confusable_with(language) for unit in units):
                eligible[units[0].item.key] = units[0].item
    count = decoys_needed(task, len({item.text for item in drawn if item.pk not in reused}))
    if not count:
        return [], 0
    drawn_keys = committed_draws.decoys(task.lots, language, eligible, count)
    record_draw(task, DECOY, [language], {"count": count}, list(eligible), drawn_keys)
    return [eligible[key] for key in drawn_keys], count


def decoys_needed(task: Task, posts: int) -> int:
    """Return how many decoys to hide among a number of items.

    If the task sets no share of decoys, the number is chosen to keep the interval narrow (AskedSet.decoys).
    """
    if task.decoy_share is not None:
        return hash_order.part_of(task.decoy_share, posts)
    return asked_set(task).decoys(posts)


def asked_set(task: Task) -> AskedSet:
    """Return the expected properties of the task's set for one language."""
    return AskedSet(DESIGNS[task.draw.design].by_author)


def insert_decoys(task: Task, drawn: list[Item], hidden: list[Item], language: str) -> list[Item]:
    """Return the drawn items in their order, with the hidden items inserted at random positions."""
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
    """Return what a unit's label implies about the question "Is this `language`?"; None if it implies no answer.

    The label `und` is ambiguous. Readers who choose from a list also use `und` for languages that aren't on it. Their
    `und` therefore implies an answer only if the language was on the list. An adjudicator's `und` implies no answer,
    because adjudicators state their reasons as free text.

    unit: Unit with the attribute `und_judgments`, which `load_labelled_units` sets.
    language: code of the language that the question names.
    """
    if unit.label != UND or unit.asked:
        return answer_about(language, unit.label)
    kind, listed = unit.task.kind, set(unit.task.labels)
    read_languages = set(unit.task.reading_languages)
    if language not in read_languages and not listed.intersection(kind.finer(language)):
        return None
    if any(judgment.kind == Judgment.SETTLE for judgment in unit.und_judgments):
        return None
    unlisted = {judgment.reason == UNLISTED for judgment in unit.und_judgments}
    return {(True,): negative(language), (False,): UND}.get(tuple(unlisted))


def _similar_codes(task: Task, language: str) -> set[str]:
    """Return the codes that a detector might return for items in a language.

    These are the language's own code, the finer codes that it covers, and the coarse codes that cover it. Detectors
    don't know languages that the kind's file adds. For such a language, the result also contains the code that it is
    grouped under, the group's other codes, and the languages that list it as an extra candidate in the routes table.
    """
    kind = task.kind
    own_codes = {language, *kind.finer(language)}
    similar = own_codes | {code for code, entry in LANGUAGES.items() if own_codes.intersection(entry.labels)}
    if language in kind.languages:
        under = kind.languages[language].under
        routes = LanguageRoute.objects.values_list("language", "extra_candidates")
        similar |= {under, *kind.finer(under), *(code for code, extra in routes if language in extra)}
    return similar


def report(task: Task) -> dict[str, Any]:
    """Return how often readers answered Yes to decoys, as JSON data.

    share: share of decoys that the task sets; None if the number of decoys was chosen to keep the interval narrow.
    languages: a row for each language that the questions name.

    Each row has:

    decoys: number of decoys.
    answers: number of answers to decoys.
    yes: number of Yes answers to decoys.
    false_yes: share of Yes among the answers to decoys, with its 95% interval.
    sheets: `answers`, `yes` and `false_yes` for the answers submitted on sheets.
    labelled: number of other items labelled as in the language (`yes`), and as not in it (`no`).
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
    """Return sentences that summarize the decoys in all languages; an empty list if there are no decoys."""
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
        rows.append(plot_row(row["language"], [(part["false_yes"], part["answers"]) for part in parts]))
    title = "How often readers answer Yes to decoys"
    return forest(rows, title=title, series=series, counted="answers") if rows else ""


# --- Quality control

SHOWN = 5  # maximum number of languages whose expected interval width is shown


class Decoys(QualityControl):
    """Hide decoys, for which Yes is always wrong. With --reuse, the control also reuses labels from other tasks."""

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
        return [summary, *_expected_width(opened)], [*_small_draw_notes(opened), *_decoy_shortage_notes(opened)]

    def enter(self, entry: Entry) -> None:
        task, language, opened = entry.task, entry.asked, entry.opened
        if "known" not in entry.shared:
            entry.shared["known"] = load_labelled_units(entry.corpus)
        labelled_units = entry.shared["known"]
        drawn = list(entry.items)
        entry.reused = reusable(drawn, language, labelled_units) if entry.reuses else {}
        hidden, opened.wanted[language] = decoys(task, language, drawn, labelled_units, entry.reused)
        entry.items = insert_decoys(task, drawn, hidden, language)
        entry.known_answers = dict.fromkeys((item.pk for item in hidden), negative(language))
        opened.decoys[language], opened.reused[language] = len(hidden), len(entry.reused)


def _expected_width(opened: Opened) -> Iterator[str]:
    """Yield a sentence that states the expected width of the intervals with these decoys.

    Only the languages with the most items are named.
    """
    post_counts = {sample.language: len(sample.rows) for sample in opened.samples if sample.rows}
    if not post_counts or DESIGNS[opened.task.draw.design].of_uniform:
        return
    expected = asked_set(opened.task)
    largest = sorted(post_counts, key=lambda code: (-post_counts[code], code))[:SHOWN]
    widths = ", ".join(
        f"{code} {_interval_width(expected, post_counts[code], opened.decoys[code])}" for code in largest
    )
    yield (
        f"Expected width of the 95% interval of {'recall' if expected.by_author else 'precision'}, in points: "
        f"{widths}{' …' if len(post_counts) > SHOWN else ''}. This assumes a value of {expected.accuracy:.0%}"
        + (f", and that {expected.others:.0%} of the posts are in another language." if expected.by_author else ".")
    )


def _interval_width(expected: AskedSet, posts: int, hidden: int) -> str:
    interval = expected.estimate(posts, hidden)
    unbounded = "" if hidden else " if no reader answers Yes by mistake"
    return f"{100 * (interval.high - interval.low):.1f}{unbounded}" if interval.has_interval else "no interval"


def _small_draw_notes(opened: Opened) -> list[str]:
    """Return notes about languages with fewer drawn items than requested."""
    short = [sample for sample in opened.samples if len(sample.rows) < sample.asked or not sample.rows]
    notes = []
    if counts := ", ".join(f"{sample.language} {len(sample.rows):,}" for sample in short if sample.rows):
        notes.append(f"Note: the design finds fewer than {many(short[0].asked, 'post')} for: {counts}.")
    if without_posts := " ".join(sample.language for sample in short if not sample.rows):
        notes.append(f"Note: the design finds no post for: {without_posts}.")
    return notes


def _decoy_shortage_notes(opened: Opened) -> Iterator[str]:
    """Yield notes about languages that have too few decoys.

    Languages whose labels are all reused need no decoys, because readers aren't asked about them.
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
            "languages but are not in them. To measure false Yes answers there, label a uniform task on the corpus "
            "first."
        )
    if few := [code for code in short if opened.decoys[code]]:
        numbers = ", ".join(f"{code} {opened.decoys[code]:,} of {opened.wanted[code]:,}" for code in few)
        yield (
            "Note: there are fewer decoys than needed, because people have labelled too few suitable posts: "
            f"{numbers}. To avoid wider intervals, label more of a uniform task on the corpus first."
        )


register(Decoys())
