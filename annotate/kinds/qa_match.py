"""Does the passage answer the question? (XGLUE, Liang et al. 2020: QA Matching, QAM)

The pairs that people confirm are what a question is generated from (Question Generation, QG): the export writes them
as passage and question too.
"""

from annotate.kinds.records import record_type

TASK_TYPE = record_type(
    slug="qa_match",
    title="Does the passage answer the question?",
    fields=("question", "passage"),
    answers={
        "1": ("Yes", "the passage answers the question"),
        "0": ("No", "it does not, or only in part"),
    },
    template="annotate/qa_match.html",
    apart=("question", "passage"),
    published="qam",
)
