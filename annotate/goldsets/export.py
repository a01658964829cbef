"""What one export is made of: its task, and what is read of it beforehand. exporter.py writes it.

What only some kinds of rows need is read when it is first asked for, so that others do not pay for it.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from annotate.controls.audit_report import Stratum, audit_counts
from annotate.controls.checks import check_counts
from annotate.controls.concept_suggestions import all_suggested
from annotate.core import stages
from annotate.core.draws.balanced_sets import part_of
from annotate.core.draws.hash_order import lot
from annotate.core.draws.label_shares import FREQUENT_OVER
from annotate.core.draws.splits import SPLITS, TRAIN, ratios
from annotate.goldsets.exclusions import LeftOut
from annotate.goldsets.partitions import Balancing, Splitting, balancing_of, split_by_field, split_set
from annotate.goldsets.unit_rows import Lists, Units, units_of
from annotate.kinds import Kind
from annotate.kinds.balanced_draw import JOINT
from annotate.kinds.designs import DESIGNS, Design
from annotate.models import Annotator, Side, Task
from annotate.quality import agreement
from annotate.work.moves import contested_labels
from corpora.draws import part_draws
from corpora.models import Draw
from corpora.storage.layout import manifest_of

CHUNK = 2000  # units read at a time


@dataclass(frozen=True)
class Export:
    """split_shares, seed: those of its splits, from the options; no shares where the records name their splits.
    frequent_over: the documents of train over which a label is frequent. tell_secret: whether the secret of the lots
    is told.
    """

    task: Task
    split_shares: str
    given_seed: str
    frequent_over: int = FREQUENT_OVER
    tell_secret: bool = False

    @cached_property
    def kind(self) -> Kind:
        return self.task.kind

    @cached_property
    def suggested(self) -> Mapping[int, list[str]]:
        """Unit -> the concepts that were suggested for it."""
        return all_suggested(self.task)

    @cached_property
    def sides(self) -> Mapping[tuple[int, int], str]:
        """Unit and annotator -> the system that stood first, where people compare two."""
        rows = Side.objects.filter(unit__task=self.task).values_list("unit", "annotator", "first")
        return {(unit, annotator): first for unit, annotator, first in rows}

    @cached_property
    def draw(self) -> Draw:
        return self.task.draw

    @cached_property
    def design(self) -> Design:
        return DESIGNS[self.draw.design]

    @cached_property
    def corpus(self) -> dict:
        """Where the texts are from, and whether they may leave. CorpusError if the corpus is missing."""
        name = self.draw.corpus.name
        if file := self.draw.parameters.get("imported"):
            return {"name": name, "source": file, "licence": "not stated", "text_may_leave": False}
        told = manifest_of(name)
        return {
            "name": name,
            "source": told.source,
            "licence": told.licence,
            "text_may_leave": told.text_may_leave,
        }

    @property
    def with_text(self) -> bool:
        return self.corpus["text_may_leave"]

    @cached_property
    def mark(self) -> str:
        """The mark in the names of unfinished files."""
        unfinished = self.task.units.exported().exclude(stage__in=stages.FINISHED).exists()
        return ".unfinished" if unfinished else ""

    def units(self) -> Iterator[Units]:
        """The units that are exported, in the order of the draw, without what people did."""
        return units_of(self.task, CHUNK)

    @cached_property
    def pseudonyms(self) -> dict[int, str]:
        """Annotator -> how they are called in a set."""
        return dict(Annotator.objects.values_list("pk", "pseudonym"))

    @cached_property
    def users(self) -> dict[int, str]:
        """The same by the keys of their users."""
        return dict(Annotator.objects.values_list("user_id", "pseudonym"))

    @cached_property
    def known(self) -> dict[int, str]:
        """Unit -> why it is left out, of those whose label somebody could know."""
        found: dict[int, str] = {}
        for control in self.kind.quality_controls:
            found |= control.known(self.task, self.units())
        return found

    @cached_property
    def left_out(self) -> LeftOut:
        return LeftOut(self.kind, self.design, self.known, frozenset(self.added) if self.sets else None)

    # --- splits

    @property
    def seed(self) -> str:
        return self.given_seed or self.draw.seed

    @cached_property
    def shares(self) -> Mapping[str, Fraction]:
        """SplitError if no set can be split in this way."""
        return ratios(self.split_shares)

    @cached_property
    def splitting(self) -> Splitting:
        if not self.split_shares:
            return split_by_field(self.units(), self.left_out, self.kind.records.split)
        return split_set(self.units(), self.left_out, self.shares, self.seed)

    @cached_property
    def splits(self) -> Mapping[str, str]:
        """Id -> split, for the rows in the set."""
        return {key: part_of(name) for key, name in self.added.items()} if self.sets else self.splitting.of

    @property
    def parts(self) -> list[str]:
        """The splits that have rows, as the options, the records or the draw say."""
        if self.sets:
            return list(dict.fromkeys(part_of(name) for sets in self.sets.values() for name in sets))
        if not self.split_shares:
            return [split for split in SPLITS if split in self.splits.values()]
        return [split for split, share in self.shares.items() if share]

    @cached_property
    def balancing(self) -> Balancing:
        return balancing_of(self.task, self.known)

    @cached_property
    def apart(self) -> list[str]:
        """The fields of which equal values are in one split, as a balanced draw kept them."""
        fields: list[str] = self.draw.parameters["apart"]
        return fields

    @property
    def sets(self) -> Mapping[str, Mapping[str, list[str]]]:
        """Language -> set -> ids, of balanced sets; empty of others."""
        return self.balancing.sets

    @cached_property
    def joint(self) -> dict[str, list[str]]:
        """Train and dev -> the ids of the joint sets of all languages of a balanced draw; empty of other draws."""
        found: dict[str, list[str]] = {}
        for draw in self.task.draws.order_by("language", "pk"):
            for part, ids in draw.parameters.get(JOINT, {}).items():
                found.setdefault(part, []).extend(ids)
        named = {TRAIN + f".{len(ids)}" if part == TRAIN else part: ids for part, ids in found.items()}
        return {name: sorted(ids, key=lambda key, name=name: lot(self.seed, name, key)) for name, ids in named.items()}

    @cached_property
    def added(self) -> dict[str, str]:
        """Id -> the smallest of the draw's sets that has it."""
        found: dict[str, str] = {}
        for sets in self.sets.values():
            for name, ids in sets.items():
                for key in ids:
                    found.setdefault(key, name)
        return found

    @cached_property
    def label_sets(self) -> dict[str, list[frozenset[str]]]:
        """Split -> the labels of each of its documents, in the order of the draw, where a document has several."""
        found: dict[str, list[frozenset[str]]] = {split: [] for split in SPLITS}
        for units in self.left_out.others(self.units()):
            for key, label in zip(units.own["item__key"].to_pylist(), units.judged["label"].to_pylist(), strict=True):
                found[self.splits[key]].append(frozenset(self.kind.form.facets(label)))
        return found

    # --- chances, and what is made of all answers

    @cached_property
    def chances(self) -> dict[str, float | None]:
        """The language that a draw is for, or empty -> the chance of being drawn."""
        return {draw.language: draw.chance for draw in self.task.draws.all()}

    @cached_property
    def chances_by_id(self) -> dict[str, float]:
        """Id -> the chance of being drawn, where the parts of a draw have chances of their own."""
        draws = self.task.draws.all()
        return {key: chance for draw in draws for key, chance in part_draws.chances(draw.parameters).items()}

    @cached_property
    def audit_chances(self) -> dict[Stratum, float]:
        """Stratum of the audit -> the share of its posts that was chosen."""
        return {stratum: chosen / posts for stratum, (posts, chosen) in audit_counts(self.task).items()}

    @cached_property
    def check_chances(self) -> dict[str, float]:
        """The first queue -> the share of the units that one person decides there that was chosen for a check."""
        return {queue: chosen / units for queue, (units, chosen) in check_counts(self.task).items()}

    @cached_property
    def contested(self) -> set[str]:
        return contested_labels(self.task)

    @cached_property
    def answers(self) -> agreement.Fitted:
        """The answers that count, with the model of them; none are on units whose label is known."""
        return agreement.fitted(self.task, without=self.left_out.known)

    @cached_property
    def vote_shares(self) -> dict[int, dict[str, float]]:
        return agreement.vote_shares(self.answers)

    @cached_property
    def pairs_that_agree(self) -> dict[int, float]:
        return agreement.pairs_that_agree(self.answers)

    @cached_property
    def opinions(self) -> dict[int, dict[str, float]]:
        return agreement.second_opinions(self.answers)


@dataclass(frozen=True)
class Source:
    """What some rows are made of. own, judged: as in unit_rows.py. left_out: why each is not in the set; empty if
    it is. decided: the judgments that the label is from, which are of another task where it was reused.
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
        """The fields of each record by name."""
        return list(map(json.loads, self.own["item__fields"].to_pylist()))
