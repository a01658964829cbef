"""corpora: which there are."""

from typing import Any

from annotate.actions.action import Action, Outcome
from annotate.figures import overview_report
from annotate.reports.terminal import as_lines
from corpora.storage.inventory import POSTS, corpora_there

NONE = "There is no corpus yet. Make one of a file of posts: `assay import_corpus NAME FILE --licence LICENCE`."


def run(values, progress) -> Outcome:
    rows = corpora_there()
    data = {"corpora": rows}
    if not rows:
        return Outcome([NONE], data=data)
    return Outcome([as_lines(overview_report.corpora_table(rows)), *_blank_before(todo(rows))], data=data)


def _blank_before(sentences: list[str]) -> list[str]:
    return ["", *sentences] if sentences else []


def todo(rows: list[dict[str, Any]]) -> list[str]:
    """What is to be done next with corpora that nothing was drawn from."""
    said = []
    for row in rows:
        name = row["corpus"]
        if row["holds"] == POSTS and row["voted"] < row["rows"]:
            said.append(f"Corpus {name} has posts without votes: `assay prelabel {name}`.")
        elif not (row["draws"] or row["fault"]):
            said.append(f"Nothing was drawn from corpus {name} yet: `assay open_task TASK --corpus {name} --seed 1 …`.")
    return said


ACTION = Action("corpora", "List the corpora: what each holds, its votes, licence and draws.", (), run)
