"""The `review` quality control: reviewers accept, correct or reject a text that another annotator has written.

The first answer to a unit is the text. The unit then goes to its reviewers, who see the text, but neither its author
nor each other's answers. If all reviewers accept the text, it becomes the label. Otherwise, an adjudicator decides.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.core.estimation.proportions import proportion
from annotate.core.refusals import InvalidAnswer
from annotate.kinds import Answer
from annotate.kinds.control import Panel, QualityControl, register
from annotate.kinds.forms.free_text import ACCEPTED as MARK
from annotate.kinds.forms.free_text import REJECTED, Text, Writing, versions
from annotate.models import Annotator, Judgment, Task, Unit
from annotate.reports.numbers import count, estimate
from annotate.reports.tables import NUMBER, Column, Table, many, numbered, table

ACCEPTED, CORRECTED, REJECTING = VERDICTS = ("accepted", "corrected", "rejected")


def _writing(task: Task) -> Writing:
    form = task.kind.form
    assert isinstance(form, Text), "this control belongs to the form"
    return form.writing


def verdict(answer: str, text: str) -> str:
    """Classify a reviewer's answer as one of VERDICTS.

    text: the text under review.
    """
    return ACCEPTED if answer == text else REJECTING if answer == REJECTED else CORRECTED


class TextReview(QualityControl):
    name = "review"
    manifest_key = "review"

    def stored(self, answer: Answer, unit: Unit, annotator: Annotator) -> Answer:
        """Return the answer without the prefix that marks an accepted text.

        Raise InvalidAnswer if the answer rejects a text that the annotator isn't reviewing, or accepts a text that the
        annotator doesn't see.
        """
        if answer.label != REJECTED and not answer.label.startswith(MARK):
            return answer
        is_asked = unit.leases.filter(annotator=annotator).exists()
        if answer.label == REJECTED and not (is_asked and unit.task.kind.form.written(unit, annotator)):
            raise InvalidAnswer(_("There is no text to reject here. Write one, or skip."))
        if answer.label == REJECTED:
            return answer
        text = answer.label.removeprefix(MARK)
        answers = unit.judgments.live().answers().order_by("pk").values_list("label", flat=True)
        shown = [unit.task.kind.form.written(unit, annotator)] if is_asked else versions(answers)
        if not text or text not in shown:
            raise InvalidAnswer(_("The text that you accepted is not a text of this item. Reload the page."))
        return replace(answer, label=text)

    def undo_refusal(self, judgment: Judgment, unit: Unit) -> str:
        """Return why a text can't be undone, if another annotator is reviewing it or has reviewed it.

        Otherwise, the unit again needs a text from a single annotator.
        """
        first = unit.judgments.live().answers().exclude(label=REJECTED).order_by("pk").first()
        if first != judgment:
            return ""
        is_open, has_answered = Q(closed_at=None, expires_at__gt=timezone.now()), Q(judgment__kind=Judgment.ANSWER)
        others = unit.leases.exclude(annotator=judgment.annotator_id)
        if not others.filter(is_open | (has_answered & Q(judgment__voided_at=None))).exists():
            unit.redundancy = 1
            return ""
        return _(
            "Somebody else is already reviewing your text, so it cannot be undone. You can change it later under Your "
            "answers."
        )

    def decided(self, unit: Unit, answers: Sequence[str], label: str | None) -> tuple[str, str, str] | int | None:
        total = 1 + _writing(unit.task).reviewers
        if label != REJECTED:
            if len(answers) < total:
                return total
            if len(set(answers)) == 1:
                return None
        return "conflicted", unit.task.on_conflict, ""

    def section(self, task: Task) -> dict[str, Any]:
        """Return the verdicts on fully reviewed texts, by language and in total, as JSON data.

        Each row has the number of texts and the number of each verdict. `by_all` is the number of texts that all
        reviewers accepted, with its share and interval.
        """
        answers = Judgment.objects.live().answers().filter(unit__task=task).order_by("unit", "pk")
        by_unit: dict[tuple[int, str], list[str]] = {}
        for unit, language, label in answers.values_list("unit", "unit__item__language", "label"):
            by_unit.setdefault((unit, language), []).append(label)
        rows: dict[str, Counter[str]] = {}
        for (_unit, language), (text, *others) in by_unit.items():
            if len(others) >= _writing(task).reviewers:
                verdicts = [verdict(other, text) for other in others]
                row = rows.setdefault(language, Counter())
                row.update({"texts": 1, "by_all": set(verdicts) == {ACCEPTED}, **Counter(verdicts)})
        total = sum(rows.values(), Counter())
        return {
            "reviewers": _writing(task).reviewers,
            "languages": [_row(language, rows[language]) for language in sorted(rows)],
            "all": _row("", total),
        }

    def panel(self, task: Task, results: Mapping[str, Any]) -> Panel:
        whole = results["all"]
        all_of_them = f"all {results['reviewers']} reviewers" if results["reviewers"] > 1 else "their reviewer"
        words = f"Accepted by {all_of_them}: {count(whole['by_all'])} of {many(whole['texts'], 'text')}."
        return Panel(
            "Review of the texts",
            words=[words] if whole["texts"] else [],
            tables=[_table(results["languages"])] if whole["texts"] else [],
            data=dict(results),
            key=self.manifest_key,
            empty="No text has all its reviews yet.",
        )


def _row(language: str, counts: Counter[str]) -> dict[str, Any]:
    numbers = {name: counts[name] for name in ("texts", "by_all", *VERDICTS)}
    return {"language": language, **numbers, "share": proportion(counts["by_all"], counts["texts"]).as_dict()}


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    columns = (
        Column("language", "language"),
        numbered("texts", "texts"),
        Column("share", "accepted by all", NUMBER, lambda row: estimate(row["share"])),
        *(numbered(name, f"{name} by a reviewer") for name in VERDICTS),
    )
    return table("Review verdicts by language", columns, rows)


register(TextReview())
