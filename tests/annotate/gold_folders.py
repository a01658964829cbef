"""Exported gold sets with posts, labels and predictions from a table in the test."""

from django.utils import timezone

from annotate.core import stages
from annotate.evaluation.subjects import Subject
from annotate.goldsets.exporter import export
from annotate.models import Transition
from annotate.work.unit_entry import add_units
from corpora.core.voters import DEFAULT
from corpora.models import Item
from corpora.predictions.predictor_labels import Predictor
from tests.annotate.conftest import DISPUTED
from tests.annotate.goldsets.acts import with_manifest


class World:
    """Finished tasks that are exported to folders. `predictions` contains a predictor's labels for all posts."""

    def __init__(self, make_task, folder):
        self.make_task, self.folder, self.predictions = make_task, folder, {}
        with_manifest()

    def uniform(self, table, name="stream"):
        """Export a uniform set. table: (posts, agreed label or "", stratum, people's label, predicted label) rows."""
        keys, entries, rows = self._entries(
            name, [(posts, predicted, (agreed, stratum, truth)) for posts, agreed, stratum, truth, predicted in table]
        )
        for entry, (agreed, _, _) in zip(entries, rows, strict=True):
            entry["votes"] = (agreed,) * 3 if agreed else DISPUTED
        task = self.make_task(entries, name=name)
        task.draws.update(detectors=[dict.fromkeys(DEFAULT.voters, "1")])
        for unit, (_, stratum, truth) in zip(task.units.order_by("position"), rows, strict=True):
            if stratum == "agreed":
                continue
            self._label(unit, truth, audited=stratum == "audited")
            if stratum in ("contested", "unconfirmed"):
                fields = {"from_stage": stages.AGREED, "to_stage": stages.QUEUED, "round": 1, "at": timezone.now()}
                Transition.objects.create(unit=unit, event=stratum, **fields)
        return self.export(task), keys

    def verify(self, design, language, table, *, shared=(), predictor="cld2", name=None, of=""):
        """Export a recall- or precision-oriented set.

        table: (posts, label, predicted label) rows
        shared: (id, label) pairs of posts in other sets
        of: the uniform task from which the posts are drawn
        """
        name = name or f"{design}-{language}"
        keys, entries, labels = self._entries(name, [(posts, predicted, label) for posts, label, predicted in table])
        task = self.make_task(entries, asked=language, name=name)
        task.draws.update(design=design, predictor=predictor, parameters={"of": of} if of else {})
        add_units(task, list(Item.objects.filter(key__in=[key for key, _ in shared])), asked=language)
        labels = dict(zip(keys, labels, strict=True)) | dict(shared)
        for unit in task.units.select_related("item"):
            self._label(unit, labels[unit.item.key])
        return self.export(task), keys

    def _entries(self, name, table):
        keys, entries, rows = [], [], []
        for posts, predicted, row in table:
            for _ in range(posts):
                key = f"{name}-{len(keys)}"
                keys.append(key)
                entries.append({"key": key, "votes": DISPUTED})
                rows.append(row)
                self.predictions[key] = predicted
        for entry in entries:
            # Two posts with the same text would be copies.
            entry["text"] = f"a text that is long enough for agreement to count, {entry['key']}"
        return keys, entries, rows

    def _label(self, unit, label, audited=False):
        unit.stage, unit.label, unit.audited = stages.LABELLED, label, audited
        unit.save()

    def export(self, task):
        folder = self.folder / task.name
        export(task, folder)
        return folder

    def subject(self, name="mine", version="1", changes=None, mapping=None, built_in=False):
        """Return a predictor with the labels in the tables, except for the given changes."""
        labels = self.predictions | (changes or {})
        predictor = Predictor(name, "" if built_in else version, mapping or {})
        return Subject(
            name=name,
            version=predictor.version,
            mapping=predictor.mapping,
            labels=lambda ids, also=(): {key: labels[key] for key in (*ids, *also) if key in labels},
            predictor=predictor,
        )
