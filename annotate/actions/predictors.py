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
    reading_note,
)
from annotate.core.option import Option, flag, whole_number
from annotate.reports.tables import are, many
from corpora.core import NAMED, listed
from corpora.core.records import RecordError
from corpora.core.voters import VOTERS, in_words
from corpora.predictions.concept_rankers import NEAREST, Suggested, check_suggest, suggest
from corpora.predictions.prediction_import import import_predictions, import_ranked
from corpora.predictions.prediction_rows import FIELDS, read_map
from corpora.predictions.predictor_labels import check_name
from corpora.sources.compression import check_file
from corpora.sources.readers import named_columns
from corpora.storage.layout import check_records, manifest_of
from corpora.votes.vote_run import PIECE, prelabel

# --- The detectors' votes


@action(
    "prelabel",
    "Have the detectors label the language of each post of a corpus. Run the command again after a crash or after "
    f"adding files: it keeps finished parts and, except with Spark, each block of {PIECE:,} posts of an unfinished "
    "part.",
    CORPUS,
    Option("k", whole_number, 3, least=1, help="the maximum number of languages per detector and post"),
    Option(
        "processes",
        whole_number,
        least=1,
        help="the number of processes on this machine; by default one per core, or all of Spark's if ASSAY_ENGINE is "
        "spark",
    ),
    Option(
        "again",
        flag,
        False,
        help="replace votes of other detector versions or with another --k. Draws from the old votes can then no "
        "longer be extended",
    ),
)
def prelabel_action(values: Values, progress: Progress) -> Outcome:
    name = values["corpus"]
    progress.begin(manifest_of(name).rows, "post")
    options = {option: values[option] for option in ("k", "processes", "again")}
    manifest = prelabel(name, **options, progress=progress.advance)
    agreed = sum(votes.unanimous for votes in manifest.votes)
    have = "post has" if manifest.rows == 1 else "posts have"
    summary = (
        f"Corpus {name}: {manifest.rows:,} {have} votes; for {agreed:,} ({agreed / manifest.rows:.1%}), all "
        f"{in_words(len(VOTERS))} detectors agree on the language."
    )
    return Outcome([summary], data={"corpus": name, "posts": manifest.rows, "agreed": agreed})


# --- Imported predictions

RANKED = "Ranked labels"
# Options that apply only to files with one label per post.
OF_ONE_LABEL = ("map", "column", "languages", "format")


def _check_predictions(values: Values) -> None:
    is_ranked = values["ranked"]
    if is_ranked and (inapplicable := [name for name in OF_ONE_LABEL if values[name]]):
        raise ActionError(
            f"--{inapplicable[0]} cannot be used with --ranked: it applies only to files with one label per post. "
            "Remove it."
        )
    if values["vocabulary"] and not is_ranked:
        raise ActionError(
            "--vocabulary applies only to ranked labels. Remove it, or add --ranked if the file is a TREC run."
        )
    corpus, manifest = values["corpus"], manifest_of(values["corpus"])
    check_file(values["file"], values["format"] or ("tsv" if is_ranked else None))
    check_name(values["name"], values["version"], manifest, ranked=is_ranked)
    if is_ranked:
        check_records(corpus, manifest)
    named_columns(values["column"], FIELDS)
    # A file of languages may add labels, which are known only while it is read.
    if not values["languages"]:
        read_map(values["map"])


@action(
    "import_predictions",
    "Register a file of predictions as a predictor, to draw posts by it, evaluate it, or route records by its "
    "classes. The file has the columns id, label and, optionally, score; in a TSV file without a header, the id "
    "comes first. The file must contain each post of the corpus once; unknown ids are counted and ignored. If the "
    "corpus has grown, import a file with all of its posts under the same version. With --ranked, the file is a TREC "
    "run of one system (document, Q0, label, rank, score, system), sorted by score, and need not contain all records.",
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
    checks=_check_predictions,
)
def predictions_action(values: Values, progress: Progress) -> Outcome:
    _check_predictions(values)
    corpus, file, is_ranked = values["corpus"], values["file"], values["ranked"]
    notes: list[str] = []
    if is_ranked:
        run = import_ranked(corpus, file, **import_arguments(values, progress, "name", "version", "vocabulary"))
        predictions, already, without = run.predictions, run.already, run.without
        noun, unknown, examples = "record", len(run.strangers), run.strangers
    else:
        arguments = import_arguments(values, progress, "name", "version", "format", fields=FIELDS)
        imported = import_predictions(corpus, file, declared=read_map(values["map"]), **arguments)
        predictions, already, without = imported.predictions, imported.already, 0
        noun, unknown, examples = (
            "record" if imported.of_records else "post",
            imported.strangers,
            imported.first_strangers,
        )
        notes += [*imported.notes.sentences(), *reading_note(file, values["format"])]
    data = {"corpus": corpus, "predictor": str(predictions), "posts": predictions.rows}
    if unknown:
        notes.append(
            f"Note: these ids were ignored, because corpus {corpus} has no such {noun}s: "
            f"{listed(examples, unknown, 'id')}."
        )
    if is_ranked:
        data["without"] = without
        if without:
            have = "1 record has" if without == 1 else f"{without:,} records have"
            notes.append(
                f"Note: {have} no ranked labels, because {file.name} contains no line for "
                f"{'it' if without == 1 else 'them'}."
            )
    description = (
        f"{'ranked labels for ' if predictions.ranked else ''}{many(predictions.rows, noun)} from {predictions.source}"
    )
    if already:
        description = f"already imported from {predictions.source}"
    data |= {"left_out": unknown, "already": already}
    return Outcome([f"Predictor {predictions} of corpus {corpus}: {description}."], notes, data)


# --- Suggested labels


@action(
    "suggest",
    "Suggest ranked labels of a vocabulary for the records of a corpus, as two predictors: label-match finds labels "
    "that occur in the record, and nearest uses the labels of the most similar other records. The first field counts "
    "as the title. Repeating the command changes nothing.",
    CORPUS,
    Option("vocabulary", required=True, shown="NAME", help="the vocabulary of the labels, in its newest version"),
    Option(
        "learn_from",
        default="",
        shown="FIELD=VALUE",
        help="the records to learn from, such as split=train; by default all records with labels",
    ),
    Option(
        "apart",
        default="",
        shown="FIELD",
        help="a field; records with the same value in it, such as translations, do not learn from each other",
    ),
    Option("depth", whole_number, 20, least=1, help="the maximum number of labels per record and predictor"),
    checks=lambda values: check_suggest(values["corpus"], values["vocabulary"], values["learn_from"], values["apart"]),
)
def suggest_action(values: Values, progress: Progress) -> Outcome:
    corpus = values["corpus"]
    manifest = manifest_of(corpus)
    # Records that came with labels are read a second time, to compare the suggestions with these labels.
    progress.begin(manifest.rows * (2 if manifest.declared else 1), "record")
    options = {name: values[name] for name in ("learn_from", "apart", "depth")}
    suggested = suggest(corpus, values["vocabulary"], **options, progress=progress.advance)
    already, records = ": already made" if suggested.already else "", many(manifest.rows, "record")
    sentences = [
        f"Predictor {predictor} of corpus {corpus}{already}: ranked labels for {predictor.rows:,} of {records}, "
        f"from {predictor.source}."
        for predictor in suggested.predictors
    ]
    if suggested.learned:
        sentences.append(f"Records used for learning: {suggested.learned:,}.")
    data = {
        "corpus": corpus,
        "vocabulary": suggested.vocabulary.name,
        "version": suggested.vocabulary.version,
        "predictors": [{"predictor": str(predictor), "records": predictor.rows} for predictor in suggested.predictors],
        "learned": suggested.learned,
        "left_out": dict(sorted(suggested.outside.items())),
        "already": suggested.already,
    }
    return Outcome(sentences, _notes(suggested), data)


def _notes(suggested: Suggested) -> list[str]:
    """Return notes about a predictor that could not be made, and about labels of records that the vocabulary lacks."""
    notes = []
    if NEAREST not in {predictor.name for predictor in suggested.predictors}:
        notes.append(f"Note: {NEAREST} was not created, because no record has a label of the vocabulary.")
    if outside := suggested.outside:
        such_as = ", such as" if len(outside) > NAMED else ""
        examples = ", ".join(sorted(outside)[:NAMED])
        notes.append(
            f"Note: {are(len(outside), 'label of the records was', 'labels of the records were')} ignored, because "
            f"{suggested.vocabulary} does not contain {'it' if len(outside) == 1 else 'them'}{such_as}: {examples}."
        )
    return notes
