import os
from argparse import SUPPRESS
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from annotate.actions import commands, job_worker
from annotate.actions.database import prepare


class Command(commands.Command):
    help = (
        "Run the jobs that managers start in the browser, one after another, until Ctrl-C. `assay serve` already does "
        "this. Use this command, once or several times, if you run another server."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--until-done", action="store_true", help="stop when no jobs are waiting")
        parser.add_argument("--job", type=int, help=SUPPRESS)

    def handle(self, **options: Any) -> None:
        if options["job"] is not None:
            job_worker.do(options["job"])
        elif options["until_done"]:
            job_worker.work_off()
        else:
            prepare()
            self.stdout.write(f"Running the jobs in {settings.DATA_DIR}. Press Ctrl-C to stop.")
            self.stdout.flush()
            program, *words = job_worker.watch("alone")
            os.execve(program, [program, *words], job_worker.environment())  # noqa: S606 - becomes the watcher
