"""Is the ad relevant to the query? (XGLUE, Liang et al. 2020: Query-Ad Matching, QADSM)"""

from annotate.kinds.records import record_type

TASK_TYPE = record_type(
    slug="ad_relevance",
    title="Is the ad relevant to the query?",
    fields=("query", "title", "description"),
    answers={
        "Good": ("Good", "who typed the query could want what the ad offers"),
        "Bad": ("Bad", "the ad offers something else"),
    },
    template="annotate/ad_relevance.html",
    apart=("query",),
    published="qadsm",
)
