"""What ranked predictors suggest for the documents of a task, stored with its units when it is opened.

So a task keeps its suggestions, whatever becomes of the predictors. quality/suggestions.py says who is shown them.
"""

from collections.abc import Iterable, Mapping, Sequence

from annotate.models import Suggestion, Task
from annotate.work.new_task import TaskError
from corpora.database.bulk_rows import insert
from corpora.predictions.predictor_labels import find_imported
from corpora.predictions.rankings import ranked_for

DEPTH = 20  # labels of a system that are stored with a unit
Rankings = Mapping[str, Mapping[str, Sequence[str]]]  # system -> id of a document -> its labels, the best first


def rankings_of(task: Task, corpus: str, predictors: Sequence[str], ids: Iterable[str]) -> Rankings:
    """What each of these predictors of a corpus ranks for the documents; task: one whose answers are concepts, if any
    predictor is given. Deprecated concepts are left out. CorpusError if there is no such predictor, or if it ranks
    nothing; TaskError for a label that the task's vocabulary has not.
    """
    keys = list(ids)
    if twice := [each for number, each in enumerate(predictors) if each in predictors[:number]]:
        raise TaskError(f"--suggest-from {twice[0]} is given twice; name each once.")
    found = {str(find_imported(corpus, each)): ranked_for(corpus, each, keys) for each in predictors}
    known = dict(task.vocabulary.concepts.values_list("key", "is_deprecated")) if found else {}
    for system, rankings in found.items():
        for key, labels in rankings.items():
            if unknown := [label for label in labels[:DEPTH] if label not in known]:
                raise TaskError(
                    f"{system} suggests {unknown[0]!r} for document {key}, and {task.vocabulary} has no such concept; "
                    "make its run without such labels and import it as another --version."
                )
    return {
        system: {key: [label for label in labels if not known.get(label)] for key, labels in rankings.items()}
        for system, rankings in found.items()
    }


def store_suggestions(task: Task, rankings: Rankings) -> None:
    """With each unit that people may be asked about, hidden gold answers too."""
    if not rankings:
        return
    units = task.units.filter(copy_of=None).values_list("pk", "item__key")
    insert(
        Suggestion(unit_id=unit, system=system, ranked=of[key][:DEPTH])
        for unit, key in units
        for system, of in rankings.items()
        if of[key]
    )
