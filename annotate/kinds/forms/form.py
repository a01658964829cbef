"""The base class of answer forms, which define what an answer consists of, and their registry.

Answers are stored, compared and exported as canonical text, which the engine never parses. The methods here handle one
label from a list; subclasses override what differs.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from annotate.core.aggregation.answer_table import Aggregation, Floats, majority
from annotate.core.agreement import coefficients, pair_intervals
from annotate.core.words import Wrong


class Form:
    """An answer form.

    slug: name in kinds' files and manifests
    tables: tables of a kind's file that only this form reads
    lists: whether the answers are listed in the kind's file or named by the draw
    several: whether an answer is a set of labels from an open list. Then annotator models and AC1, which need one of K
        labels, are omitted, and only the most frequent labels are reported singly.
    controls: quality controls of its tasks, in addition to those of their kind
    aggregations: functions that aggregate answers, by name (annotate/core/aggregation/answer_table.py)
    Measures: class that measures predictions on a gold set (annotate/core/measures/figure_rows.py)
    measures: its additional measures, which are all shares: name and sentence for reports
    preview: template of the question without a database, if it differs
    template, bench: templates of the question in the queue and in the adjudication view
    folder: folder of its templates, for a form from a plug-in
    about: sentences for the author of a kind's file
    imports: what a row of a file of judgments names: `labels`, or `pairs` of systems
    refuses_files: why decisions cannot be imported from a file, or ""
    """

    slug: str = ""
    tables: tuple[str, ...] = ()
    lists: bool = True
    several: bool = False
    controls: tuple[str, ...] = ()
    aggregations: Mapping[str, Aggregation] = {"majority": majority}
    Measures: Any = None
    measures: Mapping[str, tuple[str, str]] = {}
    preview: str = ""
    template: str = "annotate/_question.html"
    bench: str = "annotate/bench_declared.html"
    folder: Path | None = None
    about: tuple[str, ...] = ()
    imports: str = "labels"
    refuses_files: str = ""

    def answers(self, top: Any) -> Mapping[str, Any]:
        """Return the form's own answers by code (Named), for a kind's file that lists none.

        top: the file's Table
        """
        return {}

    def of_file(self, top: Any, kind: Any) -> Any:
        """Return the kind with the changes that this form makes.

        top: the Table of its file
        KindError: the file is not valid for this form
        """
        return kind

    def read(self, sent: Sequence[str]) -> str:
        """Return the canonical text of submitted values, "" if there are none.

        ValueError: they are not a valid answer
        """
        codes = [text for text in sent if text]
        if len(codes) > 1:
            said = "Several answers were sent (%(answers)s), but only one can be given. Choose one."
            raise Wrong(said, answers=", ".join(codes))
        return codes[0] if codes else ""

    def check(self, text: str, codes: Collection[str]) -> None:
        """Check a canonical text.

        ValueError: it is not a valid answer
        """
        if text not in codes:
            raise Wrong(
                "%(answer)s is not an answer here; it is one of %(answers)s.",
                answer=repr(text),
                answers=", ".join(codes),
            )

    def name(self, text: str, called: Callable[[str], str]) -> str:
        """Return the display name of an answer.

        called: returns the name of a code
        """
        return called(text)

    def agrees(self, said: str, known: str) -> bool:
        """Return whether an answer is correct, given the known one (gold answer, test or decoy)."""
        return said == known

    def facets(self, text: str) -> tuple[str, ...]:
        """Return the labels of an answer, which statistics count singly."""
        return (text,)

    def values(self, codes: Sequence[str], said: Iterable[str]) -> list[str]:
        """Return the canonical texts that agreement distinguishes, in order.

        said: texts that occur
        """
        return list(codes)

    def distances(self, values: Sequence[str]) -> dict[str, pair_intervals.Distance]:
        """Return distances for alpha by name (annotate/core/agreement/pair_intervals.py), always including `nominal`.

        The last one is used to compare annotators.
        """
        return {"nominal": coefficients.nominal(len(values))}

    def unlike(self, values: Sequence[str]) -> Floats:
        """Return the dissimilarity of each two values, from 0 to 1 (K, K)."""
        return coefficients.nominal(len(values))

    def sent(self, labels: Sequence[str], answers: Iterable[str]) -> list[str]:
        """Return what people submit in a task.

        labels: labels stored in the task
        answers: answers of the kind
        """
        return list(labels)

    def details(self, posted: Any) -> dict[str, Any]:
        """Return the fields of a page's form other than the labels, as arguments of read_answer.

        posted: a QueryDict
        """
        return {}

    def vocabulary(self, kind: Any) -> dict[str, Any] | None:
        """Return the description of the vocabulary for the API, or None if the answers are listed."""
        return None

    def fault(self, labels: Sequence[str], task: Any) -> str:
        """Return which labels are not possible in a task, as the end of a sentence, or ""."""
        unknown = [label for label in labels if label not in task.labels]
        return f"{unknown[0]!r}, which is not an answer in {task.name}" if unknown else ""

    def filters(self, labels: Sequence[str]) -> Sequence[str]:
        """Return the labels by which people can filter their own answers."""
        return labels


FORMS: dict[str, Form] = {}


def load() -> None:
    """Register the forms of installed packages: each entry point in the group `assay.forms` names a class."""
    for found in entry_points(group="assay.forms"):
        register(found.load()())


def register(form: Form) -> Form:
    """Register a form under its name.

    ValueError: the name is taken by another form, or is empty
    """
    if not form.slug or FORMS.get(form.slug, form) is not form:
        raise ValueError(f"There is already a form of answers named {form.slug!r}; give this one another name.")
    FORMS[form.slug] = form
    return form
