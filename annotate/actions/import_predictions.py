"""import_predictions: what a classifier says of a corpus's posts, as a predictor."""

from annotate.actions.action import (
    CORPUS,
    FILE,
    FORMAT,
    LANGUAGES,
    MAP,
    Action,
    ActionError,
    Outcome,
    column,
    import_arguments,
)
from annotate.core.option import Option, flag
from annotate.reports.tables import many
from corpora.core import listed
from corpora.core.records import RecordError
from corpora.predictions.prediction_import import import_predictions, import_ranked
from corpora.predictions.prediction_rows import FIELDS, read_map
from corpora.storage.layout import Predictions

RANKED = "Ranked labels"
# How a file is read that gives each post one label.
OF_ONE_LABEL = ("map", "column", "languages", "format")
OPTIONS = (
    CORPUS,
    FILE,
    Option("name", required=True, help="the classifier's name, for example mine"),
    Option("version", required=True, help="the classifier's version, for example 2"),
    Option(
        "ranked",
        flag,
        False,
        help="the file ranks labels for records: a TREC run, a line for each label of each record",
        group=RANKED,
    ),
    Option(
        "vocabulary",
        default="",
        shown="NAME",
        help="the vocabulary whose concepts the labels must be, in its newest version",
        group=RANKED,
    ),
    MAP,
    column(FIELDS, "label=lang"),
    LANGUAGES,
    FORMAT,
)


def run(values, progress) -> Outcome:
    if values["ranked"]:
        return _run_ranked(values, progress)
    if values["vocabulary"]:
        raise ActionError(
            "--vocabulary is for ranked labels alone; leave it out, or say with --ranked that the file is a run."
        )
    corpus = values["corpus"]
    given = import_arguments(values, progress, "name", "version", "format", fields=FIELDS)
    imported = import_predictions(corpus, values["file"], declared=read_map(values["map"]), **given)
    warned = imported.told.sentences()
    noun = "record" if imported.of_records else "post"
    if imported.strangers:
        warned.append(_left_out(corpus, noun, imported.first_strangers, imported.strangers))
    known = imported.predictions
    data = {"corpus": corpus, "predictor": str(known), "posts": known.rows}
    return Outcome(
        [_told(corpus, known, noun, imported.already)],
        warned,
        data | {"left_out": imported.strangers, "already": imported.already},
    )


def _run_ranked(values, progress) -> Outcome:
    if given := [name for name in OF_ONE_LABEL if values[name]]:
        raise ActionError(
            f"--{given[0]} is for files that give each post one label; a file of --ranked is a TREC run, so leave it "
            "out."
        )
    corpus, file = values["corpus"], values["file"]
    imported = import_ranked(corpus, file, **import_arguments(values, progress, "name", "version", "vocabulary"))
    known, warned = imported.predictions, []
    if imported.strangers:
        warned.append(_left_out(corpus, "record", imported.strangers, len(imported.strangers)))
    if imported.without:
        have = "1 record has" if imported.without == 1 else f"{imported.without:,} records have"
        warned.append(f"Note: {have} no line in {file.name}, and so no ranked labels.")
    data = {"corpus": corpus, "predictor": str(known), "posts": known.rows, "without": imported.without}
    return Outcome(
        [_told(corpus, known, "record", imported.already)],
        warned,
        data | {"left_out": len(imported.strangers), "already": imported.already},
    )


def _left_out(corpus: str, noun: str, first: list[str], total: int) -> str:
    return f"Note: left out, since corpus {corpus} has no such {noun}s: {listed(first, total, 'id')}."


def _told(corpus: str, known: Predictions, noun: str, already: bool) -> str:
    if already:
        return f"Predictor {known} of corpus {corpus}: already imported from {known.source}."
    labels = f"ranked labels for {many(known.rows, noun)}" if known.ranked else many(known.rows, noun)
    return f"Predictor {known} of corpus {corpus}: {labels} from {known.source}."


ACTION = Action(
    "import_predictions",
    "Register a file of predictions as a predictor, by which posts can then be drawn and which can be evaluated, or by "
    "whose classes people are given records. The "
    "file is JSONL, CSV, TSV or Parquet, plain or compressed, with the columns id, label and, if you like, "
    "score. A TSV file may lack a header; its columns are then in this order, so the id comes first, unlike in "
    "published gold files. It must hold each post of the corpus once; ids that the corpus has not are left out and "
    "counted. A file is taken as a whole or not at all. The same file again changes nothing; once the corpus has "
    "grown, import a file for all of its posts under the same version. With --ranked the file is a TREC run of one "
    "system, plain or packed: document, Q0, label, rank, score, system, of which the score decides; it need not have a "
    "line for each record.",
    OPTIONS,
    run,
    (RecordError,),
)
