from argparse import ArgumentTypeError
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Count

from annotate.core import stages
from annotate.kinds import TASK_TYPES
from annotate.models import Task
from annotate.quality import honeypots
from annotate.quality.gold_answers import FIELDS as GOLD_FIELDS
from annotate.quality.gold_answers import GoldAnswerError, read_gold
from annotate.reports import checks
from annotate.work.opening import DESIGNS, Opened, TaskError, extend_task, open_records, open_task, open_verification
from annotate.work.progress import queue_table
from corpora.core.languages import LANGUAGES
from corpora.designs import HISTORY, LEAST_POSTS, PRECISION_SIZE, RECALL_SIZE, SHARE, WINDOW
from corpora.errors import CorpusError
from corpora.models import Corpus
from corpora.predictors import find_predictor
from corpora.readers import named_columns

SIZES = {"recall": RECALL_SIZE, "precision": PRECISION_SIZE}


def codes(text: str) -> list[str]:
    return text.replace(",", " ").split()


def fraction(text: str) -> Fraction:
    """0.1, 10% or 1/10, exactly."""
    try:
        return Fraction(text[:-1]) / 100 if text.endswith("%") else Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ArgumentTypeError(f"{text!r} is no share; write it as 0.1, 10% or 1/10.") from None


def share(text: str) -> float:
    return float(fraction(text))


def days(text: str) -> tuple[datetime, datetime]:
    """A window: from the beginning of one day to that of another, in UTC."""
    try:
        start, end = (datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC) for day in text.split(".."))
    except ValueError:
        raise ArgumentTypeError(
            f"{text!r} is no window; write it as 2014-07-01..2014-08-01, the end left out."
        ) from None
    return start, end


def shown(window: tuple[datetime, datetime]) -> str:
    return "..".join(f"{end:%Y-%m-%d}" for end in window)


# Options that are fields of the task; what is not given keeps its default there.
FIELDS = {
    "title": (str, "what annotators see as the task's name"),
    "labels": (codes, "uniform: codes to offer (default: the 70 of the article)"),
    "guidelines": (Path, "Markdown files, such as ads.fr.md for French (default: those of the task type, in English)"),
    "least_letters": (int, "texts with fewer letters go to people even where the detectors agree (default 20)"),
    "never_agree": (codes, "languages on which agreement counts for nothing, besides those marked so in the admin"),
    "audit_share": (share, "uniform: of the posts on which the detectors agree, how many people check (default 0.02)"),
    "audit_least": (int, "and how many in each language at least (default 30)"),
    "audit_recheck": (share, "of those confirmed by the reader, how many an adjudicator checks (default 0.2)"),
    "audit_limit": (share, "error of agreement that a language may have, upper end of 95%% (default 0.1)"),
    "decoy_share": (share, "recall, precision: decoys for each post to verify (default 0.05)"),
    "overlap_share": (share, "of the posts that one person reads, how many a second one reads too (default 0)"),
    "redundancy": (int, "answers asked for each post (default 1; records: 3)"),
    "on_conflict": (str, "ADJUDICATION or DISCARDED: where units go whose answers give no label (records: DISCARDED)"),
    "rounds": (int, "languages tried before adjudication (default 2)"),
    "skip_limit": (int, "skips that end a round (default 1; recall, precision: 2)"),
    "least_level": (int, "reading level asked for, 0 to 5 (default 4)"),
}
ROUNDED = 0.03  # 0.33 is one of three
RECORD_TYPES = [slug for slug, kind in TASK_TYPES.items() if kind.records and kind.has_pages]
# Those of tasks about records.
OF_RECORDS = {
    "stop_early": (bool, "ask only as many people as can settle a unit, and the others where they do not agree"),
    "extra_answers": (int, "0 to 2: answers asked for where none prevails (default 0)"),
    "aggregation": (str, "majority, or for grades median (default majority)"),
    "test_items": (int, "questions of the qualification test; 0: nobody is tested (default 10)"),
    "pass_mark": (share, "share of them to be answered rightly (default 0.8; web_ranking: 0.6)"),
    "tries": (int, "tests that one person may take (default 2)"),
    "gold_share": (
        share,
        "of what a person is given, how much has a known answer: one of 2, 3 … units (default 0.1)",
    ),
    "pause_below": (
        share,
        "pause who answers less than this share of those rightly (default 0.7; web_ranking: 0.5; 0: nobody)",
    ),
    "pause_confidence": (share, "once it is so certain (default 0.95)"),
    "pause_least": (int, "and they have answered so many (default 8)"),
}

# Options of tasks about posts alone.
OF_POSTS = [
    *("labels", "least_letters", "never_agree", "overlap_share"),
    *("audit_share", "audit_least", "audit_recheck", "audit_limit", "decoy_share"),
]
# Options of the designs: which designs take them, how they are read, what they say.
DESIGN_OPTIONS = {
    "languages": (("recall", "precision", "records"), codes, "codes to draw for, or `all` that there are"),
    "predictor": (("recall", "precision"), str, "langid, cld2, fasttext, majority, or NAME@VERSION that was imported"),
    "history": (("recall",), days, f"days in which authors are chosen (default {shown(HISTORY)})"),
    "window": (
        ("recall", "precision"),
        days,
        f"days from which posts are drawn (default for recall {shown(WINDOW)}, for precision all)",
    ),
    "share": (("recall",), fraction, f"share of an author's posts that must be in the language (default {SHARE})"),
    "least_posts": (("recall",), int, f"posts that an author must have in the history (default {LEAST_POSTS})"),
}


def option(field: str) -> str:
    return f"--{field.replace('_', '-')}"


def guidelines(paths: list[Path]) -> dict[str, str]:
    """Language -> Markdown; the language stands in the file's name, and where none does it is English."""
    texts = {}
    for path in paths:
        code = path.stem.rpartition(".")[2]
        try:
            texts[code if code in LANGUAGES and "." in path.stem else "en"] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"The guidelines cannot be read: {error}") from error
    return texts


def purposes(task: Task):
    return task.gold_answers.order_by("purpose").values_list("purpose").annotate(Count("pk"))


class Command(BaseCommand):
    help = "Draw posts from a corpus and open them as a task; or, with --extend, enlarge a uniform task's draw."

    def add_arguments(self, parser):
        parser.add_argument("name", help="the task's short name: letters, digits and hyphens")
        parser.add_argument("--corpus", help="where to draw from")
        parser.add_argument("--type", choices=RECORD_TYPES, help="what is asked of records; posts are what is left out")
        parser.add_argument(
            "--gold", type=Path, nargs="+", metavar="FILE", help="records: gold answers, by id of the record"
        )
        parser.add_argument(
            "--gold-column",
            action="append",
            default=[],
            metavar="FIELD=COLUMN",
            help=f"which column of those files is which field ({', '.join(GOLD_FIELDS)})",
        )
        parser.add_argument(
            "--design",
            choices=["uniform", *DESIGNS],
            help="uniform (the default): which language is it? recall, precision: is it in this one?",
        )
        parser.add_argument(
            "--size",
            type=int,
            help=f"how many posts to draw: in all, or a language (default for recall {RECALL_SIZE:,}, for precision "
            f"{PRECISION_SIZE:,})",
        )
        parser.add_argument("--seed", help="any word or number; the same seed draws the same posts")
        parser.add_argument("--extend", action="store_true", help="add what the larger --size draws beyond the task's")
        parser.add_argument(
            "--reuse", action="store_true", help="recall, precision: take labels that people gave in other tasks"
        )
        for field, (_, kind, text) in DESIGN_OPTIONS.items():
            parser.add_argument(option(field), type=kind, help=text)
        for field, (kind, text) in (FIELDS | OF_RECORDS).items():
            how = {"action": "store_const", "const": True} if kind is bool else {"type": kind}
            parser.add_argument(option(field), help=text, **how, **({"nargs": "+"} if kind is Path else {}))

    def handle(self, *, name, size, extend, **options):
        fields = {field: options[field] for field in (*FIELDS, *OF_RECORDS) if options[field] is not None}
        design = "records" if options["type"] else options["design"] or "uniform"
        size = size or (None if extend else SIZES.get(design))
        if (size is None and design != "records") or (size is not None and size < 1):
            raise CommandError("--size must be given, and be 1 or more.")
        try:
            if extend:
                opened = self.extend(name, size, options, fields)
            else:
                opened = self.open(name, size, design, options, fields)
        except (TaskError, GoldAnswerError, CorpusError) as error:
            raise CommandError(str(error)) from error
        self.warn(opened.task)
        if design == "uniform":
            self.tell_uniform(opened, size, extend)
        elif design == "records":
            self.tell_records(opened)
        else:
            self.tell_verification(opened)

    def warn(self, task: Task) -> None:
        if lacking := [row for row in queue_table(task) if row.lacking]:
            queues = ", ".join(f"{row.queue} ({row.lacking:,})" for row in lacking)
            tested = "; they take the test first" if task.test_items else ""
            then = tested if TASK_TYPES[task.task_type].records else "; or send the units on with `reroute`"
            self.stderr.write(f"Warning: units in these queues lack readers: {queues}. Invite some{then}.")

    def tell_uniform(self, opened: Opened, size: int, extend: bool) -> None:
        counts, total = opened.stages, opened.stages.total()
        if total < size and not extend:
            self.stderr.write(f"Note: the corpus holds only {total:,} posts, and the task has all of them.")
        audited = opened.task.units.filter(audited=True).count()
        self.stdout.write(
            f"Task {opened.task.name}: {total:,} posts {'added' if extend else 'drawn'}; "
            f"{counts[stages.AGREED]:,} agreed, {counts[stages.QUEUED]:,} queued for readers, "
            f"{counts[stages.COPIED]:,} copies of others; {audited:,} posts audit the agreement."
        )
        if opened.contested:
            self.stdout.write(f"Over the audit's limit. {checks.contested(opened.contested)}")

    def tell_verification(self, opened: Opened) -> None:
        short = [sample for sample in opened.samples if len(sample.rows) < sample.asked]
        if some := ", ".join(f"{sample.language} {len(sample.rows):,}" for sample in short if sample.rows):
            self.stderr.write(f"Note: the design finds fewer than {short[0].asked:,} posts for: {some}.")
        if none := " ".join(sample.language for sample in short if not sample.rows):
            self.stderr.write(f"Note: the design finds no post for: {none}.")
        # Where every label is reused nobody is asked, and nothing needs a decoy.
        queued = opened.task.units.filter(stage=stages.QUEUED).order_by()
        asked = set(queued.values_list("asked", flat=True).distinct())
        if bare := [code for code in opened.task.labels if code in asked and not opened.decoys[code]]:
            self.stderr.write(
                f"Note: no decoys for {' '.join(bare)}: they are posts that people have found not to be in the "
                "language in another task, though they resemble it, and there are none. Label a uniform task first."
            )
        drawn = sum(len(sample.rows) for sample in opened.samples)
        self.stdout.write(
            f"Task {opened.task.name}: {drawn:,} posts drawn for {' '.join(opened.task.labels)}; "
            f"{opened.stages[stages.QUEUED]:,} units queued for readers, {opened.decoys.total():,} of them decoys; "
            f"{opened.stages[stages.COPIED]:,} copies of others, {opened.reused.total():,} labels reused."
        )

    def tell_records(self, opened: Opened) -> None:
        task = opened.task
        drawn = ", ".join(f"{sample.language} {len(sample.rows):,}" for sample in opened.samples)
        golds = ", ".join(f"{count:,} for {purpose}" for purpose, count in purposes(task))
        self.stdout.write(
            f"Task {task.name}: {opened.stages[stages.QUEUED]:,} records queued ({drawn}), each for {task.redundancy} "
            f"people; {opened.stages[stages.COPIED]:,} copies of others; gold answers: {golds or 'none'}."
        )
        self.tell_hidden(task)

    def tell_hidden(self, task: Task) -> None:
        if task.gold_share and abs(task.gold_share * (size := honeypots.block(task)) - 1) > ROUNDED:
            self.stderr.write(f"Note: --gold-share {task.gold_share:g} is {1 / size:.3g}: one of each {size} units.")
        for language, number in honeypots.out_of_reach(task).items():
            self.stderr.write(
                f"Note: who labels everything in {language} meets {number:,} hidden gold answers, and the rule pauses "
                f"from the {task.pause_least}th on: it can pause nobody there. Set --gold-share higher or "
                "--pause-least lower."
            )
        for language, (pool, units) in honeypots.too_few(task).items():
            self.stderr.write(
                f"Warning: the {pool:,} gold answers hidden in {language} run out for who is given more than "
                f"{units:,} units there, and nobody watches them from then on. Add some of the purpose queue, or set "
                "--gold-share lower."
            )

    def open(self, name, size, design, options, fields) -> Opened:
        for needed in ("corpus", "seed", *(("predictor", "languages") if design in DESIGNS else ())):
            if not options[needed]:
                raise CommandError(f"--{needed} is needed to open a {design} task.")
        given = {field for field in DESIGN_OPTIONS if options[field] is not None}
        strange = [option(field) for field in sorted(given) if design not in DESIGN_OPTIONS[field][0]]
        strange += [option(field) for field in (OF_POSTS if design == "records" else OF_RECORDS) if field in fields]
        if design == "records":
            strange += [option(name) for name in ("design", "reuse") if options[name]]
        elif options["gold"]:
            strange.append("--gold")
        if strange:
            of = "tasks about records" if design == "records" else f"the {design} design"
            raise CommandError(f"{', '.join(strange)}: not an option of {of}. Leave it out.")
        corpus = Corpus.objects.filter(name=options["corpus"]).first()
        if corpus is None:
            there = ", ".join(Corpus.objects.values_list("name", flat=True)) or "none"
            raise CommandError(f"There is no corpus {options['corpus']!r}; there is: {there}. See import_corpus.")
        if "guidelines" in fields:
            fields["guidelines"] = guidelines(fields["guidelines"])
        if design == "records":
            return open_records(
                name,
                corpus,
                options["type"],
                None if options["languages"] in (None, ["all"]) else options["languages"],
                size=size,
                seed=options["seed"],
                gold=read_gold(options["gold"] or [], named_columns(options["gold_column"], GOLD_FIELDS)),
                **fields,
            )
        if design == "uniform":
            if options["reuse"]:
                raise CommandError("--reuse: not an option of the uniform design. Leave it out.")
            return open_task(name, corpus, size, options["seed"], **fields)
        if "labels" in fields:
            raise CommandError("--labels goes with the uniform design; here --languages says what is asked about.")
        languages = None if options["languages"] == ["all"] else options["languages"]
        chosen = {field: options[field] for field in given - {"languages", "predictor"}}
        return open_verification(
            name,
            corpus,
            design,
            languages,
            size=size,
            seed=options["seed"],
            options={"predictor": find_predictor(corpus.name, options["predictor"]), **chosen},
            reuse=options["reuse"],
            **fields,
        )

    def extend(self, name, size, options, fields) -> Opened:
        task = Task.objects.filter(name=name).first()
        if task is None:
            raise CommandError(f"There is no task {name!r} to extend.")
        draw = task.draw
        for fixed, was in (("corpus", draw.corpus.name), ("seed", draw.seed), ("design", draw.design)):
            if options[fixed] and options[fixed] != was:
                raise CommandError(f"The task was drawn with --{fixed} {was}; extending it cannot change that.")
        given = [field for field in DESIGN_OPTIONS if options[field] is not None]
        if fields or given or options["reuse"]:
            named = ", ".join(map(option, [*fields, *given, *(["reuse"] if options["reuse"] else [])]))
            raise CommandError(f"{named}: extending keeps what the task was opened with. Leave it out.")
        return extend_task(task, size)
