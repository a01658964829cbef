from django.core.management.base import BaseCommand, CommandError

from annotate.core.refusals import Refusal
from annotate.models import Task
from annotate.pages import presenting
from annotate.work import progress
from annotate.work.routing import reroute


class Command(BaseCommand):
    help = "Send on the units of queues that have too few readers left."

    def add_arguments(self, parser):
        parser.add_argument("task")

    def handle(self, *, task, **options):
        found = Task.objects.filter(name=task).first()
        if found is None:
            raise CommandError(f"There is no task {task!r}.")
        try:
            self.stdout.write(presenting.rerouted(reroute(found)))
        except Refusal as refusal:
            raise CommandError(str(refusal)) from refusal
        if stuck := presenting.undecidable(progress.undecidable(found)):
            self.stderr.write(stuck)
