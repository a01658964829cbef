"""Exported sets of records, and sets with one label per unit, which are measured unit by unit."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from annotate.core.aggregation.answer_table import Floats, Ints
from annotate.core.estimation.label_errors import AuditResponse, AuditStratum
from annotate.core.estimation.proportions import LEAST_COUNT
from annotate.evaluation.blind_arm import MEASURED_REASONS, ReferenceOf, build_reference, suggesters
from annotate.evaluation.subjects import UNFAIR_LOOK, EvaluationError
from annotate.goldsets.columns import COLUMNS
from annotate.goldsets.formats.mrs import MADE_BY, TITLE
from annotate.goldsets.gold_set import UNCONFIRMED
from annotate.goldsets.set_folder import RESTORE, GoldSetError, find_changes, get, manifest_of, original_digest

# A field with more values than this contains texts or names, so units are not sliced by it.
MOST_SLICES = 20
LANGUAGE, PEOPLE, STRATUM = "language", "people", "stratum"
AGREED, AUDITED = "agreed", "audited"  # strata of rows on which voters agree
JUDGMENTS = b', "judgments": ['


@dataclass(frozen=True)
class RecordSet:
    """An exported set.

    size: number of units measured.
    noun: noun for a unit of the set, `post` or `record`.
    """

    folder: Path
    name: str
    finished: bool
    digest: str
    manifest: Mapping[str, Any]
    size: int
    noun: str

    def describe(self) -> dict[str, Any]:
        """Return the set's description for a report."""
        return {
            "name": self.name,
            "folder_name": self.folder.resolve().name,
            "rows": self.size,
            "finished": self.finished,
            "digest": self.digest,
        }


@dataclass(frozen=True)
class PublishedSet(RecordSet):
    """A set of records or of message-reply pairs, exported in a published format.

    format: name of the format.
    files: mapping from each file of the format to its number of rows.
    """

    labels: list[str]
    format: str
    files: dict[str, int]

    @property
    def mark(self) -> str:
        return "" if self.finished else ".unfinished"


def check_set(
    folder: Path,
    name: str,
    files: dict[str, Any],
    needed: Iterable[str] = (),
    *,
    noun: str = "record",
    finished: bool,
    unfinished: bool,
) -> None:
    """Check that a set is finished and its files are unchanged.

    folder: folder of the set.
    name: set name.
    files: mapping from file name to digest, from the set's manifest.
    needed: names of required files.
    noun: noun for a unit of the set in messages.
    finished: whether the set is finished.
    unfinished: whether to accept an unfinished set.

    Raise EvaluationError for an unfinished set that is not accepted, GoldSetError for a missing or changed file.
    """
    if not (finished or unfinished):
        raise EvaluationError(
            f"The gold set {name} in {folder} is unfinished: some {noun}s have no label yet. Export it again when it "
            "is finished, or use --unfinished to measure anyway."
        )
    changed, missing = find_changes(folder, files)
    missing += [file for file in needed if file not in files]
    for names, problem in ((missing, "is missing"), (changed, "has changed since it was written")):
        if names:
            raise GoldSetError(f"{folder / names[0]} {problem}. {RESTORE}")


def read_published_sets(folders: Iterable[Path], *, unfinished: bool) -> list[PublishedSet]:
    """Read the sets in these folders, which must have the same format.

    Raise GoldSetError or EvaluationError for a set that cannot be measured.
    """
    sets: list[PublishedSet] = []
    for folder in folders:
        try:
            gold = _read_published(folder, unfinished)
        except OSError as error:
            raise GoldSetError(f"Cannot read {error.filename or folder}: {error.strerror}.") from error
        except (KeyError, TypeError) as error:
            raise GoldSetError(f"{folder / 'manifest.json'} lacks a required entry: {error}. {RESTORE}") from error
        if sets and gold.format != sets[0].format:
            raise EvaluationError(
                f"{sets[0].folder} has the format {sets[0].format}, but {folder} has the format {gold.format}. Their "
                "predictions cannot be in one folder, so measure each set separately."
            )
        # The size of a set of message-reply pairs is unknown until its pairs are read.
        if gold.format != TITLE and not gold.size:
            raise EvaluationError(
                f"The gold set {gold.name} in {folder} has no labelled records. Remove it, or export it again after "
                "people have labelled some."
            )
        sets.append(gold)
    return sets


def _read_published(folder: Path, unfinished: bool) -> PublishedSet:
    manifest = manifest_of(folder)
    published: dict[str, Any]
    if manifest.get("made_by") == MADE_BY:
        name, finished, labels, size = manifest["corpus"]["name"], True, [], 0
        published = {"format": TITLE, "files": {}}
    else:
        task, size = manifest["task"], manifest["counts"]["labelled"]
        published = manifest["published"] or {"format": "", "files": {}}
        name, finished, labels = task["name"], manifest["finished"], list(task["labels"])
    check_set(folder, name, manifest["files"], published["files"], finished=finished, unfinished=unfinished)
    common = (folder, name, finished, original_digest(manifest), manifest, size, "record")
    return PublishedSet(*common, labels, published["format"], dict(published["files"]))


def unfinished_warnings(sets: Iterable[RecordSet]) -> list[str]:
    """Return the report's warnings on unfinished sets."""
    return [
        f"The gold set {gold.name} is unfinished: {gold.noun}s without a final label are missing."
        for gold in sets
        if not gold.finished
    ]


# --- units that are measured one by one


@dataclass(frozen=True)
class Units(RecordSet):
    """Units with one gold label each.

    Sequences and arrays have one element per unit, (n,), except `labels` and `scarce`.

    form: form of the answer, a name in kinds/forms.
    labels: the task's labels. Grades are listed from best to worst.
    ids: unit ids.
    gold: gold labels.
    chances: probability that the unit was drawn from the corpus. If the set is unfinished or was drawn in parts, the
        probability that the unit was drawn and labelled.
    weights: number of units that the unit represents, scaled to a minimum of 1.
    scarce: languages of an unfinished set in which fewer than LEAST_COUNT of the drawn units have a label.
    groups: index of the group that the unit was drawn with; None if units were drawn individually.
    slices: mapping from a slice name, such as `language`, to the units' values; "" for a unit without a value.
    votes: mapping from label to its share of the unit's answers; empty if nobody answered.
    audits: audits of the items on which voters agree.
    offsets: byte offset of the unit's row in its file.
    in_set: number of units whose rows are in `jsonl`. The other units come last, and their rows are in `left_out`.
    """

    corpus: str
    form: str
    labels: Sequence[str]
    ids: Sequence[str]
    gold: Sequence[str]
    chances: Floats
    weights: Floats
    scarce: Sequence[str]
    groups: Ints | None
    slices: Mapping[str, Sequence[str]]
    votes: Sequence[Mapping[str, float]]
    audits: AuditResponse
    jsonl: Path
    offsets: Sequence[int]
    in_set: int

    @property
    def left_out(self) -> Path:
        return left_out_file(self.jsonl)

    def rows(self, places: Iterable[int]) -> Iterator[dict[str, Any]]:
        """Yield the rows of the units at these positions.

        They are read from disk on each call, because 100,000 rows would take a gigabyte of memory.
        """
        with ExitStack() as files:
            in_set = files.enter_context(self.jsonl.open("rb"))
            others = files.enter_context(self.left_out.open("rb")) if self.in_set < self.size else in_set
            for index in places:
                file = in_set if index < self.in_set else others
                file.seek(self.offsets[index])
                yield json.loads(file.readline())


def left_out_file(jsonl: Path) -> Path:
    return jsonl.with_name(jsonl.name.replace("gold", "left_out", 1))


def read_units(
    folder: Path,
    *,
    unfinished: bool,
    split: str = "",
    sequential: bool = False,
    blind: bool = False,
    in_set_only: bool = False,
) -> Units:
    """Read the units of a set, or of one split of it.

    folder: folder of the set.
    unfinished: whether to accept an unfinished set.
    split: name of the split; "" for all units.
    sequential: whether the intervals must be valid at every look at the data.
    blind: whether to compute the labels from answers given without suggestions, see `blind_arm`.
    in_set_only: with `blind`, whether to leave out the units that are not in the set because annotators disagreed.

    Raise GoldSetError if the set was altered, and EvaluationError if nothing can be measured on it.
    """
    try:
        units = _units(folder, unfinished, split, blind=blind, in_set_only=in_set_only)
    except OSError as error:
        raise GoldSetError(f"Cannot read {error.filename or folder}: {error.strerror}.") from error
    if sequential and units.noun == "post" and not units.finished:
        raise EvaluationError(UNFAIR_LOOK)
    if sequential and units.scarce:
        raise EvaluationError(
            f"--sequential requires at least {LEAST_COUNT} labelled items in each language, but {folder} has fewer "
            f"in {', '.join(units.scarce)}. Export the set again after people have labelled more items."
        )
    return units


def _units(folder: Path, unfinished: bool, split: str, *, blind: bool, in_set_only: bool) -> Units:
    manifest, manifest_path = manifest_of(folder), folder / "manifest.json"
    task, finished = get(manifest_path, manifest, "task", dict), get(manifest_path, manifest, "finished", bool)
    form, name = get(manifest_path, task, "form", str), get(manifest_path, task, "name", str)
    noun = "post" if "posts" in manifest.get("counts", ()) else "record"
    check_set(
        folder, name, get(manifest_path, manifest, "files", dict), noun=noun, finished=finished, unfinished=unfinished
    )
    jsonl = folder / ("gold.jsonl" if finished else "gold.unfinished.jsonl")
    group_column = get(manifest_path, task, "together", str)
    columns = _Columns(group_column, split, is_audited="voters" in task)
    columns.dropped.add(group_column)
    columns.read(jsonl, build_reference(manifest) if blind else None)
    in_set = len(columns.ids)
    if blind and not in_set_only and (others := left_out_file(jsonl)).exists():
        columns.read(others, build_reference(manifest), MEASURED_REASONS)
    _check(columns, name, jsonl, suggesters(manifest) if blind else ())
    if columns.is_audited:
        columns.count_unfinished_audits(left_out_file(jsonl))
        _check_audits(columns, name, folder, is_finished=finished or not task["voters"])
    task_labels = list(task["labels"])
    labels = task_labels + sorted(set(columns.gold) - set(task_labels))
    chances, scarce = np.array(columns.chances) * columns.audit_shares(), list[str]()
    if not finished or any("drawn" in draw["parameters"] for draw in manifest.get("draws", ())):
        shares, scarce = _labelled_shares(get(manifest_path, manifest, "draws", list), columns)
        chances *= shares
    common = (folder, name, finished, original_digest(manifest), manifest, len(columns.ids), noun)
    return Units(
        *common,
        corpus=(manifest.get("corpus") or {}).get("name", ""),
        form=form,
        labels=labels,
        chances=chances,
        weights=chances.max() / chances,
        scarce=[] if finished else scarce,
        groups=columns.group_numbers(),
        slices=columns.slices(),
        jsonl=jsonl,
        in_set=in_set,
        **{column: getattr(columns, column) for column in ("ids", "gold", "votes", "offsets", "audits")},
    )


# A unit's language and its probability of being drawn; None covers all of the language's units.
Stratum = tuple[str, float | None]


def _labelled_shares(draws: Iterable[Mapping[str, Any]], columns: "_Columns") -> tuple[Floats, list[str]]:
    """Return the share of labelled units in each unit's stratum, (n,), and the languages with too few labels.

    A stratum is a language, or a part of it if the draw has parts with different probabilities. Annotation progresses
    at a different pace in each language and part, so labelled units are a random sample only within a stratum. A
    language has too few labels if one of its strata has fewer than LEAST_COUNT and is unfinished.
    """
    drawn, labelled = Counter[Stratum](), Counter[Stratum]()
    for draw in draws:
        parts = draw["parameters"].get("drawn") or {}
        for part, number in parts.items():
            drawn[draw["language"], draw["parameters"]["chances"][part]] += number
        if not parts:
            drawn[draw["language"], None] += draw["size"]
    strata: dict[Stratum, Stratum] = {unit: unit if unit in drawn else (unit[0], None) for unit in columns.counts}
    for unit, number in columns.counts.items():
        labelled[strata[unit]] += number
    shares = {
        unit: min(1.0, labelled[stratum] / (drawn[stratum] or labelled[stratum])) for unit, stratum in strata.items()
    }
    scarce = sorted(
        {stratum[0] or "the set" for stratum, number in drawn.items() if labelled[stratum] < min(number, LEAST_COUNT)}
    )
    return np.array([shares[unit] for unit in columns.strata]), scarce


def _check(columns: "_Columns", name: str, jsonl: Path, suggested_by: Sequence[str]) -> None:
    """Check that the units can be measured.

    suggested_by: the predictors whose labels annotators saw, if only answers without suggestions are measured.

    Raise EvaluationError if they cannot, and GoldSetError if the set has impossible probabilities.
    """
    if suggested_by and not columns.ids:
        raise EvaluationError(
            f"{', '.join(suggested_by)} suggested labels in {name}, and nobody has answered without seeing them, so it "
            "cannot be measured on this set. Open a task with a larger --blind-share."
        )
    if columns.split and not columns.ids:
        raise EvaluationError(
            f"The gold set {name} in {jsonl.parent} has no items in the split {columns.split}. Its splits are: "
            f"{', '.join(sorted(columns.splits)) or 'none'}. Choose one with --split, or remove the option."
        )
    if not columns.ids:
        raise EvaluationError(
            f"The gold set {name} in {jsonl.parent} has no labelled items, so nothing can be measured. Export it "
            "again after people have labelled some."
        )
    if len(set(columns.gold)) < 2:
        raise EvaluationError(
            f"All {len(columns.gold):,} items of the gold set {name} in {jsonl.parent} have the label "
            f"{columns.gold[0]}, so a system that always predicts it would be perfect. Add items with other labels."
        )
    if not all(0 < chance <= 1 for chance in columns.chances):
        raise GoldSetError(f"{jsonl} contains a row with a chance of 0 or less, or more than 1. {RESTORE}")


def _check_audits(columns: "_Columns", name: str, folder: Path, *, is_finished: bool) -> None:
    """Raise EvaluationError if the audited items cannot represent the items on which voters agree.

    is_finished: whether annotators have labelled all items on which voters disagree.
    """
    if columns.never_audited:
        raise EvaluationError(
            f"Nobody audited some of the labels on which the voters agree in {folder}, so no system can be measured on "
            "the set. Audit them with `assay audit --add`, and export the set again."
        )
    if not is_finished:
        raise EvaluationError(
            f"The gold set {name} in {folder} is unfinished, and the items on which its voters disagree are harder "
            "than the others. Export it again when it is finished."
        )
    audits = columns.audits
    drawn = audits.read + audits.missing.total()
    if audits.read < min(drawn, LEAST_COUNT):
        raise EvaluationError(
            f"Only {audits.read:,} of {drawn:,} audits of the items on which the voters agree in {folder} have a "
            f"label, and at least {LEAST_COUNT} are needed, so no system can be measured on the set. Finish the audit, "
            "and export the set again."
        )


def _replace_label(row: dict[str, Any], reference: ReferenceOf) -> bool:
    """Replace a row's label with its reference label. Return False if it has none."""
    answer = reference(row)
    if answer is None:
        return False
    # Drop the votes, because they also count answers given with suggestions.
    row |= {"label": answer.label, "chance": (row.get("chance") or 1.0) * answer.chance, "soft_labels": ()}
    return True


@dataclass
class _Columns:
    """Columns of a set's rows, collected row by row."""

    together: str
    split: str
    is_audited: bool  # whether voters labelled the records on which they agree
    splits: set[str] = field(default_factory=set)
    strata: list[Stratum] = field(default_factory=list)
    counts: Counter[Stratum] = field(default_factory=Counter)  # number of units of all splits per stratum
    ids: list[str] = field(default_factory=list)
    gold: list[str] = field(default_factory=list)
    chances: list[float] = field(default_factory=list)
    groups: list[Any] = field(default_factory=list)
    votes: list[Mapping[str, float]] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    # `values` contains the units' values for columns that may become slices. `dropped` contains the names of the other
    # columns, which every set has or which have too many values.
    values: dict[str, list[str]] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=lambda: {*COLUMNS} - {LANGUAGE, STRATUM, "text"})
    audits: AuditResponse = field(default_factory=AuditResponse)
    audit_strata: list[AuditStratum | None] = field(default_factory=list)  # None for units that were not audited
    never_audited: bool = False  # whether the voters agree on some label that was not audited
    # Units with equal votes share one mapping.
    vote_cache: dict[tuple[tuple[str, float], ...], Mapping[str, float]] = field(default_factory=dict)

    def read(self, jsonl: Path, reference: ReferenceOf | None = None, reasons: Sequence[str] = ()) -> None:
        """Read the rows of a file.

        reference: returns the label that replaces a row's own; rows where it returns None are not measured.
        reasons: for a file of left-out rows, the reasons whose rows are measured anyway.
        """
        offset = 0
        with jsonl.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                # Skip judgments and transitions, which make up most of a row. They come last, unless a control
                # adds a column.
                end = line.find(JUDGMENTS) if line.endswith(b"]}\n") and not reference else -1
                row = json.loads(line if end < 0 else line[:end] + b"}")
                is_automatic = self.is_audited and row.get("stratum") == AGREED
                is_left_out = bool(reasons) and row["left_out"] not in reasons
                if is_automatic or is_left_out or row.get("stratum") == UNCONFIRMED:
                    offset += len(line)
                    self.never_audited |= is_automatic and not row.get("audit_chance")
                    continue
                stratum = row.get("language") or "", row.get("chance") or 1.0
                self.counts[stratum] += 1
                audit_stratum = _audit_stratum(row) if self.is_audited else None
                if audit_stratum:
                    self.audits.add(audit_stratum, 1 / (stratum[1] * _audit_chance(row)))
                if row.get("split"):
                    self.splits.add(row["split"])
                if (not self.split or row.get("split") == self.split) and (
                    not reference or _replace_label(row, reference)
                ):
                    self._add(f"{jsonl}, line {number:,}", row)
                    self.strata.append(stratum)
                    self.audit_strata.append(audit_stratum)
                    self.offsets.append(offset)
                offset += len(line)

    def count_unfinished_audits(self, left_out: Path) -> None:
        """Count the audits without a label. Their rows are in the file of left-out rows."""
        if not left_out.exists():
            return
        counted = {*self.ids} if self.audits.read else set()
        with left_out.open("rb") as lines:
            for row in map(json.loads, lines):
                if (stratum := _audit_stratum(row)) and row["id"] not in counted:
                    weight = 1 / ((row.get("chance") or 1.0) * _audit_chance(row))
                    self.audits.add(stratum, weight, row["left_out"])

    def group_numbers(self) -> Ints | None:
        """Return each unit's group index, (n,). None if there are no groups, or if the licence withholds the field."""
        if not self.together or None in self.groups:
            return None
        places = {value: index for index, value in enumerate(dict.fromkeys(map(str, self.groups)))}
        return np.array([places[str(value)] for value in self.groups], dtype=np.int64)

    def audit_shares(self) -> Floats:
        """Return the share of finished audits in each unit's stratum, (n,). It is 1 for units that were not audited."""
        shares = self.audits.shares()
        return np.array([shares[stratum] if stratum else 1.0 for stratum in self.audit_strata])

    def _add(self, location: str, row: dict[str, Any]) -> None:
        self.ids.append(get(location, row, "id", str))
        self.gold.append(sys.intern(get(location, row, "label", str)))
        self.chances.append((row.get("chance") or 1.0) * (_audit_chance(row) if self.is_audited else 1.0))
        self.groups.append(row.get(self.together))
        votes = tuple(
            (soft_label["label"], soft_label["votes"])
            for soft_label in row.get("soft_labels") or ()
            if soft_label["votes"]
        )
        self.votes.append(self.vote_cache.setdefault(votes, dict(votes)))
        largest_share = max((share for _, share in votes), default=0.0)
        agreement = "all agree" if len(votes) == 1 else "most agree" if largest_share > 0.5 else "no majority"
        row[PEOPLE] = agreement if votes else ""
        for name, value in row.items():
            if name in self.dropped or not (isinstance(value, str) or (value is None and name in (LANGUAGE, STRATUM))):
                continue
            values = self.values.setdefault(name, [])
            if len(values) < len(self.ids) - 1:  # earlier rows lack the column
                values += [""] * (len(self.ids) - 1 - len(values))
            values.append(sys.intern(value or ""))
            if len(self.ids) % MOST_SLICES == 0 and len(set(values[-2 * MOST_SLICES :])) > MOST_SLICES:
                self.dropped.add(name)
                del self.values[name]

    def slices(self) -> dict[str, list[str]]:
        values_by_name = {}
        # The slice by annotators' agreement comes last.
        for name in sorted(self.values, key=lambda name: name == PEOPLE):
            values = self.values[name]
            if 2 <= len(set(values)) <= min(MOST_SLICES, len(self.ids) // 2):
                values_by_name[name] = values + [""] * (len(self.ids) - len(values))
        return values_by_name


def _audit_stratum(row: Mapping[str, Any]) -> AuditStratum | None:
    """Return the stratum of an audited row; None for other rows."""
    is_audited = row.get("stratum") == AUDITED
    return AuditStratum(row.get("language") or "", str(row.get("agreed"))) if is_audited else None


def _audit_chance(row: Mapping[str, Any]) -> float:
    """Return a row's probability of being annotated.

    Where voters agree, only audited rows are measured, because the others have the voters' own label. An audited row
    therefore represents several rows.
    """
    return float(row["audit_chance"]) if row.get("stratum") == AUDITED else 1.0


def is_text(name: str, value: Any) -> bool:
    """Return whether a column contains text shown to annotators: the item's text or a field of a record."""
    return isinstance(value, str) and (name == "text" or name not in COLUMNS)


def answers_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Return each annotator's label. Voided answers are left out."""
    return {
        judgment["annotator"]: judgment["label"]
        for judgment in row.get("judgments") or ()
        if judgment["kind"] == "answer" and judgment["label"] and not judgment.get("voided_at")
    }
