"""How well does the web page serve the query? (XGLUE, Liang et al. 2020: Web Page Ranking, WPR)"""

from annotate.kinds.records import record_type

TASK_TYPE = record_type(
    slug="web_ranking",
    title="How well does the page serve the query?",
    fields=("query", "title", "snippet"),
    answers={
        "4": ("Perfect", "the page that was wanted, or the whole answer"),
        "3": ("Excellent", "serves nearly everybody who types this"),
        "2": ("Good", "serves many, or serves in part"),
        "1": ("Fair", "about the subject, of little use"),
        "0": ("Bad", "of no use, or about something else"),
    },
    template="annotate/web_ranking.html",
    ordered=True,
    together="query",
    apart=("query",),
    published="wpr",
    # People who are good at it still differ by one grade on every third page.
    knobs={"pass_mark": 0.6, "pause_below": 0.5},
)
