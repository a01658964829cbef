"""import_predictions: what a classifier says of a corpus's posts, as a predictor."""

from annotate.actions.action import Action, Outcome
from annotate.actions.options import CORPUS, FILE, FORMAT, LANGUAGES, MAP, column, size_of
from annotate.core.option import Option
from annotate.reports.tables import many
from corpora.added_languages import add_languages
from corpora.core.errors import listed
from corpora.core.predictions import FIELDS, read_map
from corpora.core.records import RecordError
from corpora.import_predictions import Imported, import_predictions
from corpora.readers import named_columns

OPTIONS = (
    CORPUS,
    FILE,
    Option("name", required=True, help="the classifier's name, for example mine"),
    Option("version", required=True, help="the classifier's version, for example 2"),
    MAP,
    column(FIELDS, "label=lang"),
    LANGUAGES,
    FORMAT,
)


def run(values, progress) -> Outcome:
    corpus, file = values["corpus"], values["file"]
    if values["languages"]:
        add_languages(values["languages"])
    progress.begin(size_of([file]), "B")
    imported = import_predictions(
        corpus,
        file,
        name=values["name"],
        version=values["version"],
        declared=read_map(values["map"]),
        columns=named_columns(values["column"], FIELDS),
        format=values["format"],
        progress=progress.advance,
    )
    warned = imported.told.sentences()
    if imported.strangers:
        strangers = listed(imported.first_strangers, imported.strangers, "id")
        noun = "records" if imported.of_records else "posts"
        warned += [f"Note: left out, since corpus {corpus} has no such {noun}: {strangers}."]
    known = imported.predictions
    data = {"corpus": corpus, "predictor": f"{known.name}@{known.version}", "posts": known.rows}
    return Outcome(
        [_told(corpus, imported)], warned, data | {"left_out": imported.strangers, "already": imported.already}
    )


def _told(corpus: str, imported: Imported) -> str:
    predictions = imported.predictions
    spelled = f"{predictions.name}@{predictions.version}"
    if imported.already:
        return f"Predictor {spelled} of corpus {corpus}: already imported from {predictions.source}."
    noun = "record" if imported.of_records else "post"
    return f"Predictor {spelled} of corpus {corpus}: {many(predictions.rows, noun)} from {predictions.source}."


ACTION = Action(
    "import_predictions",
    "Register a file of predictions as a predictor, by which posts can then be drawn and which can be evaluated, or by "
    "whose classes people are given records. The "
    "file is JSONL, CSV, TSV or Parquet, plain or packed by gzip or zstd, with the columns id, label and, if you like, "
    "score. A TSV file may lack a header; its columns are then in this order, so the id comes first, unlike in "
    "published gold files. It must hold each post of the corpus once; ids that the corpus has not are left out and "
    "counted. A file is taken as a whole or not at all. The same file again changes nothing; once the corpus has "
    "grown, import a file for all of its posts under the same version.",
    OPTIONS,
    run,
    (RecordError,),
)
