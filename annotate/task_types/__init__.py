"""The kinds of questions: one module each, and this registry."""

from annotate.task_types import ad_relevance, imported, language, qa_match, verify, web_ranking

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
