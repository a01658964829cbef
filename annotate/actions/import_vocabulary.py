"""The action `import_vocabulary`: import a thesaurus as a new version of a vocabulary."""

import re
from pathlib import Path

from annotate.actions.action import THE_FILE, Action, Outcome, Progress, Values, size_of
from annotate.core.option import Option, flag
from annotate.reports.tables import are, many
from corpora.core import NAMED, listed
from corpora.vocabulary.vocabulary_import import FORMATS, Imported, import_vocabulary

NOT_KEPT = "This was a dry run: nothing was kept of it."
OPTIONS = (
    Option("name", required=True, argument=True, help="the vocabulary's name, for example eurovoc"),
    Option(
        "files", Path, required=True, argument=True, several=True, shown="FILE", help="the files that together hold it"
    ),
    Option(
        "schemes",
        Path,
        shown="FILE",
        help="a JSON file of schemes and their domains that replaces the schemes in the files",
    ),
    Option(
        "language",
        default="en",
        shown="CODE",
        help="the language in which people see it; concepts without a label in it are counted",
    ),
    Option("dry_run", flag, False, help="only show what would change; nothing is stored"),
    Option("format", choices=FORMATS, help="the format, if the file name does not show it", group=THE_FILE),
)


def run(values: Values, progress: Progress) -> Outcome:
    name, files, schemes = values["name"], values["files"], values["schemes"]
    progress.begin(size_of([*files, *([schemes] if schemes else [])]), "B")
    options = {option: values[option] for option in ("schemes", "format", "language", "dry_run")}
    imported = import_vocabulary(name, files, **options, progress=progress.advance)
    said = [_summary(name, imported, values["dry_run"])]
    if imported.before and not imported.already:
        said += _changes(imported)
    if values["dry_run"] and not imported.already:
        said.append(NOT_KEPT)
    odd, changes = imported.oddities, imported.changes
    data = {
        "vocabulary": name,
        **{each: getattr(imported, each) for each in ("version", "before", "already")},
        "dry_run": values["dry_run"],
        **{each: getattr(imported, each) for each in ("concepts", "labels", "schemes", "languages")},
        **{"gone": changes.gone, "new": changes.new},
        "renamed": {key: list(labels) for key, labels in changes.renamed.items()},
        **{each: getattr(odd, each) for each in ("unlabelled", "shared", "alike", "deprecated", "lengthened")},
        "not_read": odd.unread,
    }
    return Outcome(said, _notes(imported, values["language"]), data)


def _summary(name: str, imported: Imported, dry_run: bool) -> str:
    version = f"version {imported.version}"
    if imported.already:
        newer = f"; the newest is version {imported.before}" if imported.before != imported.version else ""
        return f"Vocabulary {name}: {version} says the same, so nothing was changed{newer}."
    supposed = " as it would be" if dry_run else ""
    return (
        f"Vocabulary {name}, {version}{supposed}: {many(imported.concepts, 'concept')} with "
        f"{many(imported.labels, 'label')} in {', '.join(tag or 'no language' for tag in imported.languages)}, "
        f"{are(imported.schemes, 'scheme or domain', 'schemes and domains')}."
    )


def _changes(imported: Imported) -> list[str]:
    """Return lines about the concepts that were removed, added or renamed since the previous version.

    Each line lists the ids and labels of the first few concepts.
    """
    changes, said = imported.changes, [f"Since version {imported.before}:"]
    listed = {what: [f"{key} {label}" for key, label in getattr(changes, what).items()] for what in ("gone", "new")}
    listed["renamed"] = [f"{key} {old} → {new}" for key, (old, new) in changes.renamed.items()]
    for what, named in listed.items():
        first = f"{', the first' if len(named) > NAMED else ''}: {'; '.join(named[:NAMED])}" if named else ""
        said.append(f"  {len(named):,} {what}{first}")
    return said


def _notes(imported: Imported, language: str) -> list[str]:
    odd, warned = imported.oddities, []
    if odd.unlabelled:
        lacking = listed(odd.unlabelled, len(odd.unlabelled), "concept")
        warned.append(f"Note: without a preferred label in {language}, so that another one is shown: {lacking}.")
    if odd.shared:
        first = [f"“{label}” of {', '.join(keys[:NAMED])}" for label, keys in list(odd.shared.items())[:NAMED]]
        warned.append(
            f"Note: several concepts share, but for capital letters and Unicode forms, {many(len(odd.shared), 'label')}"
            f"{', the first' if len(odd.shared) > NAMED else ''}: {'; '.join(first)}."
        )
    if odd.alike:
        alike = "; ".join(", ".join(keys) for keys in odd.alike[:NAMED])
        warned.append(
            f"Note: ids that differ only in capital letters or Unicode forms, and stay different concepts: {alike}."
        )
    if odd.deprecated:
        named = [f"{key} (use {', '.join(by)})" if by else key for key, by in odd.deprecated.items()]
        deprecated = listed(named, len(named), "concept")
        warned.append(f"Note: deprecated, so kept for documents that have them and not offered: {deprecated}.")
    if odd.lengthened:
        longer = listed(list(odd.lengthened), len(odd.lengthened), "id")
        warned.append(
            f"Note: more of the address is the id where its last part does not tell concepts apart: {longer}."
        )
        if shorter := sorted({re.split("[/#]", key)[-1] for key in odd.lengthened} & imported.changes.gone.keys()):
            warned.append(
                f"Note: in version {imported.before} one of these had a shorter id, which is none now: "
                f"{', '.join(shorter[:NAMED])}. Documents and answers with it keep it."
            )
    if odd.unread:
        warned.append(f"Note: not read: {', '.join(many(count, noun) for noun, count in odd.unread.items())}.")
    return warned


ACTION = Action(
    "import_vocabulary",
    "Import a thesaurus whose concepts can be labels: EURLEX57K's descriptors (JSON), SKOS (Turtle, RDF/XML or "
    "N-Triples) or a table (TSV), plain or compressed. If it differs from the stored versions, it becomes a new "
    "version, and removed, new and renamed concepts are listed; repeating it changes nothing.",
    OPTIONS,
    run,
)
