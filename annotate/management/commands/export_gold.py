from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from annotate import presenting, progress
from annotate.gold_files import ExportError, export
from annotate.models import Task
from corpora.errors import CorpusError


class Command(BaseCommand):
    help = "Write a task's gold set: TSV, JSONL, Parquet, manifest and dataset card."

    def add_arguments(self, parser):
        parser.add_argument("task")
        parser.add_argument("--out", type=Path, required=True, help="folder to write; an earlier export is replaced")

    def handle(self, *, task, out, **options):
        found = Task.objects.filter(name=task).first()
        if found is None:
            there = ", ".join(Task.objects.values_list("name", flat=True)) or "none"
            raise CommandError(f"There is no task {task!r}; there is: {there}.")
        try:
            manifest = export(found, out)
        except (ExportError, CorpusError) as error:
            raise CommandError(str(error)) from error
        counts = manifest["counts"]
        if not manifest["finished"]:
            self.stderr.write(
                f"Unfinished: {counts['unfinished']:,} posts still wait for people. The files are named accordingly."
            )
        if stuck := presenting.undecidable(progress.undecidable(found)):
            self.stderr.write(stuck)
        if not manifest["corpus"]["text_may_leave"]:
            self.stderr.write("The licence keeps the text here: the files hold ids and labels only.")
        labels = len(counts["by_label"])
        self.stdout.write(f"{counts['labelled']:,} of {counts['posts']:,} posts written to {out}, in {labels} labels.")
