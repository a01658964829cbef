"""import_corpus: files of posts, or of records of several fields, into a corpus."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from corpora.core.records import columns_of
from corpora.errors import CorpusError
from corpora.ingest import FREE_LICENCES, MAX_LINE, Outcome, import_files
from corpora.readers import FORMATS, named_columns
from corpora.store import read_manifest


class Command(BaseCommand):
    help = (
        "Import files of posts into a corpus: JSONL, CSV, TSV (without quoting) or Parquet, plain or packed by "
        "gzip or zstd, of any size. Each needs an id and a text; author, posted_at and url are taken where there "
        "are any. Mentions are masked, authors hashed. With --fields they are records of several fields, each in "
        "the language that it says; these are kept as they are. A file is taken as a whole or not at all; run again "
        "after a crash, or to add files."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("corpus", help="the corpus's name; it is made if there is none")
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument("--licence", required=True, help="of the texts, for example CC-BY-4.0")
        may_leave = parser.add_mutually_exclusive_group()
        may_leave.add_argument(
            "--text-may-leave",
            action="store_true",
            default=None,
            dest="text_may_leave",
            help=f"exports may hold the text (so by default under {', '.join(FREE_LICENCES)} of any version)",
        )
        may_leave.add_argument(
            "--text-stays",
            action="store_false",
            default=None,
            dest="text_may_leave",
            help="exports hold ids only; any other licence needs one of these two at the first import",
        )
        parser.add_argument("--source", default="", help="where the posts come from, for the data card")
        parser.add_argument(
            "--fields",
            default="",
            help='the fields of a record in the order in which people see them, for example "query title '
            'description"; a file needs a column for each, an id and a language',
        )
        parser.add_argument(
            "--language", default="", metavar="CODE", help="of all records in the files, where no column says it"
        )
        parser.add_argument(
            "--column",
            action="append",
            default=[],
            metavar="FIELD=COLUMN",
            help=f"which column of the files is which field ({', '.join(columns_of(()))}, or for records language and "
            "their own), for example text=body",
        )
        parser.add_argument("--format", choices=FORMATS, help="where the files' names do not tell it")
        parser.add_argument("--longest-line", type=int, default=MAX_LINE, metavar="BYTES", help="default: %(default)s")

    def handle(self, *args: Any, **options: Any) -> None:
        files: list[Path] = options["files"]
        fields = tuple(options["fields"].split())
        size = sum(file.stat().st_size for file in files if file.is_file())
        bar = tqdm(total=size, unit="B", unit_scale=True, desc="import", file=self.stderr, leave=False)
        try:
            with bar:
                known = read_manifest(options["corpus"])
                columns = columns_of(fields or (known.fields if known else ()))
                outcomes = import_files(
                    options["corpus"],
                    files,
                    licence=options["licence"],
                    text_may_leave=options["text_may_leave"],
                    source=options["source"],
                    columns=named_columns(options["column"], columns),
                    format=options["format"],
                    max_line=options["longest_line"],
                    progress=bar.update,
                    fields=fields,
                    language=options["language"],
                )
                done = []
                for outcome in outcomes:
                    done.append(outcome)
                    bar.clear()
                    self.stdout.write(_told(outcome))
        except CorpusError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(_summed(options["corpus"], done, "record" if "language" in columns else "post"))


def _told(outcome: Outcome) -> str:
    source = outcome.source
    if outcome.already:
        return f"{source.name}: already imported."
    told = f"{source.name}: {source.accepted:,} accepted, {_counted(source.duplicates, 'duplicate')}"
    listed = f", listed in {outcome.rejects}" if source.rejects else ""
    return f"{told}, {source.rejects:,} rejected{listed}."


def _summed(corpus: str, outcomes: list[Outcome], noun: str) -> str:
    new = [outcome.source for outcome in outcomes if not outcome.already]
    accepted, duplicates, rejects = (
        sum(getattr(source, count) for source in new) for count in ("accepted", "duplicates", "rejects")
    )
    return (
        f"Corpus {corpus}: {_counted(accepted, noun)} from {_counted(len(new), 'new file')}; "
        f"{_counted(duplicates, 'duplicate')} dropped, {_counted(rejects, 'row')} rejected."
    )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
