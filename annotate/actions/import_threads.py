"""import_threads: messages of threads, as a corpus of pairs of message and reply."""

from pathlib import Path

from annotate.actions.action import (
    CORPUS,
    FORMAT,
    LICENCE,
    LONGEST_LINE,
    MAX_REJECTS,
    SOURCE,
    TEXT_MAY_LEAVE,
    Action,
    Outcome,
    column,
    import_arguments,
)
from annotate.core.option import Option, share
from annotate.goldsets import thread_report
from annotate.reports.tables import many
from annotate.reports.terminal import as_lines
from corpora.threads.messages import LEAST_CERTAINTY, MESSAGE, TURNS
from corpora.threads.thread_import import import_threads, told_of

FIELDS = tuple(dict.fromkeys((*MESSAGE, *TURNS)))
OPTIONS = (
    CORPUS,
    Option("files", Path, required=True, argument=True, several=True, shown="FILE", help="all files of the corpus"),
    LICENCE,
    TEXT_MAY_LEAVE,
    SOURCE,
    Option(
        "least_certainty",
        share,
        LEAST_CERTAINTY,
        most=1,
        shown="SCORE",
        help="a pair is kept if fastText's score of its language is above this",
    ),
    column(FIELDS, "parent_id=reply_to"),
    FORMAT,
    LONGEST_LINE,
    MAX_REJECTS,
)


def run(values, progress) -> Outcome:
    name = values["corpus"]
    given = ("licence", "text_may_leave", "source", "format", "least_certainty", "max_rejects")
    outcome = import_threads(name, values["files"], **import_arguments(values, progress, *given, fields=FIELDS))
    manifest = outcome.manifest
    threads = told_of(name, manifest)
    rows = threads["declared"]
    rejects = sum(source.rejects for source in manifest.sources)
    repeats = sum(source.duplicates for source in manifest.sources)
    files = many(len(manifest.sources), "file")
    said = f"Corpus {name}: {many(manifest.rows, 'pair')} from {files}; {many(repeats, 'message')} came twice"
    listed = f", listed in {', '.join(map(str, outcome.rejects))}" if rejects else ""
    said += f", {many(rejects, 'row')} rejected{listed}."
    if outcome.already:
        said = f"Corpus {name}: nothing is new; it has {many(manifest.rows, 'pair')}."
    tables = [
        as_lines(thread_report.steps_table(thread_report.steps_of(threads))),
        *([as_lines(thread_report.disagreement_table(rows))] if rows else []),
    ]
    data = {
        "corpus": name,
        "pairs": manifest.rows,
        **threads,
        "duplicates": repeats,
        "rejects": rejects,
        "already": outcome.already,
    }
    return Outcome([said, *(line for each in tables for line in ("", each))], thread_report.called_out(rows), data)


ACTION = Action(
    "import_threads",
    "Make a corpus of pairs of message and reply, from messages that name the one they answer (JSONL, CSV, TSV or "
    "Parquet, plain or compressed, with the columns id, parent_id and text, and thread, score, deleted, "
    "language and author where there are any), or from lists of turns (JSONL or Parquet, with the columns thread and "
    "turns). Left out, each counted and listed with the reason: what was deleted, what has a score under 1, what is "
    "empty, and what is in no language that fastText is certain of. The corpus is made as a whole or not at all, of "
    "all its files in one call; the same call again changes nothing.",
    OPTIONS,
    run,
)
