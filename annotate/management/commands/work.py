import os
from argparse import SUPPRESS
from pathlib import Path

from django.conf import settings

from annotate.actions import commands, working
from annotate.actions.database import prepare
from corpora.system import FOLDER


class Command(commands.Command):
    help = (
        "Do what managers begin in the browser, one job after another, until Ctrl-C. `assay serve` does that too; run "
        "this beside another server, once or more often."
    )

    def add_arguments(self, parser):
        parser.add_argument("--until-done", action="store_true", help="end once no job waits")
        parser.add_argument("--job", type=int, help=SUPPRESS)

    def handle(self, **options):
        if options["job"] is not None:
            working.do(options["job"])
        elif options["until_done"]:
            working.work_off()
        else:
            prepare()
            (Path(settings.DATA_DIR) / "jobs").mkdir(FOLDER, parents=True, exist_ok=True)
            self.stdout.write(f"Doing the jobs of {settings.DATA_DIR}; Ctrl-C ends it.")
            self.stdout.flush()
            program, *words = working.watch("alone")
            os.execve(program, [program, *words], working.environment())  # noqa: S606 - becomes the one who watches
