"""The base class and registry of answer forms, which define what an answer contains.

Answers are stored, compared and exported as canonical text, which only the form can interpret. The base class handles
answers that consist of one label from a list.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from annotate.core.aggregation.answer_table import Aggregation, Floats, majority
from annotate.core.agreement import coefficients
from annotate.core.refusals import Wrong
from corpora.core import install


class Form:
    """An answer form.

    slug: name of the form in kinds' files and in manifests
    tables: tables of a kind's file that only this form reads
    lists: whether the kind's file or the draw lists the possible answers, unlike concepts of a vocabulary or free texts
    least_answers: minimum number of answers in a kind's file, if it lists any
    several: whether an answer is a set of labels. Annotator models and AC1 need a single label per answer, so sets
        have neither. For sets, reports show only the most frequent labels.
    controls: names of quality controls that the form adds to the kind's
    aggregations: functions that aggregate answers, by name (annotate/core/aggregation/answer_table.py)
    Measures: class that measures predictions on a gold set (annotate/core/measures/figure_rows.py)
    measures: (name, sentence) for each measure that the form adds to reports. The values must be shares.
    measured_by: module whose function `grade(predictions, sets, against, **options)` measures predictions, instead of
        `Measures`; "" if there is none
    preview: template that previews the question without a database; "" to use `template`
    template, bench: templates of the question, in the queue and in the adjudication view
    folder: folder with the form's templates, if the form is from a plug-in
    assets: static files (scripts and style sheets) for pages that use the form's templates
    keys: (labels of the keys, action) for each shortcut that answers the question; empty if digits choose answers
    bench_keys: (labels of the keys, action) for each shortcut that exists only in the adjudication view
    about: sentences for people who write kinds' files
    imports: what the rows of an imported file of judgments contain: `labels`, or `pairs` of systems
    fits_tools: whether exported sets can be written for other annotation tools (exchange/tool_files.py)
    refuses_files: why adjudicators' decisions cannot be imported from a file; "" if they can
    """

    slug: str = ""
    tables: tuple[str, ...] = ()
    lists: bool = True
    several: bool = False
    least_answers: int = 2
    controls: tuple[str, ...] = ()
    aggregations: Mapping[str, Aggregation] = {"majority": majority}
    Measures: Any = None
    measures: Mapping[str, tuple[str, str]] = {}
    measured_by: str = ""
    preview: str = ""
    template: str = "annotate/_question.html"
    bench: str = "annotate/bench_declared.html"
    folder: Path | None = None
    assets: tuple[str, ...] = ()
    keys: Sequence[tuple[object, object]] = ()
    bench_keys: Sequence[tuple[object, object]] = ()
    about: tuple[str, ...] = ()
    imports: str = "labels"
    fits_tools: bool = False
    refuses_files: str = ""

    def answers(self, top: Any) -> Mapping[str, Any]:
        """Return the form's default answers (Named) by code, for kinds whose file lists none.

        top: top-level Table of the file
        """
        return {}

    def of_file(self, top: Any, kind: Any) -> Any:
        """Apply the form's changes to a kind, and return the changed kind.

        top: top-level Table of the kind's file

        Raise KindError if the file is invalid for this form.
        """
        return kind

    def read(self, sent: Sequence[str]) -> str:
        """Return the canonical text of the submitted values; "" if there are none.

        Raise ValueError if they are not a valid answer.
        """
        codes = [text for text in sent if text]
        if len(codes) > 1:
            sentence = "Several answers were sent (%(answers)s), but only one is allowed. Choose one."
            raise Wrong(sentence, answers=", ".join(codes))
        return codes[0] if codes else ""

    def check(self, text: str, codes: Collection[str]) -> None:
        """Raise ValueError if a canonical text is not a valid answer.

        codes: valid labels
        """
        if text not in codes:
            raise Wrong(
                "%(answer)s is not a valid answer. Valid answers: %(answers)s.",
                answer=repr(text),
                answers=", ".join(codes),
            )

    def agrees(self, answer: str, correct: str) -> bool:
        """Return whether an answer is correct.

        answer: the annotator's answer
        correct: the known answer, from a gold answer, a test or a decoy
        """
        return answer == correct

    def facets(self, text: str) -> tuple[str, ...]:
        """Split an answer into its labels. Each label has its own name, and is counted separately in statistics."""
        return (text,)

    def counted(self, text: str) -> tuple[str, ...]:
        """Return the labels that reports and manifests count for an answer; by default, its `facets`."""
        return self.facets(text)

    def values(self, codes: Sequence[str], texts: Iterable[str]) -> list[str]:
        """Return the categories for measuring agreement, as canonical texts in order.

        codes: possible labels
        texts: texts of the answers
        """
        return list(codes)

    def distances(self, values: Sequence[str]) -> dict[str, coefficients.Distance]:
        """Return the distance functions for computing alpha, by name.

        `nominal` is always included. The last distance is also used to compare annotators with each other.
        """
        return {"nominal": coefficients.nominal(len(values))}

    def unlike(self, values: Sequence[str]) -> Floats:
        """Return the dissimilarity of each pair of values, from 0 to 1 (K, K)."""
        return coefficients.nominal(len(values))

    def sent(self, labels: Sequence[str], answers: Iterable[str]) -> list[str]:
        """Return the values that annotators can submit in a task.

        labels: the task's labels
        answers: codes of the kind's answers
        """
        return list(labels)

    def details(self, posted: Any) -> dict[str, Any]:
        """Read the arguments for read_answer, except the labels, from a submitted page.

        posted: the page's QueryDict
        """
        return {}

    def written(self, unit: Any, annotator: Any) -> str:
        """Return another annotator's text that this annotator reviews; "" if the question is not a review."""
        return ""

    def vocabulary(self, kind: Any) -> dict[str, Any] | None:
        """Return a description of the vocabulary, for the API; None if answers are not from a vocabulary."""
        return None

    def fault(self, labels: Sequence[str], task: Any) -> str:
        """Return the first label that is not possible in a task, as the end of a sentence; "" if all are possible."""
        unknown = [label for label in labels if label not in task.labels]
        return f"{unknown[0]!r}, which is not an answer in {task.name}" if unknown else ""

    def filters(self, labels: Sequence[str]) -> Sequence[str]:
        """Return the labels that annotators can filter their own answers by."""
        return labels


FORMS: dict[str, Form] = {}


AnyForm = TypeVar("AnyForm", bound=Form)


def load() -> None:
    """Register the forms that installed packages provide as entry points in the group `assay.forms`."""
    install("assay.forms", lambda form: register(form()))


def register(form: AnyForm) -> AnyForm:
    """Register a form under its name.

    Raise ValueError if the name is empty or belongs to another form.
    """
    if not form.slug or FORMS.get(form.slug, form) is not form:
        raise ValueError(f"A form of answers named {form.slug!r} already exists. Choose another name.")
    FORMS[form.slug] = form
    return form
