"""import_scores: what a scorer, such as a detector of toxicity, says of a corpus's pairs."""

from dataclasses import asdict

from annotate.actions.action import CORPUS, FILE, FORMAT, Action, Outcome, column, import_arguments
from annotate.core.option import Option, share
from annotate.reports.tables import are, many
from corpora.core import listed
from corpora.threads.scorers import FIELDS, MESSAGE, SIDES, Imported, import_scores

OPTIONS = (
    CORPUS,
    FILE,
    Option("name", required=True, help="the scorer's name, for example detoxify"),
    Option("threshold", share, required=True, most=1, help="a pair with a score above this is dropped"),
    Option(
        "of",
        default=MESSAGE,
        choices=SIDES,
        help="what the ids name: messages, of which the greater score of a pair's two counts, or pairs, each by the id "
        "of its reply",
    ),
    column(FIELDS, "score=toxicity"),
    FORMAT,
)


def run(values, progress) -> Outcome:
    corpus = values["corpus"]
    given = import_arguments(values, progress, "name", "threshold", "of", "format", fields=FIELDS)
    imported = import_scores(corpus, values["file"], **given)
    scores = imported.scores
    kept = imported.pairs - imported.dropped
    data = asdict(scores) | {
        "corpus": corpus,
        "pairs": imported.pairs,
        "kept": kept,
        "empty": imported.empty,
        "left_out": imported.outside,
        "already": imported.already,
    }
    already = "already imported" if imported.already else f"{many(scores.rows, 'score')} from {scores.source}"
    told = (
        f"Scorer {scores.name} of corpus {corpus}: {already}; above {scores.threshold:g} and so dropped: "
        f"{many(scores.dropped, 'pair')}. All scorers together keep {kept:,} of {many(imported.pairs, 'pair')} and "
        f"drop {imported.dropped:,}."
    )
    return Outcome([told], _notes(corpus, imported), data)


def _notes(corpus: str, imported: Imported) -> list[str]:
    scores, warned = imported.scores, []
    if imported.replaced:
        warned.append(
            f"Note: these replace the scores of {scores.name} from {imported.replaced.source}, with the threshold "
            f"{imported.replaced.threshold:g}."
        )
    if imported.outside:
        left = listed(imported.first_outside, imported.outside, "id")
        warned.append(f"Note: left out, since no pair of corpus {corpus} has such a {scores.of}: {left}.")
    if scores.lacking:
        warned.append(
            f"Note: {are(scores.lacking, 'pair lacks', 'pairs lack')} a score of {scores.name}, which is not taken for "
            "0: without another reason they are kept."
        )
    if imported.draws and not imported.already:
        warned.append(
            f"Note: the filter is another one now. What was drawn before (draws: {imported.draws:,}) tells of the "
            "filter as it was; open another task to audit this one."
        )
    return warned


ACTION = Action(
    "import_scores",
    "Take in the scores, from 0 to 1, that a scorer such as a detector of toxicity gives the messages or pairs of a "
    "corpus of pairs: JSONL, CSV, TSV or Parquet, plain or compressed, with the columns id and score; a "
    "TSV file may lack a header. A pair is dropped where any scorer's score of it is above that scorer's threshold; a "
    "score that is lacking drops nothing. A file is taken as a whole or not at all; the same again changes nothing, "
    "and another threshold or file takes the place of the scorer's earlier ones until something is drawn from the "
    "corpus.",
    OPTIONS,
    run,
)
