"""The kinds of questions: one module each, and this registry."""

from typing import TYPE_CHECKING

from annotate.core.labels import label_name
from annotate.kinds import ad_relevance, imported, language, qa_match, verify, web_ranking

if TYPE_CHECKING:
    from annotate.models import Task

TASK_TYPES = {
    task_type.slug: task_type
    for task_type in (
        language.TASK_TYPE,
        verify.TASK_TYPE,
        ad_relevance.TASK_TYPE,
        qa_match.TASK_TYPE,
        web_ranking.TASK_TYPE,
        imported.TASK_TYPE,
    )
}


def name_of(label: str, task: "Task") -> str:
    """What a label of a task is called wherever it is shown: Good, Yes, Perfect; German, Not German, Undefined."""
    task_type = TASK_TYPES[task.task_type]
    if task_type.records:
        return task_type.answers[label][0] if label in task_type.answers else label
    return label_name(label)
