from django.core.management.base import BaseCommand, CommandError

from annotate.models import Task
from annotate.quality import audits
from annotate.quality import decoys as known
from annotate.reports import checks
from annotate.reports.writing import text_table


class Command(BaseCommand):
    help = "Show what the audit of a task's agreement found, or how often readers said Yes to decoys."

    def add_arguments(self, parser):
        parser.add_argument("task")
        parser.add_argument(
            "--contest", action="store_true", help="have people label the languages that are over the task's limit"
        )

    def handle(self, *, task, contest, **options):
        found = Task.objects.filter(name=task).first()
        if found is None:
            there = ", ".join(Task.objects.values_list("name", flat=True)) or "none"
            raise CommandError(f"There is no task {task!r}; there is: {there}.")
        uniform = found.draw.design == "uniform"
        if contest and not uniform:
            raise CommandError(f"{found.name} asks about one language at a time: there is no agreement to contest.")
        if contest:
            self.stdout.write(checks.contested(audits.contest_all(found)))
        elif uniform:
            self.agreement(found, audits.report(found))
        else:
            self.decoys(found, known.report(found))

    def agreement(self, task: Task, audit: dict) -> None:
        words = checks.audit_words(audit)
        if not words:
            self.stdout.write(f"Task {task.name}: no post on which the detectors agree was chosen for people to check.")
            return
        self.stdout.write("\n".join([text_table(checks.audit_table(audit)), "", *words]))
        limit = checks.whole_percent(audit["limit"])
        if over := checks.over_limit(audit):
            self.stdout.write(
                f"Over the limit of {limit}: {' '.join(over)}; `audit {task.name} --contest` has people label them."
            )
        else:
            self.stdout.write(
                f"No language of which posts are left unread, and whose audit is done, is over the limit of {limit}."
            )

    def decoys(self, task: Task, decoys: dict) -> None:
        words = checks.decoy_words(decoys)
        if not words:
            self.stdout.write(f"Task {task.name}: no decoys are hidden in it.")
            return
        self.stdout.write("\n".join([text_table(checks.decoy_table(decoys)), "", *words]))
