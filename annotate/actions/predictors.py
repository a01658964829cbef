"""The actions that add predictions to a corpus: the detectors' votes, imported predictions and suggested labels."""

from annotate.actions.action import (
    CORPUS,
    FILE,
    FORMAT,
    LANGUAGES,
    MAP,
    ActionError,
    Outcome,
    Progress,
    Values,
    action,
    column,
    import_arguments,
)
from annotate.core.option import Option, flag, whole_number
from annotate.reports.tables import many
from corpora.core import NAMED, listed
from corpora.core.records import RecordError
from corpora.core.voters import VOTERS, in_words
from corpora.predictions.concept_rankers import NEAREST, Suggested, suggest
from corpora.predictions.prediction_import import import_predictions, import_ranked
from corpora.predictions.prediction_rows import FIELDS, read_map
from corpora.storage.layout import manifest_of
from corpora.votes.vote_run import PIECE, prelabel

# --- The detectors' votes


@action(
    "prelabel",
    "Have the detectors name the languages of every post of a corpus. Run it again after a crash, or for added files: "
    f"finished parts are kept and, except with Spark, each block of {PIECE:,} posts of an unfinished part.",
    CORPUS,
    Option("k", whole_number, 3, least=1, help="the maximum number of languages a detector names"),
    Option(
        "processes",
        whole_number,
        least=1,
        help="how many processes to run on this machine; by default one per core, or all that Spark has if "
        "ASSAY_ENGINE is spark",
    ),
    Option(
        "again",
        flag,
        False,
        help="replace votes by other detector versions or another k; draws from the old votes can no longer be "
        "extended",
    ),
)
def prelabel_action(values: Values, progress: Progress) -> Outcome:
    name = values["corpus"]
    progress.begin(manifest_of(name).rows, "post")
    chosen = {option: values[option] for option in ("k", "processes", "again")}
    manifest = prelabel(name, **chosen, progress=progress.advance)
    agreed = sum(votes.unanimous for votes in manifest.votes)
    have = "post has" if manifest.rows == 1 else "posts have"
    told = (
        f"Corpus {name}: {manifest.rows:,} {have} votes; on {agreed:,} ({agreed / manifest.rows:.1%}) "
        f"all {in_words(len(VOTERS))} detectors name the same language."
    )
    return Outcome([told], data={"corpus": name, "posts": manifest.rows, "agreed": agreed})


# --- Imported predictions

RANKED = "Ranked labels"
# Options that apply only to files with one label per post.
OF_ONE_LABEL = ("map", "column", "languages", "format")


@action(
    "import_predictions",
    "Register a file of predictions as a predictor, to draw posts by it, evaluate it, or route records by its "
    "classes. The file has the columns id, label and, optionally, score; a TSV file may lack a header, and then has "
    "the id first. It must have every post of the corpus once; unknown ids are counted and ignored. Once the corpus "
    "has grown, import a file for all of its posts under the same version. With --ranked the file is a TREC run of "
    "one system (document, Q0, label, rank, score, system), sorted by score, and need not have every record.",
    CORPUS,
    FILE,
    Option("name", required=True, help="the classifier's name, for example mine"),
    Option("version", required=True, help="the classifier's version, for example 2"),
    Option(
        "ranked",
        flag,
        False,
        help="the file is a TREC run that ranks labels for records",
        group=RANKED,
    ),
    Option(
        "vocabulary",
        default="",
        shown="NAME",
        help="the vocabulary of the labels, in its newest version",
        group=RANKED,
    ),
    MAP,
    column(FIELDS, "label=lang"),
    LANGUAGES,
    FORMAT,
    refuses=(RecordError,),
)
def predictions_action(values: Values, progress: Progress) -> Outcome:
    corpus, file, is_ranked = values["corpus"], values["file"], values["ranked"]
    warned: list[str] = []
    if is_ranked and (unfit := [name for name in OF_ONE_LABEL if values[name]]):
        raise ActionError(
            f"--{unfit[0]} is for files that give each post one label; a file of --ranked is a TREC run, so leave it "
            "out."
        )
    if values["vocabulary"] and not is_ranked:
        raise ActionError(
            "--vocabulary is for ranked labels alone; leave it out, or say with --ranked that the file is a run."
        )
    if is_ranked:
        run = import_ranked(corpus, file, **import_arguments(values, progress, "name", "version", "vocabulary"))
        known, already, without = run.predictions, run.already, run.without
        noun, unknown, first = "record", len(run.strangers), run.strangers
    else:
        arguments = import_arguments(values, progress, "name", "version", "format", fields=FIELDS)
        imported = import_predictions(corpus, file, declared=read_map(values["map"]), **arguments)
        known, already, without = imported.predictions, imported.already, 0
        noun, unknown, first = "record" if imported.of_records else "post", imported.strangers, imported.first_strangers
        warned += imported.told.sentences()
    data = {"corpus": corpus, "predictor": str(known), "posts": known.rows}
    if unknown:
        warned.append(f"Note: left out, since corpus {corpus} has no such {noun}s: {listed(first, unknown, 'id')}.")
    if is_ranked:
        data["without"] = without
        if without:
            have = "1 record has" if without == 1 else f"{without:,} records have"
            warned.append(f"Note: {have} no line in {file.name}, and so no ranked labels.")
    said = f"{'ranked labels for ' if known.ranked else ''}{many(known.rows, noun)} from {known.source}"
    if already:
        said = f"already imported from {known.source}"
    data |= {"left_out": unknown, "already": already}
    return Outcome([f"Predictor {known} of corpus {corpus}: {said}."], warned, data)


# --- Suggested labels


@action(
    "suggest",
    "Rank labels of a vocabulary for the records of a corpus, as two predictors: label-match finds labels whose "
    "words occur in the record, and nearest takes the labels of the most similar other records. The first field "
    "counts as the title. Repeating it changes nothing.",
    CORPUS,
    Option("vocabulary", required=True, shown="NAME", help="the vocabulary of the labels, in its newest version"),
    Option(
        "learn_from",
        default="",
        shown="FIELD=VALUE",
        help="the records to learn from, such as split=train; by default all with labels",
    ),
    Option(
        "apart",
        default="",
        shown="FIELD",
        help="a field; records with an equal value, such as translations, do not learn from each other",
    ),
    Option("depth", whole_number, 20, least=1, help="the maximum number of labels per record and system"),
)
def suggest_action(values: Values, progress: Progress) -> Outcome:
    corpus = values["corpus"]
    manifest = manifest_of(corpus)
    # Records that came with labels are read a second time, to compare the suggestions with these labels.
    progress.begin(manifest.rows * (2 if manifest.declared else 1), "record")
    chosen = {name: values[name] for name in ("learn_from", "apart", "depth")}
    suggested = suggest(corpus, values["vocabulary"], **chosen, progress=progress.advance)
    already, records = ": already made" if suggested.already else "", many(manifest.rows, "record")
    said = [
        f"Predictor {each} of corpus {corpus}{already}: ranked labels for {each.rows:,} of {records}, from "
        f"{each.source}."
        for each in suggested.predictors
    ]
    if suggested.learned:
        said.append(f"The labels of {many(suggested.learned, 'record')} were learned from.")
    data = {
        "corpus": corpus,
        "vocabulary": suggested.vocabulary.name,
        "version": suggested.vocabulary.version,
        "predictors": [{"predictor": str(each), "records": each.rows} for each in suggested.predictors],
        "learned": suggested.learned,
        "left_out": dict(sorted(suggested.outside.items())),
        "already": suggested.already,
    }
    return Outcome(said, _missing(suggested), data)


def _missing(suggested: Suggested) -> list[str]:
    """Return notes about a predictor that could not be made, and about labels of records that the vocabulary lacks."""
    warned = []
    if NEAREST not in {each.name for each in suggested.predictors}:
        warned.append(f"Note: no record has a label of the vocabulary, so {NEAREST} was not made.")
    if outside := suggested.outside:
        first = ", the first" if len(outside) > NAMED else ""
        named = ", ".join(sorted(outside)[:NAMED])
        warned.append(
            f"Note: left out, since {suggested.vocabulary} has no such concept: {many(len(outside), 'label')} of the "
            f"records{first}: {named}."
        )
    return warned
