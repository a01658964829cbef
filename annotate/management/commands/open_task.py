from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from annotate.core import stages
from annotate.models import Task
from annotate.opening import TaskError, extend_task, open_task
from annotate.progress import queue_table
from annotate.task_types import TASK_TYPES
from corpora.errors import CorpusError
from corpora.models import Corpus

# Options that are fields of the task; what is not given keeps its default there.
FIELDS = {
    "title": (str, "what annotators see as the task's name"),
    "labels": ("codes", "codes to offer (default: the 70 of the article)"),
    "guidelines": (Path, "a Markdown file (default: the article's instructions)"),
    "least_letters": (int, "texts with fewer letters go to people even where the detectors agree (default 20)"),
    "never_agree": ("codes", "languages on which agreement counts for nothing, besides those marked so in the admin"),
    "redundancy": (int, "answers asked for each post (default 1)"),
    "rounds": (int, "languages tried before adjudication (default 2)"),
    "skip_limit": (int, "skips that end a round (default 1)"),
    "least_level": (int, "reading level asked for, 0 to 5 (default 4)"),
}


def codes(text: str) -> list[str]:
    return text.replace(",", " ").split()


def option(field: str) -> str:
    return f"--{field.replace('_', '-')}"


class Command(BaseCommand):
    help = "Draw posts from a corpus and open them as a task; or, with --extend, enlarge a task's draw."

    def add_arguments(self, parser):
        parser.add_argument("name", help="the task's short name: letters, digits and hyphens")
        parser.add_argument("--corpus", help="where to draw from")
        parser.add_argument("--size", type=int, required=True, help="how many posts to draw, in all")
        parser.add_argument("--seed", help="any word or number; the same seed draws the same posts")
        parser.add_argument("--extend", action="store_true", help="add what the larger --size draws beyond the task's")
        parser.add_argument("--type", choices=sorted(TASK_TYPES), help="the kind of question (default: language)")
        for field, (kind, text) in FIELDS.items():
            parser.add_argument(option(field), type=codes if kind == "codes" else kind, help=text)

    def handle(self, *, name, size, extend, **options):
        if size < 1:
            raise CommandError("--size must be 1 or more.")
        fields = {field: options[field] for field in FIELDS if options[field] is not None}
        try:
            task, counts = (self.extend if extend else self.open)(name, size, options, fields)
        except (TaskError, CorpusError) as error:
            raise CommandError(str(error)) from error
        if lacking := [row for row in queue_table(task) if row.lacking]:
            queues = ", ".join(f"{row.queue} ({row.lacking:,})" for row in lacking)
            self.stderr.write(
                f"Warning: units in these queues lack readers: {queues}. "
                "Invite readers, or send the units on with `reroute`."
            )
        total = sum(counts.values())
        if total < size and not extend:
            self.stderr.write(f"Note: the corpus holds only {total:,} posts, and the task has all of them.")
        self.stdout.write(
            f"Task {name}: {total:,} posts {'added' if extend else 'drawn'}; {counts[stages.AGREED]:,} agreed, "
            f"{counts[stages.QUEUED]:,} queued for readers, {counts[stages.COPIED]:,} copies of others."
        )

    def open(self, name, size, options, fields):
        for needed in ("corpus", "seed"):
            if not options[needed]:
                raise CommandError(f"--{needed} is needed to open a task.")
        corpus = Corpus.objects.filter(name=options["corpus"]).first()
        if corpus is None:
            there = ", ".join(Corpus.objects.values_list("name", flat=True)) or "none"
            raise CommandError(f"There is no corpus {options['corpus']!r}; there is: {there}. See import_corpus.")
        if "guidelines" in fields:
            try:
                fields["guidelines"] = fields["guidelines"].read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise CommandError(f"The guidelines cannot be read: {error}") from error
        if options["type"]:
            fields["task_type"] = options["type"]
        return open_task(name, corpus, size, options["seed"], **fields)

    def extend(self, name, size, options, fields):
        task = Task.objects.select_related("draw__corpus").filter(name=name).first()
        if task is None:
            raise CommandError(f"There is no task {name!r} to extend.")
        for fixed, was in (("corpus", task.draw.corpus.name), ("seed", task.draw.seed), ("type", task.task_type)):
            if options[fixed] and options[fixed] != was:
                raise CommandError(f"The task was drawn with --{fixed} {was}; extending it cannot change that.")
        if fields:
            named = ", ".join(map(option, fields))
            raise CommandError(f"{named}: extending keeps what the task was opened with. Leave it out.")
        return task, extend_task(task, size)
