"""The data of an export, and the reasons why units are left out of the set. `exporter.py` writes the files."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from django.db.models import Count
from django.db.models.functions import Coalesce

from annotate.controls.audit_report import Stratum, audit_counts
from annotate.controls.check_report import check_counts
from annotate.controls.gold_answers import EXAMPLE, GOLD_ANSWER
from annotate.controls.suggestions import all_suggested
from annotate.core import stages
from annotate.core.draws.balanced_sets import Document, Sizes, draw_balanced_sets, part_of, place_of
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
from annotate.goldsets.unit_rows import Lists, Units, as_mask, cases, live, units_of
from annotate.kinds.balanced_draw import CHANCES, FRAME, IDS, JOINT, NEEDED, SIZES
from annotate.kinds.designs import CLASSES, DESIGNS
from annotate.kinds.interface_language import label_name
from annotate.models import Annotator, Judgment, Side, Task
from annotate.quality import answer_models
from annotate.quality.agreement_strata import contested_strata
from annotate.reports.numbers import percent
from corpora.core.arrow import pc
from corpora.core.languages import UND
from corpora.database.bulk_rows import map_rows
from corpora.draws import part_draws
from corpora.storage.layout import manifest_of

# --- The splits of an exported set, and warnings about splits that are far from their requested shares.
#
# `core/draws/splits.py` draws the splits from the rows that this module passes to it.


# Split -> its name on dataset cards, if different.
KNOWN_AS = {"dev": "validation"}


@dataclass(frozen=True)
class Splitting:
    """The splits of a set.

    splits: split by row id.
    deviations: a sentence for each language whose splits are far from the requested shares. It states the shares and
        the reason.
    """

    splits: Mapping[str, str]
    deviations: Mapping[str, str]


def split_set(units: Iterable[Units], apart: Sequence[str], shares: Mapping[str, Fraction], seed: str) -> Splitting:
    """Draw the splits at random.

    units: units in the set.
    apart: field names. Rows that share a value in one of these fields are put in the same split.

    Raise SplitError if some rows cannot be assigned to a split.
    """
    rows = list(_records(units, apart))
    splits = split(rows, shares, seed=seed)
    by_language = groupby(misses(rows, shares, splits), attrgetter("language"))
    return Splitting(splits, {language: _deviation_sentence(language, list(group)) for language, group in by_language})


def split_by_field(units: Iterable[Units], field: str) -> Splitting:
    """Read the splits from a field of the records. Raise SplitError if a record names no valid split."""
    splits = {key: value for key, _, [value] in _records(units, [field])}
    for key, name in splits.items():
        if name not in SPLITS:
            raise SplitError(
                f"The field {field} of {key} is {repr(name) if name else 'empty'}. It must be {', '.join(SPLITS[:-1])} "
                f"or {SPLITS[-1]}. Import the corpus with valid splits, or draw them at random with --splits."
            )
    return Splitting(splits, {})


def _records(batches: Iterable[Units], names: Sequence[str]) -> Iterator[Row]:
    """Yield each record's id, its language, and its values in the fields `names`."""
    for units in batches:
        columns = (units.unit[f"item__{name}"].to_pylist() for name in ("key", "language", "fields"))
        for key, language, text in zip(*columns, strict=True):
            fields = json.loads(text) if names else {}
            yield Row(key, language, [fields[name] for name in names])


def _deviation_sentence(language: str, group: list[Miss]) -> str:
    """Describe a language's splits that are far from their shares, and the reason.

    For example: "In English, train has 40% of the records instead of 80%: ..."
    """
    first, reasons = group[0], []
    shares = ", ".join(
        f"{miss.split} has {percent(miss.actual)} {'of the records ' if miss is first else ''}instead of "
        f"{percent(miss.requested)}"
        for miss in group
    )
    if first.bound:
        untrained = f", and only {TRAINED_IN} is trained on" if language == TRAINED_IN else ""
        reasons.append(f"{first.bound:,} of {first.rows:,} belong together with records in other languages{untrained}")
    if first.largest > 1 and first.largest > FAR * first.rows:
        reasons.append(f"{first.largest:,} of {first.rows:,} belong together and are in one split")
    reason = "; ".join(reasons) or f"the set has only {first.rows:,} there"
    place = "Without a language" if language == UND else f"In {label_name(language)}"
    return f"{place}, {shares}: {reason}."


# --- The balanced sets of a task, either as drawn or built from documents that annotators have labelled


class Balancing(NamedTuple):
    """The balanced sets of a task.

    sets: ids by language and set name; empty if the design is not balanced.
    short: sets that are smaller than requested, by language.
    chances: inclusion probability by language and class (declared or predicted); empty if unknown.
    taken_out: number of drawn documents in no set, by language. Annotators chose none of the classes for them, or could
        not agree.
    by_people: whether annotators decide the classes.
    """

    sets: dict[str, dict[str, list[str]]]
    short: dict[str, list[dict[str, Any]]]
    chances: dict[tuple[str, str], float]
    taken_out: dict[str, int]
    by_people: bool = False


def balancing_of(task: Task, without: Collection[int]) -> Balancing:
    """Return the balanced sets of a task.

    without: units to exclude, because annotators could have known their labels.
    """
    drawn = {draw.language: draw.parameters for draw in task.draws.order_by("language", "pk")}
    if any(NEEDED in parameters for parameters in drawn.values()):
        return _build_sets(task, drawn, without)
    labelled_ids, unfinished_counts = _find_labelled(task, without)
    balancing = Balancing({}, {}, {}, {})
    for language, parameters in drawn.items():
        # Sort the names, because the order of keys in JSON depends on the database.
        names = sorted(parameters[IDS], key=place_of)
        sets = {name: [key for key in parameters[IDS][name] if key in labelled_ids] for name in names}
        drawn_count, number = (len(set(chain(*ids.values()))) for ids in (parameters[IDS], sets))
        balancing.sets[language], balancing.short[language] = sets, parameters["short"]
        balancing.taken_out[language] = drawn_count - number - unfinished_counts[language]
        balancing.chances.update({(language, label): chance for label, chance in parameters[CHANCES].items()})
    return balancing


def _find_labelled(task: Task, without: Collection[int]) -> tuple[set[str], Counter[str]]:
    """Return the ids of documents labelled with a class, and the number of unfinished documents by language.

    A copy has the label and stage of its original.
    """
    units = task.units.exported().exclude(pk__in=without).order_by()
    classes, labelled_ids, unfinished_counts = set(task.labels) - task.kind.answers.keys(), set[str](), Counter[str]()
    judged = [Coalesce(f"copy_of__{name}", name) for name in ("label", "stage")]
    for key, language, label, stage in units.values_list("item__key", "item__language", *judged):
        if label in classes:
            labelled_ids.add(key)
        unfinished_counts[language] += stage not in stages.FINISHED
    return labelled_ids, unfinished_counts


def _build_sets(task: Task, drawn: Mapping[str, dict[str, Any]], without: Collection[int]) -> Balancing:
    """Build the sets from labelled documents, in draw order.

    While the task is in progress, any set may be smaller than requested.
    """
    parameters = next(iter(drawn.values()))
    classes, (test, dev, train) = parameters["classes"], parameters[SIZES]
    sizes = Sizes(test, dev, tuple(train))
    units = task.units.exported().exclude(pk__in=without)
    labelled = units.filter(stage=stages.LABELLED, label__in=classes).order_by("pk")
    documents = [Document(*row) for row in labelled.values_list("item__key", "item__language", "label")]
    result = draw_balanced_sets(documents, classes, sizes, seed=task.seed, fill=(TEST, DEV, TRAIN))
    empty: dict[str, list[str]] = {name: [] for name, size in sizes.all().items() if size}
    drawn_numbers = units.order_by().values_list("item__language", "predicted").annotate(Count("pk"))
    taken = Counter({(language, label): number for language, label, number in drawn_numbers})
    shortages = {
        language: [short._asdict() for short in result.short if short.language == language] for language in drawn
    }
    return Balancing(
        {language: result.sets.get(language, empty) for language in drawn},
        shortages,
        {
            (language, label): taken[language, label] / size
            for language, draw_parameters in drawn.items()
            for label, size in draw_parameters[FRAME].items()
            if size
        },
        dict.fromkeys(drawn, 0),
        by_people=True,
    )


# --- The data of an export

# Columns for an item's id, its language and its content.
CONTENT = tuple(f"item__{name}" for name in ("key", "language", "text", "fields"))
# The possible sources of a label.
DETECTORS, ONE, SEVERAL, ADJUDICATOR = "detectors", "one", "several", "adjudicator"

UNFINISHED, CLOSED = "unfinished", "closed"
NO_LABEL, OTHER_LABEL, NO_CLASS, NOT_NEEDED = "without_label", "other_label", "no_class", "not_needed"
# The reasons why units are left out, as shown on the card.
REASONS = {
    "no_majority": "annotators did not agree on a label",
    "skipped": "too many annotators skipped it",
    "adjudicator": "an adjudicator discarded it",
    "manager": "a manager discarded it, because its text is broken or names a person",
    CLOSED: "had no label when a manager closed the task",
    GOLD_ANSWER: "has the same text as a gold answer of the task",
    EXAMPLE: "is an example in the guidelines",
    UNFINISHED: "is not finished",
    NO_LABEL: "has no label",
    OTHER_LABEL: "is outside the population that the set is a sample of",
    NO_CLASS: "has none of the classes as its label",
    NOT_NEEDED: "is not needed, because the sets have enough documents of its class",
}
# The answers to these units must stay secret, so the file of left-out units contains only their ids and the reasons.
ONLY_ID = (GOLD_ANSWER, EXAMPLE)
# Transition that discarded a unit -> reason.
DISCARDED_BY = {
    "conflicted": "no_majority",
    "exhausted": "skipped",
    "discarded": "adjudicator",
    "withdrawn": "manager",
    "left_out": CLOSED,
}


class Export:
    """An export of a task's gold set.

    split_shares: value of the option `--splits`; empty if the records name their splits.
    given_seed: seed for drawing the splits; empty to use the draw's seed.
    frequent_over: a label is frequent if more than this many train documents have it.
    tell_secret: whether to disclose the secret of the random draws.

    Data that only some kinds of question need is read on first use. Creating an export raises CorpusError if the corpus
    is missing.
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
            manifest, fields = manifest_of(name), ("source", "licence", "text_may_leave")
            self.corpus = {"name": name} | {field: getattr(manifest, field) for field in fields}
        self.with_text: bool = self.corpus["text_may_leave"]
        # Suffix for file names while the set is unfinished.
        unfinished = task.units.exported().exclude(stage__in=stages.FINISHED).exists()
        self.mark = ".unfinished" if unfinished else ""
        # Annotators' pseudonyms, by the annotator's primary key and by the user's primary key.
        people = list(Annotator.objects.values_list("pk", "user_id", "pseudonym"))
        self.pseudonyms = {pk: pseudonym for pk, _, pseudonym in people}
        self.users = {user: pseudonym for _, user, pseudonym in people}
        # Unit -> reason. These units are left out regardless of their answers, because annotators could have known
        # their labels.
        self.excluded: dict[int, str] = {}
        for control in self.kind.hooks["excluded"]:
            self.excluded |= control.excluded(task, units_of(task, *CONTENT))
        # The ids in each balanced set, by language and set name. Empty if the design is not balanced.
        is_balanced = self.design.answers_from == CLASSES
        self.sets: dict[str, dict[str, list[str]]] = self.balancing.sets if is_balanced else {}

    def written_rows(self, folder: Path, columns: Collection[str]) -> Iterator[dict[str, Any]]:
        """Yield the rows of the written set as dicts with these columns. Columns that the set lacks are omitted.

        folder: folder with gold.jsonl. The file is read again for each published format, because a set may not fit into
            memory.
        """
        with (folder / f"gold{self.mark}.jsonl").open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                row = json.loads(line)
                yield {column: row[column] for column in columns if column in row}

    # --- Units in the set

    def left_out(self, units: Units, transitions: Lists | None = None) -> pa.Array:
        """Return the reason why each unit was left out of the set, or an empty string if it is in the set.

        transitions: transitions of the judged units; None to give all discarded units the reason NO_LABEL.
        """
        unit, judged, text = units.unit, units.judged, pa.string()
        last = transitions.last("event") if transitions else pa.nulls(unit.num_rows, text)
        reasons = map_rows(self._reason, text, unit["asked"], judged["label"], judged["stage"], last)
        if self.sets:
            needed = pa.array([key in self.added for key in unit["item__key"].to_pylist()], pa.bool_())
            reasons = pc.if_else(pc.and_(pc.equal(reasons, ""), pc.invert(needed)), NOT_NEEDED, reasons)
        if self.excluded:
            reasons = pc.coalesce(pa.array(map(self.excluded.get, unit["pk"].to_pylist()), text), reasons)
        return reasons

    def _reason(self, language: str, label: str, stage: str, event: str | None) -> str:
        """Return the reason why a unit was left out of the set, or an empty string if it is in the set.

        event: name of the unit's last transition; None if it is unknown.
        """
        if label:
            if not self.design.sets.includes({"label": label, "asked": language}):
                return OTHER_LABEL
            return NO_CLASS if self.sets and label in self.kind.answers else ""
        if not self.kind.publication.tells_why:
            return CLOSED if stage == stages.DISCARDED and event == "left_out" else NO_LABEL
        if stage != stages.DISCARDED:
            return UNFINISHED
        return DISCARDED_BY[event] if event else NO_LABEL

    def in_set(self) -> Iterator[Units]:
        """Yield the units in the set."""
        for units in units_of(self.task, "label", "stage", "asked", *CONTENT):
            in_set = pc.equal(self.left_out(units), "")
            yield Units(units.unit.filter(in_set), units.judged.filter(in_set))

    # --- Splits

    @cached_property
    def shares(self) -> Mapping[str, Fraction]:
        """The requested share of each split. Raise SplitError if the shares are invalid."""
        return ratios(self.split_shares)

    @cached_property
    def splitting(self) -> Splitting:
        records = self.kind.records
        if not self.split_shares:
            return split_by_field(self.in_set(), records.split)
        return split_set(self.in_set(), records.apart, self.shares, self.seed)

    @cached_property
    def splits(self) -> Mapping[str, str]:
        """The split of each row in the set, by id."""
        return {key: part_of(name) for key, name in self.added.items()} if self.sets else self.splitting.splits

    @property
    def parts(self) -> list[str]:
        """The names of the splits, from the balanced draw, the records or the option --splits."""
        if self.sets:
            return list(dict.fromkeys(part_of(name) for sets in self.sets.values() for name in sets))
        if not self.split_shares:
            return [split for split in SPLITS if split in self.splits.values()]
        return [split for split, share in self.shares.items() if share]

    @cached_property
    def balancing(self) -> Balancing:
        return balancing_of(self.task, self.excluded)

    @cached_property
    def joint(self) -> dict[str, list[str]]:
        """The ids in each balanced set that covers all languages, by set name; empty for other designs."""
        joint: dict[str, list[str]] = {}
        for draw in self.task.draws.order_by("language", "pk"):
            for part, ids in draw.parameters.get(JOINT, {}).items():
                joint.setdefault(part, []).extend(ids)
        by_name = {f"{TRAIN}.{len(ids)}" if part == TRAIN else part: ids for part, ids in joint.items()}
        return {name: sorted(ids, key=partial(lot, self.seed, name)) for name, ids in by_name.items()}

    @cached_property
    def added(self) -> dict[str, str]:
        """The smallest balanced set that contains each id."""
        pairs = [(key, name) for sets in self.sets.values() for name, ids in sets.items() for key in ids]
        return dict(reversed(pairs))

    @cached_property
    def label_sets(self) -> dict[str, list[frozenset[str]]]:
        """The label sets of each split's documents, in draw order.

        Used only if a document can have several labels.
        """
        by_split: dict[str, list[frozenset[str]]] = {split: [] for split in SPLITS}
        for units in self.in_set():
            for key, label in zip(units.unit["item__key"].to_pylist(), units.judged["label"].to_pylist(), strict=True):
                by_split[self.splits[key]].append(frozenset(self.kind.form.facets(label)))
        return by_split

    # --- Probabilities, and statistics of all answers

    @cached_property
    def chances(self) -> tuple[dict[str, float | None], dict[str, float]]:
        """The items' inclusion probabilities, as two mappings.

        The first maps each draw's language to the draw's probability; the language is empty for a draw from all
        languages. The second maps ids to probabilities, for draws whose parts have different probabilities.
        """
        draws = list(self.task.draws.all())
        by_id = {key: chance for draw in draws for key, chance in part_draws.chances(draw.parameters).items()}
        return {draw.language: draw.chance for draw in draws}, by_id

    @cached_property
    def audit_chances(self) -> dict[Stratum, float]:
        """The share of items selected for an audit, by stratum."""
        return {stratum: chosen / posts for stratum, (posts, chosen) in audit_counts(self.task).items()}

    @cached_property
    def check_chances(self) -> dict[str, float]:
        """Among units with a single annotator, the share that was selected for a check, by first queue."""
        return {queue: chosen / units for queue, (units, chosen) in check_counts(self.task).items()}

    @cached_property
    def contested(self) -> set[str]:
        return contested_strata(self.task)

    @cached_property
    def answers(self) -> answer_models.FittedAnswers:
        """The valid answers to units that are not excluded, and the model fitted to these answers."""
        return answer_models.fit_answers(self.task, without=self.excluded)

    @cached_property
    def suggested(self) -> Mapping[int, list[str]]:
        """The suggested labels of each unit."""
        return all_suggested(self.task)

    @cached_property
    def sides(self) -> Mapping[tuple[int, int], str]:
        """The system that was shown first in a comparison, by (unit, annotator)."""
        rows = Side.objects.filter(unit__task=self.task).values_list("unit", "annotator", "first")
        return {(unit, annotator): first for unit, annotator, first in rows}


@dataclass(frozen=True)
class Source:
    """The data for a batch of rows.

    unit, judged: see `unit_rows.Units`.
    left_out: reason why each row is not in the set, or an empty string.
    in_set: whether each row is in the set.
    judgments: judgments of each row.
    deciding: judgments that each label is based on. If the label was reused, they belong to a unit in another task.
    transitions: transitions of each row.
    """

    export: Export
    unit: pa.RecordBatch
    judged: pa.RecordBatch
    left_out: pa.Array
    in_set: pa.Array
    judgments: Lists
    deciding: Lists
    transitions: Lists

    @cached_property
    def fields(self) -> list[dict[str, str]]:
        """The field values of each record, by field name."""
        return list(map(json.loads, self.unit["item__fields"].to_pylist()))

    @cached_property
    def stratum(self) -> pa.Array:
        """The stratum of each post in a uniform set; None if annotators were asked regardless of the detectors.

        agreed: the detectors agreed, and the post was not audited. A post with the same text may have been audited.
        audited: the post was randomly selected to audit the detectors, and annotators labelled it.
        contested: the detectors agreed, but their language failed its audit, so annotators labelled the post or a post
            with the same text.
        disputed: the detectors did not agree.
        unconfirmed: one annotator answered with another queue's language, and the task was closed before a second
            annotator confirmed it.
        """
        agreed_label, asks_all = self.unit["agreed_label"], self.export.design.asks_all
        strata = [
            (pc.not_equal(self.unit["asked"], ""), None),
            (pc.equal(self.transitions.last("event"), "unconfirmed"), "unconfirmed"),
        ]
        if not asks_all:
            contested, paths = self.export.contested, self.export.kind.statistics.audit_strata
            failed = map_rows(
                lambda *values: " ".join(values) in contested, pa.bool_(), *(self.unit[path] for path in paths)
            )
            # Posts added to the task after the audit aren't contested yet. The next audit decides on them.
            annotated = pc.not_equal(self.judged["stage"], stages.AGREED)
            strata += [(pc.equal(agreed_label, ""), "disputed"), (self.unit["audited"], "audited")]
            strata += [(pc.and_(failed, annotated), "contested")]
        return cases(pa.string(), *strata, otherwise=None if asks_all else "agreed")

    @cached_property
    def decisions(self) -> Mapping[str, pa.Array]:
        """The columns that describe who decided each label. A reused label was decided in another task.

        first_label: single annotator's label if an adjudicator checked it, otherwise None. Also None if the unit needed
            an adjudicator anyway: the annotator disagreed with an audited post's label, or answered with another
            queue's language.
        check_chance: probability that a single annotator's label was selected for a check; 0 if the label was reused,
            and 1 if it does not come from a single annotator.
        """
        export, judged, text = self.export, self.judged, pa.string()
        settled, answers = (
            pa.array(self.deciding.count(live(self.deciding, *kinds)))
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
        answer = self.judgments.first("label", live(self.judgments, Judgment.ANSWER))
        rechecked = as_mask(judged["recheck"]) & as_mask(pc.equal(judged["stage"], stages.LABELLED))
        events = self.transitions.values["event"]
        audited, named = (self.transitions.count(as_mask(pc.equal(events, name))) > 0 for name in ("audited", "named"))
        doubted = audited & ~as_mask(pc.equal(answer, judged["agreed_label"]))
        first_label = pc.if_else(pa.array(rechecked & ~doubted & ~named), answer, pa.scalar(None, text))
        checked = pc.is_valid(first_label)
        of_queue = map_rows(
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
