from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from annotate.goldsets.writing import SPLITS, ExportError, export, kind_of
from annotate.models import Task
from annotate.pages import presenting
from annotate.work import progress
from corpora.errors import CorpusError


class Command(BaseCommand):
    help = "Write a task's gold set: TSV or XGLUE's files, JSONL, Parquet, manifest and dataset card."

    def add_arguments(self, parser):
        parser.add_argument("task")
        parser.add_argument("--out", type=Path, required=True, help="folder to write; an earlier export is replaced")
        parser.add_argument(
            "--splits",
            default="",
            metavar="SHARES",
            help=f"of records, {SPLITS} by default; train is in English only, and elsewhere dev and test share all",
        )
        parser.add_argument("--seed", default="", help="of the splits; by default that of the draw")

    def handle(self, *, task, out, splits, seed, **options):
        found = Task.objects.filter(name=task).first()
        if found is None:
            there = ", ".join(Task.objects.values_list("name", flat=True)) or "none"
            raise CommandError(f"There is no task {task!r}; there is: {there}.")
        try:
            manifest = export(found, out, splits=splits, seed=seed)
        except (ExportError, CorpusError) as error:
            raise CommandError(str(error)) from error
        counts, noun = manifest["counts"], kind_of(found).noun
        if not manifest["finished"]:
            self.stderr.write(
                f"Unfinished: {counts['unfinished']:,} {noun} still wait for people. The files are named accordingly."
            )
        if stuck := presenting.undecidable(progress.undecidable(found)):
            self.stderr.write(stuck)
        if not manifest["corpus"]["text_may_leave"]:
            self.stderr.write("The licence keeps the text here: the files hold ids and labels only.")
        for sentence in manifest.get("splits", {}).get("off", {}).values():
            self.stderr.write(f"Note: {sentence}")
        if refused := (manifest.get("published") or {}).get("refused"):
            self.stderr.write(refused)
        labels = len(counts["by_label"])
        self.stdout.write(f"{counts['labelled']:,} of {counts[noun]:,} {noun} written to {out}, in {labels} labels.")
