"""agreement: how far the annotators of a task agree, and what Dawid and Skene's model makes of their answers."""

import json
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from annotate.actions.judgment_files import GOLD_COLUMNS, JudgmentFileError, read_truth
from annotate.models import Annotator, Task
from annotate.quality import agreement
from annotate.reports import agreement_tables
from annotate.reports.writing import text_table
from corpora.errors import CorpusError
from corpora.readers import named_columns

SHOWN = 20


class Command(BaseCommand):
    help = (
        "Show how far the annotators of a task agree: Krippendorff's alpha, observed agreement, each annotator against "
        "the rest, by language and in all, with 95%% intervals; and, with true labels, how often the majority and "
        "Dawid and Skene's model are right."
    )

    def add_arguments(self, parser):
        parser.add_argument("task")
        parser.add_argument("--gold", type=Path, metavar="FILE", help="true labels: columns task and label")
        parser.add_argument(
            "--column",
            action="append",
            default=[],
            metavar="FIELD=COLUMN",
            help=f"which column of the true labels is which field ({', '.join(GOLD_COLUMNS)})",
        )
        parser.add_argument(
            "--repeats", action="store_true", help="count the repeats that import_judgments --keep-repeats has kept"
        )
        parser.add_argument(
            "--ordinal", action="store_true", help="the labels are grades in order, though the task type says nothing"
        )
        parser.add_argument("--json", action="store_true", help="everything, as JSON")

    def handle(self, *, task, gold, column, repeats, ordinal, **options):
        found = Task.objects.filter(name=task).first()
        if found is None:
            there = ", ".join(Task.objects.values_list("name", flat=True)) or "none"
            raise CommandError(f"There is no task {task!r}; there is: {there}.")
        try:
            truth = read_truth(gold, named_columns(column, GOLD_COLUMNS)) if gold else None
            report = agreement.report(found, gold=truth, repeats=repeats, ordinal=ordinal)
        except (JudgmentFileError, CorpusError) as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(report, indent=2, ensure_ascii=False))
        elif not report["all"]["judgments"]:
            self.stdout.write(
                f"Task {found.name}: no answer counts yet; of posts, only those that two people have read."
            )
        else:
            self.stdout.write("\n".join(_written(report)))


def _written(report: dict) -> list[str]:
    whole = report["all"]
    tables = [agreement_tables.agreement_table(report)]
    if whole["gold"]:
        tables.append(agreement_tables.accuracy_table(report))
    names = {one.pk: str(one) for one in Annotator.objects.select_related("user")}
    tables.append(agreement_tables.rest_table(whole, names, SHOWN))
    if whole["dawid_skene"]["differs"]:
        tables.append(agreement_tables.difference_table(whole, SHOWN))
    longest = max(len(whole["against_rest"]), len(whole["dawid_skene"]["differs"]))
    cut = [f"The first {SHOWN} of each; --json has all.", ""] if longest > SHOWN else []
    return [*(f"{text_table(table)}\n" for table in tables), *cut, *agreement_tables.words(report)]
