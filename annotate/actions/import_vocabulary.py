"""The action `import_vocabulary`: import a thesaurus as a new version of a vocabulary."""

import re
from pathlib import Path

from annotate.actions.action import THE_FILE, Action, Outcome, Progress, Values, size_of
from annotate.core.option import Option, flag
from annotate.reports.tables import are, many
from corpora.core import NAMED, listed
from corpora.vocabulary.vocabulary_import import FORMATS, Imported, import_vocabulary

NOT_KEPT = "This was a dry run: nothing was stored."
OPTIONS = (
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
    Option("format", choices=FORMATS, help="the format, if the file name does not show it", group=THE_FILE),
)


def run(values: Values, progress: Progress) -> Outcome:
    name, files, schemes = values["name"], values["files"], values["schemes"]
    progress.begin(size_of([*files, *([schemes] if schemes else [])]), "B")
    options = {option: values[option] for option in ("schemes", "format", "language", "dry_run")}
    imported = import_vocabulary(name, files, **options, progress=progress.advance)
    lines = [_summary(name, imported, values["dry_run"])]
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
        **{field: getattr(oddities, field) for field in ("unlabelled", "shared", "alike", "deprecated", "lengthened")},
        "not_read": oddities.unread,
    }
    return Outcome(lines, _notes(imported, values["language"]), data)


def _summary(name: str, imported: Imported, dry_run: bool) -> str:
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
    """Return lines about the concepts that were removed, added or renamed since the previous version.

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


def _notes(imported: Imported, language: str) -> list[str]:
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
    if oddities.unread:
        notes.append(f"Note: not imported: {', '.join(many(count, noun) for noun, count in oddities.unread.items())}.")
    return notes


ACTION = Action(
    "import_vocabulary",
    "Import a thesaurus, whose concepts can then be labels: EURLEX57K's descriptors (JSON), SKOS (Turtle, RDF/XML or "
    "N-Triples) or a table (TSV), plain or compressed. If it differs from all stored versions, it is stored as a new "
    "version, and removed, new and renamed concepts are listed. Importing the same files again changes nothing.",
    OPTIONS,
    run,
)
