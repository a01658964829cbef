"""import_judgments: judgments that were made elsewhere, into a task."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from annotate.actions.import_judgments import Imported, import_judgments
from annotate.actions.judgment_files import COLUMNS, JudgmentFileError
from annotate.core import stages
from corpora.errors import CorpusError
from corpora.readers import FORMATS, named_columns


class Command(BaseCommand):
    help = (
        "Import judgments that were made elsewhere: JSONL, CSV, TSV (without quoting) or Parquet with the columns task "
        "(the item's id), worker and label, and the item's language if there is one. Of a task that there is, the "
        "items get them; else a closed task is made of the items in the file. A worker's second answer on an item is "
        "rejected, or kept for analysis only. Taken as a whole or not at all; run again, it adds nothing."
    )

    def add_arguments(self, parser):
        parser.add_argument("task")
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument(
            "--labels", default="", help='of a new task, grades best first, as in "0 1"; by default those in the file'
        )
        parser.add_argument(
            "--column",
            action="append",
            default=[],
            metavar="FIELD=COLUMN",
            help=f"which column of the file is which field ({', '.join(COLUMNS)}), for example task=item",
        )
        parser.add_argument(
            "--keep-repeats", action="store_true", help="keep a worker's further answers on an item, for analysis only"
        )
        parser.add_argument("--format", choices=FORMATS, help="where the file's name does not tell it")

    def handle(self, *, task, file, labels, column, keep_repeats, format, **options):
        size = file.stat().st_size if file.is_file() else 0
        bar = tqdm(total=size, unit="B", unit_scale=True, desc="import", file=self.stderr, leave=False)
        try:
            with bar:
                imported = import_judgments(
                    task,
                    file,
                    labels=labels.split(),
                    columns=named_columns(column, COLUMNS),
                    keep_repeats=keep_repeats,
                    format=format,
                    progress=bar.update,
                )
        except (JudgmentFileError, CorpusError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(_told(imported))


def _told(imported: Imported) -> str:
    rejected = f"{imported.already:,} rows were there already, {len(imported.rejects):,} were rejected"
    listed = f", listed in {imported.rejects_file}" if imported.rejects_file else ""
    kept = f"{imported.repeats:,} repeats kept for analysis"
    if not imported.judgments:
        return f"Task {imported.task.name}: no new judgment, {kept}; {rejected}{listed}."
    went = {
        "labelled": imported.stages[stages.LABELLED],
        "left out": imported.stages[stages.DISCARDED],
        "to be adjudicated": imported.stages[stages.ADJUDICATION],
    }
    decided = ", ".join(f"{count:,} {what}" for what, count in went.items() if count) or "none of them decided"
    return (
        f"Task {imported.task.name}: {imported.judgments:,} judgments of {imported.annotators:,} annotators on "
        f"{imported.units:,} units imported ({decided}), {kept}; {rejected}{listed}."
    )
