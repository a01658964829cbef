"""The data for one export, and the reasons why units are left out of the set. `exporter.py` writes the files."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from django.db.models import Count

from annotate.controls.audit_report import Stratum, audit_counts
from annotate.controls.checks import check_counts
from annotate.controls.concept_suggestions import all_suggested
from annotate.controls.known_answers import EXAMPLE, GOLD_ANSWER
from annotate.core import stages
from annotate.core.draws.balanced_sets import Document, Sizes, balanced, part_of, place_of
from annotate.core.draws.hash_order import lot
from annotate.core.draws.splits import (
    DEV,
    FAR,
    FREQUENT_OVER,
    SPLITS,
    TEST,
    TRAIN,
    TRAINED_IN,
    Miss,
    Row,
    SplitError,
    misses,
    ratios,
    split,
)
from annotate.goldsets.unit_rows import Lists, Units, cases, each, live, units_of, where
from annotate.kinds.balanced_draw import CHANCES, FRAME, IDS, JOINT, NEEDED, SIZES
from annotate.kinds.designs import CLASSES, DESIGNS
from annotate.kinds.interface_language import label_name
from annotate.models import Annotator, Judgment, Side, Task
from annotate.quality import answer_models
from annotate.reports.numbers import percent
from annotate.work.moves import contested_labels
from corpora.core.languages import UND
from corpora.draws import part_draws
from corpora.storage.layout import manifest_of

# --- The splits and balanced sets of an exported set, with the splits that are far from their requested share.
#
# `core/draws/splits.py` draws the splits. This module passes it the rows that are in the set.


# Dataset cards call these splits by a different name.
KNOWN_AS = {"dev": "validation"}


@dataclass(frozen=True)
class Splitting:
    """The splits of a set.

    of: mapping from the id of each row in the set to its split.
    off: mapping from language to a sentence that names the splits far from their requested share, and the reason.
    """

    of: Mapping[str, str]
    off: Mapping[str, str]


def split_set(units: Iterable[Units], apart: Sequence[str], shares: Mapping[str, Fraction], seed: str) -> Splitting:
    """Draw the splits at random.

    units: units in the set.
    apart: fields whose equal values must be in the same split.

    Raise SplitError if some rows cannot be assigned to a split.
    """
    rows = [Row(key, language, [fields[field] for field in apart]) for key, language, fields in _records(units)]
    chosen = split(rows, shares, seed=seed)
    found = groupby(misses(rows, shares, chosen), attrgetter("language"))
    return Splitting(chosen, {language: _off(language, list(missed)) for language, missed in found})


def split_by_field(units: Iterable[Units], field: str) -> Splitting:
    """Read the splits from a field of the records. Raise SplitError if a row does not name a valid split."""
    found = {key: fields[field] for key, _, fields in _records(units)}
    for key, said in found.items():
        if said not in SPLITS:
            told = f"is {said!r}" if said else "is empty"
            raise SplitError(
                f"The field {field} of {key} {told}. It must be {', '.join(SPLITS[:-1])} or {SPLITS[-1]}. Import the "
                "corpus with valid splits, or draw them at random with --splits."
            )
    return Splitting(found, {})


def _records(some: Iterable[Units]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield the id, language and fields of each record."""
    for units in some:
        keys, languages, fields = (units.own[f"item__{name}"].to_pylist() for name in ("key", "language", "fields"))
        yield from zip(keys, languages, map(json.loads, fields), strict=True)


def _off(language: str, found: list[Miss]) -> str:
    """Return a sentence that names the splits far from their share in a language, and the reason.

    For example: "In English, train has 40% of the records and not 80%: ..."
    """
    told = ", ".join(
        f"{miss.split} has {percent(miss.actual)} {'' if place else 'of the records '}and not {percent(miss.requested)}"
        for place, miss in enumerate(found)
    )
    first, why = found[0], []
    if first.bound:
        untrained = f", and only {TRAINED_IN} is trained on" if language == TRAINED_IN else ""
        why.append(f"{first.bound:,} of {first.rows:,} belong together with records in other languages{untrained}")
    if first.largest > 1 and first.largest > FAR * first.rows:
        why.append(f"{first.largest:,} of {first.rows:,} belong together, and are in one split")
    words = "; ".join(why) or f"the set has only {first.rows:,} there"
    where = "Without a language" if language == UND else f"In {label_name(language)}"
    return f"{where}, {told}: {words}."


# --- The balanced sets of a task, either as drawn or built from the documents that annotators have labelled


class Balancing(NamedTuple):
    """The balanced sets of a task.

    sets: ids in each set, by language and name of the set; empty if the design is not balanced.
    short: sets that are smaller than requested, by language.
    chances: probability of being drawn, by language and class (declared or predicted); empty if unknown.
    taken_out: by language, number of drawn documents that are in no set because annotators chose none of the classes
        for them, or could not agree.
    by_people: whether annotators decide the classes.
    """

    sets: dict[str, dict[str, list[str]]]
    short: dict[str, list[dict[str, Any]]]
    chances: dict[tuple[str, str], float]
    taken_out: dict[str, int]
    by_people: bool = False


def balancing_of(task: Task, without: Collection[int]) -> Balancing:
    """Return the balanced sets of a task.

    without: units to exclude, because somebody could have known their labels.
    """
    drawn = {draw.language: draw.parameters for draw in task.draws.order_by("language", "pk")}
    if any(NEEDED in parameters for parameters in drawn.values()):
        return _labelled(task, drawn, without)
    kept, waiting = _of_a_class(task, without)
    found = Balancing({}, {}, {}, {})
    for language, parameters in drawn.items():
        # Sort the names, because the order of keys in JSON depends on the database.
        names = sorted(parameters[IDS], key=place_of)
        ids = {name: [key for key in parameters[IDS][name] if key in kept] for name in names}
        chosen, left = ({key for each in sets.values() for key in each} for sets in (parameters[IDS], ids))
        found.sets[language], found.short[language] = ids, parameters["short"]
        found.taken_out[language] = len(chosen) - len(left) - waiting[language]
        found.chances.update({(language, label): chance for label, chance in parameters[CHANCES].items()})
    return found


def _of_a_class(task: Task, without: Collection[int]) -> tuple[set[str], Counter[str]]:
    """Return the ids of documents labelled with one of the classes, and each language's number of unfinished documents.

    A copy has the label and stage of its original.
    """
    units = task.units.exported().exclude(pk__in=without).order_by()
    classes, kept, waiting = set(task.labels) - task.kind.answers.keys(), set[str](), Counter[str]()
    of_unit, of_original = ("label", "stage"), ("copy_of__label", "copy_of__stage")
    for key, language, *told in units.values_list("item__key", "item__language", *of_unit, *of_original):
        label, stage = told[2:] if told[3] else told[:2]
        if label in classes:
            kept.add(key)
        waiting[language] += stage not in stages.FINISHED
    return kept, waiting


def _labelled(task: Task, drawn: Mapping[str, dict[str, Any]], without: Collection[int]) -> Balancing:
    """Build the sets from labelled documents, in the order in which they were drawn.

    While the task is in progress, any set may be smaller than requested.
    """
    parameters = next(iter(drawn.values()))
    classes, (test, dev, train) = parameters["classes"], parameters[SIZES]
    sizes = Sizes(test, dev, tuple(train))
    units = task.units.exported().exclude(pk__in=without)
    done = units.filter(stage=stages.LABELLED, label__in=classes).values_list("item__key", "item__language", "label")
    documents = [Document(key, language, label) for key, language, label in done.order_by("pk")]
    made = balanced(documents, classes, sizes, seed=task.seed, fill=(TEST, DEV, TRAIN))
    empty: dict[str, list[str]] = {name: [] for name, size in sizes.all().items() if size}
    drawn_of = units.order_by().values_list("item__language", "predicted").annotate(Count("pk"))
    taken = Counter({(language, label): number for language, label, number in drawn_of})
    return Balancing(
        {language: made.sets.get(language, empty) for language in drawn},
        {language: [each._asdict() for each in made.short if each.language == language] for language in drawn},
        {
            (language, label): taken[language, label] / of
            for language, told in drawn.items()
            for label, of in told[FRAME].items()
            if of
        },
        dict.fromkeys(drawn, 0),
        by_people=True,
    )


# --- The data for one export

CHUNK = 2000  # units read at once
# The possible sources of a label.
DETECTORS, ONE, SEVERAL, ADJUDICATOR = "detectors", "one", "several", "adjudicator"

UNFINISHED, CLOSED = "unfinished", "closed"
NO_LABEL, OTHER_LABEL, NO_CLASS, NOT_NEEDED = "without_label", "other_label", "no_class", "not_needed"
# The reasons why units are left out, as shown on the card.
REASONS = {
    "no_majority": "the answers give no label",
    "skipped": "too many people could not tell",
    "adjudicator": "an adjudicator could not tell either",
    "manager": "a manager left it out, since its text is broken or names a person",
    CLOSED: "had no label when a manager closed the task",
    GOLD_ANSWER: "says the same as a gold answer of the task",
    EXAMPLE: "is an example of the guidelines",
    UNFINISHED: "waits for people",
    NO_LABEL: "has no label",
    OTHER_LABEL: "is outside the population that the set is a sample of",
    NO_CLASS: "is of none of the classes",
    NOT_NEEDED: "is one more of its class than the sets need",
}
# The answers to these units are known and must stay secret, so the file of left-out units contains only their ids and
# the reasons.
ONLY_ID = (GOLD_ANSWER, EXAMPLE)
# A mapping from the transition that discarded a unit to the reason.
DISCARDED_BY = {
    "conflicted": "no_majority",
    "exhausted": "skipped",
    "discarded": "adjudicator",
    "withdrawn": "manager",
    "left_out": CLOSED,
}


class Export:
    """An export of a task's gold set.

    split_shares: shares of the splits, written as in the command's option; empty if the records name their splits.
    given_seed: seed for drawing the splits; if it is empty, the draw's seed is used.
    frequent_over: a label is frequent if more than this many train documents have it.
    tell_secret: whether to disclose the secret of the random draws.

    Some data is needed only by some kinds of question, so it is read on first use. Creating an export raises
    CorpusError if the corpus is missing.
    """

    def __init__(
        self,
        task: Task,
        split_shares: str,
        given_seed: str,
        frequent_over: int = FREQUENT_OVER,
        tell_secret: bool = False,
    ) -> None:
        self.task, self.kind, self.draw = task, task.kind, task.draw
        self.split_shares, self.seed = split_shares, given_seed or self.draw.seed
        self.frequent_over, self.tell_secret = frequent_over, tell_secret
        self.design = DESIGNS[self.draw.design]
        # Where the texts come from, and whether they may be published.
        name = self.draw.corpus.name
        if file := self.draw.parameters.get("imported"):
            self.corpus = {"name": name, "source": file, "licence": "not stated", "text_may_leave": False}
        else:
            told, fields = manifest_of(name), ("source", "licence", "text_may_leave")
            self.corpus = {"name": name} | {field: getattr(told, field) for field in fields}
        self.with_text: bool = self.corpus["text_may_leave"]
        # Suffix for file names while the set is unfinished.
        unfinished = task.units.exported().exclude(stage__in=stages.FINISHED).exists()
        self.mark = ".unfinished" if unfinished else ""
        # Annotators' pseudonyms, by the annotator's primary key and by the user's primary key.
        people = list(Annotator.objects.values_list("pk", "user_id", "pseudonym"))
        self.pseudonyms = {pk: pseudonym for pk, _, pseudonym in people}
        self.users = {user: pseudonym for _, user, pseudonym in people}
        # A mapping from unit to the reason why it is left out regardless of its answers, because somebody could have
        # known its label.
        self.known: dict[int, str] = {}
        for control in self.kind.quality_controls:
            self.known |= control.known(task, self.units())

    def units(self) -> Iterator[Units]:
        """Yield the exported units in the order of the draw, without judgments and transitions."""
        return units_of(self.task, CHUNK)

    # --- Units in the set

    def left_out(self, units: Units, moved: Lists | None = None) -> pa.Array:
        """Return the reason why each unit is not in the set, or an empty string if it is.

        moved: transitions of the judged units; if omitted, the reason for every discarded unit is NO_LABEL.
        """
        last = moved.last("event") if moved else pa.nulls(units.own.num_rows, pa.string())
        found = each(self._reason, pa.string(), units.own["asked"], units.judged["label"], units.judged["stage"], last)
        if self.sets:
            needed = pa.array([key in self.added for key in units.own["item__key"].to_pylist()], pa.bool_())
            found = pc.if_else(pc.and_(pc.equal(found, ""), pc.invert(needed)), NOT_NEEDED, found)
        if self.known:
            known = pa.array(map(self.known.get, units.own["pk"].to_pylist()), pa.string())
            found = pc.coalesce(known, found)
        return found

    def _reason(self, asked: str, label: str, stage: str, event: str | None) -> str:
        """Return the reason why a unit is not in the set, or an empty string if it is.

        event: name of the unit's last transition; None if it is unknown.
        """
        if label:
            if not self.design.sets.includes({"label": label, "asked": asked}):
                return OTHER_LABEL
            return NO_CLASS if self.sets and label in self.kind.answers else ""
        if not self.kind.publication.tells_why:
            return CLOSED if stage == stages.DISCARDED and event == "left_out" else NO_LABEL
        if stage != stages.DISCARDED:
            return UNFINISHED
        return DISCARDED_BY[event] if event else NO_LABEL

    def in_set(self) -> Iterator[Units]:
        """Yield the units in the set."""
        for units in self.units():
            there = pc.equal(self.left_out(units), "")
            yield Units(units.own.filter(there), units.judged.filter(there))

    # --- Splits

    @cached_property
    def shares(self) -> Mapping[str, Fraction]:
        """The share of each split. Raise SplitError if the shares are invalid."""
        return ratios(self.split_shares)

    @cached_property
    def splitting(self) -> Splitting:
        records = self.kind.records
        if not self.split_shares:
            return split_by_field(self.in_set(), records.split)
        return split_set(self.in_set(), records.apart, self.shares, self.seed)

    @cached_property
    def splits(self) -> Mapping[str, str]:
        """A mapping from the id of each row in the set to its split."""
        return {key: part_of(name) for key, name in self.added.items()} if self.sets else self.splitting.of

    @property
    def parts(self) -> list[str]:
        """The names of the splits, which come from the balanced draw, the records or the options."""
        if self.sets:
            return list(dict.fromkeys(part_of(name) for sets in self.sets.values() for name in sets))
        if not self.split_shares:
            return [split for split in SPLITS if split in self.splits.values()]
        return [split for split, share in self.shares.items() if share]

    @cached_property
    def balancing(self) -> Balancing:
        return balancing_of(self.task, self.known)

    @cached_property
    def sets(self) -> Mapping[str, Mapping[str, list[str]]]:
        """The ids in each balanced set, by language and name of the set; empty if the design is not balanced."""
        return self.balancing.sets if self.design.answers_from == CLASSES else {}

    @cached_property
    def joint(self) -> dict[str, list[str]]:
        """The ids in each balanced set for all languages together, by name of the set; empty for other designs."""
        found: dict[str, list[str]] = {}
        for draw in self.task.draws.order_by("language", "pk"):
            for part, ids in draw.parameters.get(JOINT, {}).items():
                found.setdefault(part, []).extend(ids)
        named = {TRAIN + f".{len(ids)}" if part == TRAIN else part: ids for part, ids in found.items()}
        return {name: sorted(ids, key=partial(lot, self.seed, name)) for name, ids in named.items()}

    @cached_property
    def added(self) -> dict[str, str]:
        """A mapping from each id to the smallest balanced set that contains it."""
        named = [(key, name) for sets in self.sets.values() for name, ids in sets.items() for key in ids]
        return dict(reversed(named))

    @cached_property
    def label_sets(self) -> dict[str, list[frozenset[str]]]:
        """A mapping from split to the labels of each of its documents, in the order of the draw.

        It is used only if a document can have several labels.
        """
        found: dict[str, list[frozenset[str]]] = {split: [] for split in SPLITS}
        for units in self.in_set():
            for key, label in zip(units.own["item__key"].to_pylist(), units.judged["label"].to_pylist(), strict=True):
                found[self.splits[key]].append(frozenset(self.kind.form.facets(label)))
        return found

    # --- Probabilities, and statistics of all answers

    @cached_property
    def chances(self) -> tuple[dict[str, float | None], dict[str, float]]:
        """The probabilities with which items were drawn, as two mappings.

        The first maps the language of each draw to the draw's probability. The language is empty if the draw is for all
        languages. The second maps ids to probabilities, for draws whose parts have different probabilities.
        """
        draws = list(self.task.draws.all())
        by_id = {key: chance for draw in draws for key, chance in part_draws.chances(draw.parameters).items()}
        return {draw.language: draw.chance for draw in draws}, by_id

    @cached_property
    def audit_chances(self) -> dict[Stratum, float]:
        """The share of items that were selected for an audit, by stratum."""
        return {stratum: chosen / posts for stratum, (posts, chosen) in audit_counts(self.task).items()}

    @cached_property
    def check_chances(self) -> dict[str, float]:
        """The share of single annotators' units that were selected for a check, by first queue."""
        return {queue: chosen / units for queue, (units, chosen) in check_counts(self.task).items()}

    @cached_property
    def contested(self) -> set[str]:
        return contested_labels(self.task)

    @cached_property
    def answers(self) -> answer_models.Fitted:
        """The valid answers and the model fitted to them, without the units whose label somebody could have known."""
        return answer_models.fitted(self.task, without=self.known)

    @cached_property
    def vote_shares(self) -> dict[int, dict[str, float]]:
        return answer_models.vote_shares(self.answers)

    @cached_property
    def pairs_that_agree(self) -> dict[int, float]:
        return answer_models.pairs_that_agree(self.answers)

    @cached_property
    def opinions(self) -> dict[int, dict[str, float]]:
        return answer_models.second_opinions(self.answers)

    @cached_property
    def suggested(self) -> Mapping[int, list[str]]:
        """The suggested concepts of each unit."""
        return all_suggested(self.task)

    @cached_property
    def sides(self) -> Mapping[tuple[int, int], str]:
        """A mapping from (unit, annotator) to the system that was shown first, for comparisons of two systems."""
        rows = Side.objects.filter(unit__task=self.task).values_list("unit", "annotator", "first")
        return {(unit, annotator): first for unit, annotator, first in rows}


@dataclass(frozen=True)
class Source:
    """The data for a batch of rows.

    own, judged: see `unit_rows.Units`.
    left_out: reason why each row is not in the set, or an empty string.
    said: judgments of each row.
    decided: judgments of the unit that the label comes from; it is in a different task if the label was reused.
    moved: transitions of each row.
    """

    export: Export
    own: pa.RecordBatch
    judged: pa.RecordBatch
    left_out: pa.Array
    said: Lists
    decided: Lists
    moved: Lists

    @cached_property
    def in_set(self) -> pa.Array:
        return pc.equal(self.left_out, "")

    @cached_property
    def fields(self) -> list[dict[str, str]]:
        """The fields of each record, as a mapping from name to value."""
        return list(map(json.loads, self.own["item__fields"].to_pylist()))

    @cached_property
    def stratum(self) -> pa.Array:
        """The stratum of each post in a uniform set; None if people were asked regardless of the detectors.

        agreed: the detectors agreed, and the post itself was not audited, although a post with the same text may have
            been.
        audited: the post was randomly selected to audit the detectors, and people labelled it.
        contested: the detectors agreed, but their language failed its audit, so people labelled the post or a post with
            the same text.
        disputed: the detectors did not agree.
        unconfirmed: one annotator named another queue's language, and the task was closed before a second annotator
            confirmed it.
        """
        agreed_label, asks_all = self.own["agreed_label"], self.export.design.asks_all
        found = [
            (pc.not_equal(self.own["asked"], ""), None),
            (pc.equal(self.moved.last("event"), "unconfirmed"), "unconfirmed"),
        ]
        if not asks_all:
            failed = pc.is_in(agreed_label, pa.array(sorted(self.export.contested), pa.string()))
            # Posts that an extension added after the audit are not contested yet, because they wait for the next audit.
            read = pc.not_equal(self.judged["stage"], stages.AGREED)
            found += [(pc.equal(agreed_label, ""), "disputed"), (self.own["audited"], "audited")]
            found += [(pc.and_(failed, read), "contested")]
        return cases(pa.string(), *found, otherwise=None if asks_all else "agreed")

    @cached_property
    def decisions(self) -> Mapping[str, pa.Array]:
        """The columns that describe who decided each label. For a reused label, this happened in a different task.

        first_label: single annotator's label, if an adjudicator checked it; otherwise None. It is also None if an
            adjudicator would have decided without the check, because the annotator doubted an audited post or named
            another queue's language.
        check_chance: probability with which a single annotator's label was selected for a check; 0 if the label was
            reused, and 1 if it does not come from a single annotator.
        """
        export, judged, text = self.export, self.judged, pa.string()
        settled, answers = (
            pa.array(self.decided.count(live(self.decided, *kinds)))
            for kinds in ((Judgment.SETTLE, Judgment.DISCARD), (Judgment.ANSWER,))
        )
        decided_by = cases(
            text,
            (pc.equal(judged["label"], ""), None),
            (pc.equal(judged["stage"], stages.AGREED), DETECTORS),
            (pc.greater(settled, 0), ADJUDICATOR),
            (pc.equal(answers, 1), ONE),
            otherwise=SEVERAL,
        )
        said = self.said.first("label", live(self.said, Judgment.ANSWER))
        again = where(judged["recheck"]) & where(pc.equal(judged["stage"], stages.LABELLED))
        audited, named = (
            self.moved.count(where(pc.equal(self.moved.held["event"], event))) > 0 for event in ("audited", "named")
        )
        doubted = audited & ~where(pc.equal(said, judged["agreed_label"]))
        first_label = pc.if_else(pa.array(again & ~doubted & ~named), said, pa.scalar(None, text))
        checked = pc.is_valid(first_label)
        of_queue = each(
            lambda visited: export.check_chances.get(next(iter(json.loads(visited)), ""), 0.0),
            *(pa.float64(), judged["visited"]),
        )
        check_chance = cases(
            pa.float64(),
            (pc.invert(pc.or_(checked, pc.fill_null(pc.equal(decided_by, ONE), False))), 1.0),
            (pa.array(audited), export.task.audit_recheck),
            (pc.is_valid(judged["reused_from"]), 0.0),
            otherwise=of_queue,
        )
        return {"decided_by": decided_by, "first_label": first_label, "checked": checked, "check_chance": check_chance}
