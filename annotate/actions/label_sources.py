"""The actions that add labels to a corpus: detectors' votes, predictions, and suggestions from a vocabulary."""

import re
from collections.abc import Iterable
from pathlib import Path

from annotate.actions.action import (
    CORPUS,
    FILE,
    FILE_GROUP,
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
    size_of,
)
from annotate.core.option import Option, OptionError, flag, share, whole_number, words
from annotate.reports.tables import are, many
from corpora.core import NAMED, counted, listed
from corpora.core.records import RecordError
from corpora.core.voters import DEFAULT, VOTERS, in_words
from corpora.predictions.concept_rankers import NEAREST, SuggestResult, check_suggest, suggest
from corpora.predictions.prediction_import import import_predictions, import_ranked
from corpora.predictions.prediction_rows import FIELDS, read_map
from corpora.predictions.predictor_labels import check_name
from corpora.sources.compression import check_file
from corpora.sources.readers import named_columns
from corpora.storage.layout import check_records, manifest_of
from corpora.vocabulary.vocabulary_import import FORMATS, Imported, import_vocabulary
from corpora.votes.vote_run import PIECE, prelabel

# --- The detectors' votes


@action(
    "prelabel",
    "Have the detectors label the language of each post of a corpus. Run the command again after a crash or after "
    f"adding files: it keeps finished parts and, except with Spark, each block of {PIECE:,} posts of an unfinished "
    "part.",
    CORPUS,
    Option(
        "voters",
        words,
        default=(),
        shown='"NAME NAME"',
        help=f"the detectors, by default {' '.join(DEFAULT.voters)} or those that have voted on the corpus. A detector "
        "of an installed package votes only if it is listed here",
    ),
    Option("k", whole_number, 3, least=1, help="the maximum number of languages per detector and post"),
    Option(
        "min_score",
        default=(),
        several=True,
        shown="DETECTOR=SCORE",
        help="the minimum score, from 0 to 1, of a detector's first language; below it, the detector has no vote on "
        f"the post. The defaults are {', '.join(f'{name}={VOTERS[name].min_score:g}' for name in DEFAULT.voters)}",
    ),
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
        help="replace votes of other detector versions or with other options. Draws from the old votes can then no "
        "longer be extended",
    ),
)
def prelabel_action(values: Values, progress: Progress) -> Outcome:
    name = values["corpus"]
    progress.begin(manifest_of(name).rows, "post")
    options = {option: values[option] for option in ("k", "processes", "again", "voters")}
    manifest = prelabel(name, **options, min_scores=_min_scores(values["min_score"]), progress=progress.advance)
    agreed = sum(votes.unanimous for votes in manifest.votes)
    have = "post has" if manifest.rows == 1 else "posts have"
    summary = (
        f"Corpus {name}: {manifest.rows:,} {have} votes; for {agreed:,} ({agreed / manifest.rows:.1%}), all "
        f"{in_words(len(manifest.voters))} detectors agree on the language."
    )
    return Outcome([summary], data={"corpus": name, "posts": manifest.rows, "agreed": agreed})


def _min_scores(pairs: Iterable[str]) -> dict[str, float]:
    """Parse minimum scores such as `langid=0.5`, and return them by detector. Raise ActionError if one is invalid."""
    scores = {}
    for name, _, written in (pair.partition("=") for pair in pairs):
        try:
            scores[name] = share(written)
            if name not in VOTERS or not 0 <= scores[name] <= 1:
                raise OptionError
        except OptionError:
            raise ActionError(
                f"--min-score {name}={written} is not valid. Write one of the detectors {', '.join(VOTERS)} and a "
                "score from 0 to 1, such as langid=0.6.",
                option="min_score",
            ) from None
    return scores


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
    # A language file may add labels. They are valid only after the file has been read.
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
    Option("ranked", flag, False, help="the file is a TREC run that ranks labels for records", group=RANKED),
    Option(
        "vocabulary", default="", shown="NAME", help="the vocabulary of the labels, in its newest version", group=RANKED
    ),
    MAP,
    column(FIELDS, "label=lang"),
    LANGUAGES,
    FORMAT,
    refuses=(RecordError,),
    checks=_check_predictions,
)
def predictions_action(values: Values, progress: Progress) -> Outcome:
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


# --- Vocabularies

NOT_KEPT = "This was a dry run: nothing was stored."


@action(
    "import_vocabulary",
    "Import a thesaurus, whose concepts can then be labels: EURLEX57K's descriptors (JSON), SKOS (Turtle, RDF/XML or "
    "N-Triples) or a table (TSV), plain or compressed. If it differs from all stored versions, it is stored as a new "
    "version, and removed, new and renamed concepts are listed. Importing the same files again changes nothing.",
    Option("name", required=True, argument=True, help="the vocabulary's name, for example eurovoc"),
    Option("files", Path, required=True, argument=True, several=True, shown="FILE", help="the files of the vocabulary"),
    Option(
        "schemes",
        Path,
        shown="FILE",
        help="a JSON file of schemes and their domains, used instead of the schemes in the files",
    ),
    Option(
        "language",
        default="en",
        shown="CODE",
        help="the language of the labels that annotators see. Concepts without a label in this language are counted",
    ),
    Option("dry_run", flag, False, help="only show what would change; nothing is stored"),
    Option("format", choices=FORMATS, help="the format, if the file name does not show it", group=FILE_GROUP),
    checks=lambda values: _check_vocabulary(values),
)
def vocabulary_action(values: Values, progress: Progress) -> Outcome:
    name, files, schemes = values["name"], values["files"], values["schemes"]
    progress.begin(size_of([*files, *([schemes] if schemes else [])]), "B")
    options = {option: values[option] for option in ("schemes", "format", "language", "dry_run")}
    imported = import_vocabulary(name, files, **options, progress=progress.advance)
    lines = [_vocabulary_summary(name, imported, values["dry_run"])]
    if imported.before and not imported.already:
        lines += _changes(imported)
    if values["dry_run"] and not imported.already:
        lines.append(NOT_KEPT)
    oddities, changes = imported.oddities, imported.changes
    data = {
        "vocabulary": name,
        **{field: getattr(imported, field) for field in ("version", "before", "already")},
        "dry_run": values["dry_run"],
        **{field: getattr(imported, field) for field in ("concepts", "labels", "schemes", "languages")},
        **{"gone": changes.gone, "new": changes.new},
        "renamed": {key: list(labels) for key, labels in changes.renamed.items()},
        **{field: getattr(oddities, field) for field in ("unlabelled", "shared", "alike", "deprecated")},
        **{field: getattr(oddities, field) for field in ("untagged", "unknown_tags", "lengthened")},
        "not_read": oddities.unread,
        "labels_left_out": oddities.rejected,
    }
    return Outcome(lines, _vocabulary_notes(imported, values["language"]), data)


def _check_vocabulary(values: Values) -> None:
    for path in [*values["files"], *([values["schemes"]] if values["schemes"] else [])]:
        check_file(path, values["format"] or "by its name")


def _vocabulary_summary(name: str, imported: Imported, dry_run: bool) -> str:
    version = f"version {imported.version}"
    if imported.already:
        newer = f"; the newest version is {imported.before}" if imported.before != imported.version else ""
        return f"Vocabulary {name}: the files are equal to {version}, so nothing was changed{newer}."
    note = " (dry run)" if dry_run else ""
    return (
        f"Vocabulary {name}, {version}{note}: {many(imported.concepts, 'concept')} with "
        f"{many(imported.labels, 'label')} in {', '.join(tag or 'no language' for tag in imported.languages)}, "
        f"{are(imported.schemes, 'scheme or domain', 'schemes and domains')}."
    )


def _changes(imported: Imported) -> list[str]:
    """Return a heading, and one line each about the concepts removed, added and renamed since the previous version.

    Each line lists the ids and labels of the first few concepts.
    """
    changes, lines = imported.changes, [f"Since version {imported.before}:"]
    listed = {
        change: [f"{key} {label}" for key, label in getattr(changes, change).items()] for change in ("gone", "new")
    }
    listed["renamed"] = [f"{key} {old} → {new}" for key, (old, new) in changes.renamed.items()]
    for change, concepts in listed.items():
        sample = f"{', such as' if len(concepts) > NAMED else ''}: {'; '.join(concepts[:NAMED])}" if concepts else ""
        lines.append(f"  {len(concepts):,} {change}{sample}")
    return lines


def _vocabulary_notes(imported: Imported, language: str) -> list[str]:
    oddities, notes = imported.oddities, []
    if oddities.unlabelled:
        unlabelled = listed(oddities.unlabelled, len(oddities.unlabelled), "concept")
        notes.append(
            f"Note: these concepts have no preferred label in {language}, so another label is shown: {unlabelled}."
        )
    if oddities.shared:
        examples = [f"“{label}” of {', '.join(keys[:NAMED])}" for label, keys in list(oddities.shared.items())[:NAMED]]
        notes.append(
            f"Note: several concepts share {many(len(oddities.shared), 'label')}, ignoring case and Unicode "
            f"forms{', such as' if len(oddities.shared) > NAMED else ''}: {'; '.join(examples)}."
        )
    if oddities.alike:
        alike = "; ".join(", ".join(keys) for keys in oddities.alike[:NAMED])
        notes.append(
            f"Note: these ids differ only in case or Unicode forms, and are kept as separate concepts: {alike}."
        )
    if oddities.deprecated:
        replacements = [
            f"{key} (use {', '.join(successors)})" if successors else key
            for key, successors in oddities.deprecated.items()
        ]
        deprecated = listed(replacements, len(replacements), "concept")
        notes.append(
            f"Note: these deprecated concepts are kept for documents that have them, but not offered: {deprecated}."
        )
    if oddities.lengthened:
        longer = listed(list(oddities.lengthened), len(oddities.lengthened), "id")
        notes.append(f"Note: the last part of an address is not unique, so these ids contain more of it: {longer}.")
        if shorter := sorted({re.split("[/#]", key)[-1] for key in oddities.lengthened} & imported.changes.gone.keys()):
            notes.append(
                f"Note: these shorter ids of version {imported.before} no longer exist: {', '.join(shorter[:NAMED])}. "
                "Documents and answers that have them keep them."
            )
    if oddities.untagged:
        notes.append(
            f"Note: {are(oddities.untagged, 'label has', 'labels have')} no language code, so annotators of every "
            "language can find them."
        )
    if oddities.unknown_tags:
        unknown = listed(oddities.unknown_tags, len(oddities.unknown_tags), "language code")
        notes.append(f"Note: not in the registry of languages, so annotators cannot find their labels: {unknown}.")
    if oddities.rejected:
        left_out = listed(oddities.rejected, len(oddities.rejected), "label")
        notes.append(f"Note: not imported: {left_out.replace('., ', '; ')}")
    if oddities.unread:
        notes.append(f"Note: not imported: {counted(oddities.unread)}.")
    return notes


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
    checks=lambda values: _check_suggest(values),
)
def suggest_action(values: Values, progress: Progress) -> Outcome:
    corpus = values["corpus"]
    manifest = manifest_of(corpus)
    # Records with declared labels are read a second time, to compare the suggestions with these labels.
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


def _check_suggest(values: Values) -> None:
    check_suggest(values["corpus"], values["vocabulary"], values["learn_from"], values["apart"])


def _notes(suggested: SuggestResult) -> list[str]:
    """Return notes on a predictor that could not be created, and on record labels that are not in the vocabulary."""
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
