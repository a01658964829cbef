"""What adjudicators' pages show: what waits for them, one unit with what is known of it, and what they decided."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, QuerySet
from django.http import QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from annotate.core import stages
from annotate.kinds.labels import label_name
from annotate.models import Annotator, Judgment, Task, Transition, Unit
from annotate.pages import choosing
from annotate.pages.showing import record, sets
from annotate.quality.sides import seen, sides_of
from annotate.work import adjudication, changing, together
from annotate.work.languages import is_language
from annotate.work.permit import check_willing

# What a person did, for a page.
DONE = {
    Judgment.ANSWER: gettext_lazy("answered"),
    Judgment.REPEAT: gettext_lazy("answered again"),
    Judgment.SKIP: gettext_lazy("skipped"),
    Judgment.FLAG: gettext_lazy("found it disturbing"),
    Judgment.SETTLE: gettext_lazy("settled as"),
    Judgment.DISCARD: gettext_lazy("discarded"),
}
# The cases of a list, for a page.
CASES = {
    adjudication.BLIND: gettext_lazy("checked blind"),
    adjudication.UNANSWERED: gettext_lazy("skipped by all"),
    adjudication.AGREEING: gettext_lazy("all answered alike"),
    adjudication.DIFFERING: gettext_lazy("answers differ"),
}


def dossier(unit: Unit, annotator: Annotator, posted: QueryDict | None = None) -> dict[str, Any]:
    """What an adjudicator sees of a unit: everything; but for one that is checked, nothing of what detectors and people
    said.

    Otherwise the check would lean towards what it checks. It stays hidden after the decision, which may be taken back.
    What came after a decision of their own they are not shown while the task is open.
    posted: what the unit's form says, if it is shown again.
    """
    blind, kind = adjudication.is_blind(unit, annotator), unit.task.kind
    judgments = list(unit.judgments.select_related("annotator__user", "lease"))
    own = unit.judgments.live().filter(annotator=annotator).first()
    moves = unit.transitions.select_related("by", "judgment")
    decided = adjudication.own_decision(unit, annotator)
    if decided:
        judgments = [each for each in judgments if each.pk <= decided.pk]
        moves = moves.exclude(at__gte=decided.answered_at)
    if unit.stage == stages.ADJUDICATION and not own:
        check_willing(annotator, unit.task, to_read_more=True)
    said = (*(each.label for each in judgments), own.label if own else "", (decided or unit).label)
    *labels, own_label, label = seen(annotator, ((unit, each) for each in said))
    changes = [] if blind else list(changing.of_unit(unit))
    for judgment, as_seen in zip(judgments, labels, strict=True):
        judgment.seen = as_seen
    known = {
        "judgments": [(judgment, _(DONE[judgment.kind]), kind.short(judgment.seen)) for judgment in judgments],
        "changes": [
            (change, kind.name(said, unit.item.language))
            for change, said in zip(changes, seen(annotator, ((unit, each.label) for each in changes)), strict=True)
        ],
        "transitions": moves,
        "history": [
            (move, _(stages.happened(move.from_stage, move.event, move.to_stage)), _came_to(move)) for move in moves
        ],
    }
    return {
        "blind": blind,
        "decides": True,
        **({} if blind else known),
        **record(unit.item, kind, may_hurt=unit.disturbing),
        **sets(sides_of(annotator, unit), unit.item, kind),
        **kind.advise(unit, blind),
        **choosing.of_decision(unit, annotator, blind, posted),
        "own": own,
        "own_said": kind.short(own_label),
        "of_one_text": [] if blind else _of_one_text(unit, annotator),
        "copies": 0 if blind else unit.copies.count(),
        "label": label,
        "came_to": kind.short(label),
        "open": unit.stage == stages.ADJUDICATION and not decided,
    }


def _of_one_text(unit: Unit, annotator: Annotator) -> list[tuple[Unit, list[tuple[str, str]]]]:
    """Other cases of the same text, each with what the list of its task tells of it, under the headings there."""
    found = together.of_one_text(unit, annotator)
    return [(other, list(zip(other.task.kind.list_heads, cells, strict=True))) for other, cells in found]


def _came_to(move: Transition) -> str:
    """Where a unit came, for a page."""
    if move.to_stage == stages.QUEUED:
        said = {"language": label_name(move.language), "number": move.round}
        return _("waits for readers of %(language)s, round %(number)s") % said
    return _(stages.STAGES[move.to_stage])


@dataclass(frozen=True)
class Row:
    """A unit of the list, and what the kind tells of it: nothing of one that is checked blind. agreed: the answer with
    which it can be settled together with others, if it can.
    """

    unit: Unit
    cells: list[str]
    agreed: str = ""

    @property
    def text(self) -> str:
        return self.unit.in_a_line

    @property
    def mark(self) -> str:
        """What is sent where it is marked: the unit, and what all are seen to have said."""
        return f"{self.unit.pk} {self.agreed}"

    @property
    def said(self) -> str:
        return self.unit.task.kind.short(self.agreed)


def waiting_rows(units: Iterable[Unit], annotator: Annotator) -> list[Row]:
    listed = list(units)
    agreed = together.agreed(listed, annotator)
    return [Row(unit, cells, agreed.get(unit.pk, "")) for unit, cells in adjudication.told(listed, annotator)]


def decided_rows(judgments: Iterable[Judgment], annotator: Annotator, task: Task) -> list[tuple[Judgment, str, str]]:
    """A row for each decision of an adjudicator: the text of its unit, and the label."""
    listed = list(judgments)
    labels = seen(annotator, ((each.unit, each.label) for each in listed))
    return [(each, each.unit.in_a_line, task.kind.short(said)) for each, said in zip(listed, labels, strict=True)]


def decision(judgment: Judgment, task: Task) -> str:
    if judgment.kind == Judgment.DISCARD:
        return _("Discarded.")
    [label] = seen(judgment.annotator, [(judgment.unit, judgment.label)])
    return _("Settled as %(label)s.") % {"label": task.kind.name(label)}


@dataclass(frozen=True)
class Cut:
    """The part of a list that the adjudicator works through; empty: all of it."""

    language: str = ""
    case: str = ""

    @classmethod
    def asked(cls, sent: QueryDict) -> "Cut":
        """What an address asks for. What is checked blind is in no language's list."""
        language, case = sent.get("language", ""), sent.get("case", "")
        known = cls(language if is_language(language) else "", case if case in adjudication.CASES else "")
        return replace(known, language="") if known.case == adjudication.BLIND else known

    def query(self, **more: Any) -> str:
        """The query of an address that keeps to this part, with its question mark; empty if there is nothing to say."""
        said = {"language": self.language, "case": self.case} | more
        encoded = urlencode({name: value for name, value in said.items() if value})
        return f"?{encoded}" if encoded else ""

    def units(self, task: Task, annotator: Annotator) -> QuerySet[Unit]:
        return adjudication.to_adjudicate(task, annotator, self.language, self.case)


def filters(task: Task, annotator: Annotator, cut: Cut) -> dict[str, Any]:
    """The parts of a list, the largest first: words, how many, query, whether it is shown. First come the cases, then
    the languages of those of one case.
    """
    everything = adjudication.to_adjudicate(task, annotator)
    cases = Counter(dict(everything.values_list("case").annotate(Count("pk")).order_by("case")))
    told = Cut(case=cut.case).units(task, annotator).filter(blind=False).order_by().values("pk")
    visited = Transition.objects.filter(unit__in=told, to_stage=stages.QUEUED).order_by("language")
    languages = Counter(dict(visited.values_list("language").annotate(Count("unit", distinct=True))))
    return {
        "waiting": cases.total(),
        "cases": [
            (CASES[case], number, Cut("", case).query(), case == cut.case) for case, number in cases.most_common()
        ],
        "languages": [
            (label_name(code), number, replace(cut, language=code).query(), code == cut.language)
            for code, number in languages.most_common()
        ],
    }


def place(unit: Unit, annotator: Annotator, cut: Cut) -> dict[str, Any]:
    """Where a unit stands in the list that the adjudicator works through: its number, if it waits there, of how many,
    and the keys of the one before and the one after.
    """
    listed, own = adjudication.places(cut.units(unit.task, annotator)), adjudication.place_of(unit, annotator)
    at = bisect_left(listed, (own,))
    waits = at < len(listed) and listed[at][1] == unit.pk
    after = at + waits
    return {
        "number": at + 1 if waits else None,
        "of": len(listed),
        "previous": listed[at - 1][1] if at else None,
        "next": listed[after][1] if after < len(listed) else None,
        "first": next((key for _, key in listed if key != unit.pk), None),
    }


def next_to_adjudicate(task: Task, cut: Cut, before: dict[str, Any], decided: Judgment) -> str:
    """The address of the next unit of the list that the adjudicator works through, after the last one of the first that
    was passed over; or of the list. before: the place of the unit before it was decided, which may change it.
    """
    unit = before["next"] or before["first"]
    address = reverse("adjudicate", args=[task.name, unit]) if unit else reverse("adjudication", args=[task.name])
    return address + cut.query(decided=decided.unit_id)


def settled(count: int) -> str:
    said = ngettext("%(count)s case is settled.", "%(count)s cases are settled.", count)
    return said % {"count": f"{count:,}"}


def for_another(count: int) -> str:
    """Why an adjudicator's list lacks units that wait for one."""
    if not count:
        return ""
    said = ngettext(
        "%(count)s case waits for another adjudicator, since you have judged it.",
        "%(count)s cases wait for another adjudicator, since you have judged them.",
        count,
    )
    return said % {"count": f"{count:,}"}
