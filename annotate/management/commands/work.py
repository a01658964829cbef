import os
from typing import Any

from django.conf import settings

from annotate.actions import commands, job_worker
from annotate.actions.database import prepare
from annotate.core.option import Option, flag, whole_number
from annotate.work import webhook_sender


class Command(commands.Command):
    help = (
        "Run the jobs that managers start in the browser, one after another, until Ctrl-C. `assay serve` already does "
        "this. If you run a different server, use this command to start one or more workers."
    )

    options = (
        Option("until_done", flag, False, help="stop when no jobs are waiting"),
        Option("job", whole_number),  # this and the next option are used by `assay serve` itself
        Option("send", flag, False),
    )

    def handle(self, **inputs: Any) -> None:
        options = self.values(inputs)
        if options["job"] is not None:
            job_worker.run(options["job"])
        elif options["send"]:
            webhook_sender.run()
        elif options["until_done"]:
            job_worker.run_all()
        else:
            prepare()
            self.stdout.write(f"Running the jobs in {settings.DATA_DIR}. Press Ctrl-C to stop.")
            self.stdout.flush()
            program, *words = job_worker.watcher_command("alone")
            os.execve(program, [program, *words], job_worker.environment())  # noqa: S606 - becomes the watcher
