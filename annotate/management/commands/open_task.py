from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from annotate.core import stages
from annotate.models import Task
from annotate.opening import LEAST_LETTERS, Settings, TaskError, extend_task, open_task
from annotate.progress import queue_table
from annotate.task_types import TASK_TYPES
from corpora.errors import CorpusError
from corpora.models import Corpus


def codes(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


class Command(BaseCommand):
    help = "Draw posts from a corpus and open them as a task; or, with --extend, enlarge a task's draw."

    def add_arguments(self, parser):
        parser.add_argument("name", help="the task's short name: letters, digits and hyphens")
        parser.add_argument("--corpus", help="where to draw from")
        parser.add_argument("--size", type=int, required=True, help="how many posts to draw, in all")
        parser.add_argument("--seed", help="any word or number; the same seed draws the same posts")
        parser.add_argument("--extend", action="store_true", help="add what the larger --size draws beyond the task's")
        parser.add_argument("--type", choices=sorted(TASK_TYPES), default="language", help="the kind of question")
        parser.add_argument("--title", default="", help="what annotators see as the task's name")
        parser.add_argument("--labels", type=codes, default=(), help="codes to offer (default: the 70 of the article)")
        parser.add_argument("--guidelines", type=Path, help="a Markdown file (default: the article's instructions)")
        parser.add_argument(
            "--least-letters",
            type=int,
            default=LEAST_LETTERS,
            help="texts with fewer letters go to people even where the detectors agree (default %(default)s)",
        )
        parser.add_argument(
            "--never-agree",
            type=codes,
            default=(),
            help="languages on which agreement counts for nothing, besides those marked so in the admin",
        )
        parser.add_argument("--redundancy", type=int, default=1, help="answers asked for each post (default 1)")
        parser.add_argument("--rounds", type=int, default=2, help="languages tried before adjudication (default 2)")
        parser.add_argument("--skip-limit", type=int, default=1, help="skips that end a round (default 1)")
        parser.add_argument("--least-level", type=int, default=4, help="reading level asked for, 0 to 5 (default 4)")

    def handle(self, *, name, size, extend, **options):
        if size < 1:
            raise CommandError("--size must be 1 or more.")
        try:
            task, counts = self.extend(name, size, options) if extend else self.open(name, size, options)
        except (TaskError, CorpusError) as error:
            raise CommandError(str(error)) from error
        for row in queue_table(task):
            if row.stuck:
                self.stderr.write(
                    f"Warning: {row.waiting:,} units wait in {row.queue} and nobody reads it. "
                    "Invite readers, or send them on with `reroute`."
                )
        total = sum(counts.values())
        if total < size and not extend:
            self.stderr.write(f"Note: the corpus holds only {total:,} posts, and the task has all of them.")
        self.stdout.write(
            f"Task {name}: {total:,} posts {'added' if extend else 'drawn'}; {counts[stages.AGREED]:,} agreed, "
            f"{counts[stages.QUEUED]:,} queued for readers, {counts[stages.COPIED]:,} copies of those."
        )

    def open(self, name, size, options):
        for option in ("corpus", "seed"):
            if not options[option]:
                raise CommandError(f"--{option} is needed to open a task.")
        for option, least, most in (
            ("redundancy", 1, 99),
            ("rounds", 1, 99),
            ("skip_limit", 1, 99),
            ("least_level", 0, 5),
            ("least_letters", 0, 10**6),
        ):
            if not least <= options[option] <= most:
                raise CommandError(f"--{option.replace('_', '-')} must be between {least} and {most:,}.")
        if len(options["title"]) > 200:
            raise CommandError(f"--title has {len(options['title'])} characters; 200 are the most.")
        if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii() or len(name) > 64:
            raise CommandError(f"{name!r} is no name for a task: use letters, digits and hyphens, at most 64.")
        corpus = Corpus.objects.filter(name=options["corpus"]).first()
        if corpus is None:
            there = ", ".join(Corpus.objects.values_list("name", flat=True)) or "none"
            raise CommandError(f"There is no corpus {options['corpus']!r}; there is: {there}. See import_corpus.")
        guidelines = ""
        if options["guidelines"]:
            try:
                guidelines = options["guidelines"].read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise CommandError(f"The guidelines cannot be read: {error}") from error
        settings = Settings(
            task_type=options["type"],
            guidelines=guidelines,
            **{
                key: options[key]
                for key in (
                    "title",
                    "labels",
                    "least_letters",
                    "never_agree",
                    "redundancy",
                    "rounds",
                    "skip_limit",
                    "least_level",
                )
            },
        )
        return open_task(name, corpus, size, options["seed"], settings)

    def extend(self, name, size, options):
        task = Task.objects.select_related("draw__corpus").filter(name=name).first()
        if task is None:
            raise CommandError(f"There is no task {name!r} to extend.")
        for option, fixed in (("corpus", task.draw.corpus.name), ("seed", task.draw.seed)):
            if options[option] and options[option] != fixed:
                raise CommandError(f"The task was drawn with --{option} {fixed}; extending it cannot change that.")
        return task, extend_task(task, size)
