"""vocabularies: which there are."""

from annotate.actions.action import Action, Outcome
from annotate.figures import overview_report
from annotate.reports.terminal import as_lines
from corpora.vocabulary.concept_index import vocabularies_there

NONE = "There is no vocabulary yet. Take one in: `assay import_vocabulary NAME FILE`."


def run(values, progress) -> Outcome:
    rows = vocabularies_there()
    return Outcome([as_lines(overview_report.vocabularies_table(rows)) if rows else NONE], data={"vocabularies": rows})


ACTION = Action("vocabularies", "List the vocabularies, each with its versions.", (), run)
