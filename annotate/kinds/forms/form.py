"""What a form of answers is: a class whose objects say what an answer consists of. The engine never looks inside.

Answers are stored, compared and exported as their canonical text. The methods here are those of an answer that is one
label out of a list; a form overrides what is different.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from annotate.core.aggregation.answer_table import Aggregation, Floats, majority
from annotate.core.agreement import coefficients, pair_intervals
from annotate.core.words import Wrong


class Form:
    """One form of answers.

    slug: its name in kinds' files and manifests. tables: tables of a kind's file that only this form reads. lists:
    whether a kind's file lists the answers, or its draw names them. several: whether an answer is a set of labels, out
    of more than can be listed; then no true label is modelled and AC1 is left out, since both need one
    of K labels, and only the most frequent labels are reported one by one. controls: quality controls that its tasks
    have besides those of their kind.

    aggregations: how several answers become one, by name; the functions are in answer_table.py. Measures: the class
    that measures predictions on a gold set, with rows of figure_rows.py. measures: its own measures -> the name
    and a sentence on it for reports; all are shares.

    template, bench: templates of the question in the queue and of the adjudication view. preview: that of the question
    where there is no database, if it is another. folder: of its own templates, for a form from outside. about:
    sentences for the author of a kind's file. imports: what each row of a file of judgments names, `labels` or `pairs`
    of systems. refuses_files: why decisions cannot come from a file; empty if they can.
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
        """Code -> Named, the answers that the form itself has where a kind's file lists none. top: the file's Table."""
        return {}

    def of_file(self, top: Any, kind: Any) -> Any:
        """The kind with what this form decides. top: the Table of its file. KindError if the file does not suit."""
        return kind

    def read(self, sent: Sequence[str]) -> str:
        """The canonical text of what a page or a program sent, empty if nothing was. ValueError, a sentence, if it is
        not such an answer.
        """
        codes = [text for text in sent if text]
        if len(codes) > 1:
            said = "Several answers were sent (%(answers)s), but only one can be given. Choose one."
            raise Wrong(said, answers=", ".join(codes))
        return codes[0] if codes else ""

    def check(self, text: str, codes: Collection[str]) -> None:
        """Raise ValueError, a sentence, if this canonical text may not be given."""
        if text not in codes:
            raise Wrong(
                "%(answer)s is not an answer here; it is one of %(answers)s.",
                answer=repr(text),
                answers=", ".join(codes),
            )

    def name(self, text: str, called: Callable[[str], str]) -> str:
        """The name of an answer for people. called: code -> name."""
        return called(text)

    def agrees(self, said: str, known: str) -> bool:
        """Whether an answer is right, if the answer is known (a gold answer, a test, a decoy)."""
        return said == known

    def facets(self, text: str) -> tuple[str, ...]:
        """What statistics count one by one: the one label, or each of several."""
        return (text,)

    def values(self, codes: Sequence[str], said: Iterable[str]) -> list[str]:
        """The canonical texts that agreement tells apart, in order. said: those that were given."""
        return list(codes)

    def distances(self, values: Sequence[str]) -> dict[str, pair_intervals.Distance]:
        """The distances between two values for alpha, by name (pair_intervals.py): `nominal` always. Annotators are
        compared by the last.
        """
        return {"nominal": coefficients.nominal(len(values))}

    def unlike(self, values: Sequence[str]) -> Floats:
        """(K, K): the part of each of these that is not in another, from 0 to 1."""
        return coefficients.nominal(len(values))

    def sent(self, labels: Sequence[str], answers: Iterable[str]) -> list[str]:
        """What people send in a task. labels: what is stored there; answers: those of the kind."""
        return list(labels)

    def details(self, posted: Any) -> dict[str, Any]:
        """What a page's form says of an answer besides its labels, as read_answer takes it. posted: a QueryDict."""
        return {}

    def vocabulary(self, kind: Any) -> dict[str, Any] | None:
        """What programs are told of the vocabulary that the answers come from; None where the answers are listed."""
        return None

    def fault(self, labels: Sequence[str], task: Any) -> str:
        """Which of these cannot be answered in a task, as the end of a sentence; empty if all can."""
        unknown = [label for label in labels if label not in task.labels]
        return f"{unknown[0]!r}, which is not an answer in {task.name}" if unknown else ""

    def filters(self, labels: Sequence[str]) -> Sequence[str]:
        """The labels by which people can filter their own answers."""
        return labels


FORMS: dict[str, Form] = {}


def load() -> None:
    """Register the forms of installed packages: an entry point in the group `assay.forms` names the class."""
    for found in entry_points(group="assay.forms"):
        register(found.load()())


def register(form: Form) -> Form:
    """Make a form known by its name. ValueError if another one has that name already."""
    if not form.slug or FORMS.get(form.slug, form) is not form:
        raise ValueError(f"There is already a form of answers named {form.slug!r}; give this one another name.")
    FORMS[form.slug] = form
    return form
