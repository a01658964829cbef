"""The rows of an exported set, of any kind of question. It only reads; the same database gives the same rows."""

from collections.abc import Iterator

from django.db.models import Prefetch, QuerySet

from annotate.core import stages
from annotate.goldsets import left_out
from annotate.goldsets.columns import columns_of
from annotate.goldsets.export import CHUNK, Export, Source
from annotate.models import ChosenConcept, Judgment, Transition, Unit


def rows(export: Export) -> Iterator[tuple[dict, str, bool]]:
    """A row for each drawn item and question, in the order of the draw; why it is left out, empty if it is not; and
    whether it may be told yet.

    A copy has the label, judgments and transitions of the unit with the same text, which `judged_as` names. Items with
    known answers that were hidden among the work are not there, nor are their answers. If the text may not leave, a
    row has neither the text nor what leads to it (author, url) or may quote it (comments).
    """
    columns = columns_of(export.kind, with_text=export.with_text)
    reason = export.left_out.reason
    units = _with_history(export.task.units.exported(), of_concepts=bool(export.kind.thesaurus))
    for unit in units.iterator(chunk_size=CHUNK):
        source = Source(export, unit, unit.copy_of or unit, unit.item, reason(unit))
        row = {name: column.value(source) for name, column in columns.items()}
        if source.left_out and export.kind.tells_why:
            words = left_out.adjudicators_words(source.judged, export.with_text)
            row |= {"left_out": source.left_out, "left_out_why": words}
        # Of what still waits, annotators would learn what others say, and gold answers as what is not among it.
        waits = source.judged.stage not in stages.FINISHED
        yield row, source.left_out, not (waits and export.task.is_open)


def _with_history(units: QuerySet[Unit], *, of_concepts: bool) -> QuerySet[Unit]:
    """The units with their judgments and transitions, and with those of the units that they are copies of.
    of_concepts: with the concepts of each judgment too.
    """
    judgments = Judgment.objects.select_related("annotator", "lease").order_by("pk")
    if of_concepts:
        chosen = ChosenConcept.objects.select_related("concept").order_by("concept__key")
        judgments = judgments.prefetch_related(Prefetch("chosen", chosen))
    transitions = Transition.objects.select_related("by__annotator").order_by("pk")
    related = ("item", "comparison", "copy_of__item", "reused_from__task", "copy_of__reused_from__task")
    return (
        units.order_by("position")
        .select_related(*related)
        .prefetch_related(
            *(
                Prefetch(f"{unit}{history}", queryset=queryset)
                for unit in ("", "copy_of__")
                for history, queryset in (
                    ("judgments", judgments),
                    ("transitions", transitions),
                    ("reused_from__judgments", judgments),
                )
            )
        )
    )
