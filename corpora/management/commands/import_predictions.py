"""import_predictions: what a classifier says of a corpus's posts, as a predictor."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from corpora.core.predictions import FIELDS, read_map
from corpora.core.records import RecordError
from corpora.errors import CorpusError
from corpora.predictions import Imported, import_predictions, listed
from corpora.readers import FORMATS, named_columns


class Command(BaseCommand):
    help = (
        "Register a file of predictions as a predictor, by which posts can then be drawn and which can be evaluated. "
        "The file is JSONL, CSV, TSV or Parquet, plain or packed by gzip or zstd, with the columns id, label and, if "
        "you like, score. A TSV file may lack a header; its columns are then in this order, so the id comes first, "
        "unlike in published gold files. It must hold each post of the corpus once; ids that the corpus has not are "
        "left out and counted. A file is taken as a whole or not at all. The same file again changes nothing; once "
        "the corpus has grown, import a file for all of its posts under the same version."
    )

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        # Django's own --version gives way to the predictor's.
        return super().create_parser(prog_name, subcommand, conflict_handler="resolve", **kwargs)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("corpus")
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--name", required=True, help="of the classifier, for example mine")
        parser.add_argument("--version", required=True, help="of the classifier, for example 2")
        parser.add_argument(
            "--map",
            action="append",
            default=[],
            metavar="LABEL=LABELS",
            help="what a label of the file means here: nb=no renames it, zh=zh-CN,zh-TW keeps it as a class that "
            "stands for several",
        )
        parser.add_argument(
            "--column",
            action="append",
            default=[],
            metavar="FIELD=COLUMN",
            help=f"which column of the file is which field ({', '.join(FIELDS)}), for example label=lang",
        )
        parser.add_argument("--format", choices=FORMATS, help="where the file's name does not tell it")

    def handle(self, *args: Any, **options: Any) -> None:
        file: Path = options["file"]
        size = file.stat().st_size if file.is_file() else 0
        try:
            with tqdm(total=size, unit="B", unit_scale=True, desc="import", file=self.stderr, leave=False) as bar:
                imported = import_predictions(
                    options["corpus"],
                    file,
                    name=options["name"],
                    version=options["version"],
                    declared=read_map(options["map"]),
                    columns=named_columns(options["column"], FIELDS),
                    format=options["format"],
                    progress=bar.update,
                )
        except (CorpusError, RecordError) as error:
            raise CommandError(str(error)) from error
        if imported.strangers:
            strangers = listed(imported.first_strangers, imported.strangers, "id")
            self.stderr.write(f"Note: left out, since corpus {options['corpus']} has no such posts: {strangers}.")
        self.stdout.write(_told(options["corpus"], imported))


def _told(corpus: str, imported: Imported) -> str:
    predictions = imported.predictions
    spelled = f"{predictions.name}@{predictions.version}"
    if imported.already:
        return f"Predictor {spelled} of corpus {corpus}: already imported from {predictions.source}."
    return f"Predictor {spelled} of corpus {corpus}: {predictions.rows:,} posts from {predictions.source}."
