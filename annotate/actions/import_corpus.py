"""import_corpus: files of posts, or of records of several fields, into a corpus."""

from collections.abc import Iterable
from pathlib import Path

from annotate.actions.action import Action, Outcome
from annotate.actions.options import CORPUS, FORMAT, LANGUAGES, column, size_of
from annotate.core.option import Option, flag, whole_number, words
from corpora.added_languages import add_languages
from corpora.core.licences import FREE_LICENCES
from corpora.core.records import columns_of
from corpora.import_corpus import Outcome as Imported
from corpora.import_corpus import import_files
from corpora.manifest import read_manifest
from corpora.readers import MAX_LINE, named_columns

OPTIONS = (
    CORPUS,
    Option("files", Path, required=True, argument=True, several=True, shown="FILE"),
    Option("licence", required=True, help="of the texts, for example CC-BY-4.0"),
    Option(
        "text_may_leave",
        flag,
        help=f"exports may hold the text (so by default under {', '.join(FREE_LICENCES)} of any version)",
        opposite=("text-stays", "exports hold ids only; any other licence needs one of these two at the first import"),
    ),
    Option("source", default="", help="where the posts come from, for the data card"),
    Option(
        "fields",
        words,
        default=(),
        help='the fields of a record in the order in which people see them, for example "query title description"; a '
        "file needs a column for each, an id and a language",
    ),
    Option("language", default="", shown="CODE", help="of all records in the files, where no column says it"),
    column((*columns_of(()), "or of records language and their own"), "text=body"),
    LANGUAGES,
    FORMAT,
    Option("longest_line", whole_number, MAX_LINE, least=1, shown="BYTES", help="longer lines are rejected"),
)


def run(values, progress) -> Outcome:
    if values["languages"]:
        add_languages(values["languages"])
    progress.begin(size_of(values["files"]), "B")
    name, fields = values["corpus"], tuple(values["fields"])
    known = read_manifest(name)
    columns = columns_of(fields or (known.fields if known else ()))
    told = {option: values[option] for option in ("licence", "text_may_leave", "source", "format", "language")}
    outcomes = import_files(
        name,
        values["files"],
        **told,
        columns=named_columns(values["column"], columns),
        max_line=values["longest_line"],
        progress=progress.advance,
        fields=fields,
    )
    done = []
    for outcome in outcomes:
        done.append(outcome)
        # At once: it stays, even where the next file is refused.
        progress.say(_told(outcome))
    return _summed(name, done, "record" if "language" in columns else "post")


def _told(outcome: Imported) -> str:
    source = outcome.source
    if outcome.already:
        return f"{source.name}: already imported."
    told = f"{source.name}: {source.accepted:,} accepted, {_counted(source.duplicates, 'duplicate')}"
    listed = f", listed in {outcome.rejects}" if source.rejects else ""
    return f"{told}, {source.rejects:,} rejected{listed}."


def _summed(corpus: str, outcomes: Iterable[Imported], noun: str) -> Outcome:
    new = [outcome.source for outcome in outcomes if not outcome.already]
    counts = {count: sum(getattr(source, count) for source in new) for count in ("accepted", "duplicates", "rejects")}
    told = (
        f"Corpus {corpus}: {_counted(counts['accepted'], noun)} from {_counted(len(new), 'new file')}; "
        f"{_counted(counts['duplicates'], 'duplicate')} dropped, {_counted(counts['rejects'], 'row')} rejected."
    )
    return Outcome([told], data=counts)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


ACTION = Action(
    "import_corpus",
    "Import files of posts into a corpus: JSONL, CSV, TSV (without quoting) or Parquet, plain or packed by gzip or "
    "zstd, of any size. Each needs an id and a text; author, posted_at and url are taken where there are any. Mentions "
    "are masked, authors hashed. With --fields they are records of several fields, each in the language that it says; "
    "these are kept as they are. A file is taken as a whole or not at all; run again after a crash, or to add files.",
    OPTIONS,
    run,
)
