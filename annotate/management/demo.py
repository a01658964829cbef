"""The demo: small tasks on real posts and invented records, with invented annotators who have started to label."""

import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.core.management.base import CommandError
from django.db import transaction
from django.utils import timezone

from annotate.actions.commands import call_command
from annotate.controls import qualification
from annotate.core.draws import hash_order
from annotate.kinds import KINDS, Answer
from annotate.models import Annotator, Judgment, Lease, Task, Trial
from annotate.work.accounts import add_annotators
from annotate.work.judgments import judge, skip
from annotate.work.people_file import Row, read_table
from annotate.work.permit import acting
from annotate.work.queue import take
from corpora.models import Corpus
from corpora.system import IN_CHECKOUT

NAME = "demo"
PASSWORD = "demo_password"  # noqa: S105 - the name of a file
# Tables of the annotators who label posts, and of those who label records.
PEOPLE = ("annotators.csv", "crowd_annotators.csv")
# Number of posts to draw. The corpus has more, so that `extend_task demo` can add some.
SIZE = 1200
SEED = "2014"
SKIPPERS = ("goran", "zofia", "indra", "tomas")
# Accounts for visitors to the demo, who have not started to label.
VISITORS = ("anna", "yusuf")
# A second task about posts, which asks whether a post is in a certain language. The visitors read these languages.
VERIFY = "demo-precision"
VERIFIED = ["de", "en", "nl", "fr", "ar", "tr", "he"]
VERIFY_SIZE = 30
# Name of a task about records -> its kind. The corpus of the task has the same name.
CROWD = {"demo-ads": "ad_relevance", "demo-qa": "qa_match", "demo-pages": "web_ranking"}
CROWD_WORK = 10  # number of units that each annotator judges
SLIPS = 0.05  # share of wrong answers
CARELESS = "max"  # user name of an annotator who passes the test and then answers mostly wrong
CARELESS_WORK, CARELESS_SLIPS = 40, 0.8  # number of units that this annotator judges, and their share of wrong answers
LICENCE = "CC-BY-4.0"
SOURCE = "lingua-py, Leipzig Corpora Collection, AfriSenti and CLD2; see fixtures/README.md"


def material() -> Path:
    """Return the folder with the posts, records and annotators of the demo.

    In a checkout, they are in the fixtures folder. pyproject.toml lists the fixtures that are copied into the package.
    """
    return settings.BASE_DIR / "fixtures" if IN_CHECKOUT else Path(__file__).parents[1] / "demo"


def people_of(table: str) -> list[Row]:
    return read_table((material() / table).read_text(encoding="utf-8"))


def usernames(table: str) -> list[str]:
    return [row.username for row in people_of(table)]


def set_up(port: int) -> str:
    """Create the parts of the demo that do not exist yet, and return instructions for logging in.

    If the demo already exists, all answers are kept.
    """
    check_place()
    password = shared_password()
    call_command(
        "import_corpus", NAME, str(material() / "demo_posts.jsonl"), licence=LICENCE, text_may_leave=True, source=SOURCE
    )
    call_command("prelabel", NAME)
    accounts(PEOPLE, password)
    if not Task.objects.filter(name=NAME).exists():
        # In such a small sample, most languages have too few posts for the default audits and checks.
        audit_options = {"audit_least": 2, "audit_limit": 1.0}
        call_command("open_task", NAME, corpus=NAME, size=SIZE, seed=SEED, **audit_options)
        begin(Task.objects.get(name=NAME), material() / "demo_truth.tsv")
    if not Task.objects.filter(name=VERIFY).exists():
        options = {"design": "precision", "predictor": "majority", "languages": VERIFIED, "size": VERIFY_SIZE}
        call_command("open_task", VERIFY, corpus=NAME, seed=SEED, **options)
    for name, kind in CROWD.items():
        crowd(name, kind, sorted((material() / "records").glob(f"{kind}.*.jsonl")))
    return f"""
Open http://localhost:{port}/ and log in with the password  {password}  as
  anna     annotator who reads German, English and Dutch
  yusuf    annotator who reads Arabic, Amharic, Turkish, Hebrew and French
  ada      adjudicator of units that annotators skipped or disagreed on
  oliver   annotator who labels ads, answers and pages in English (anna and yusuf must pass a test first)
  manager  manager of languages, people, tasks and paused annotators
All people are invented. The manager sees all of them."""


@transaction.atomic  # one wait for the disk rather than one for each answer
def begin(task: Task, truth: Path) -> None:
    """Let some annotators skip their first posts, and others answer them, so that adjudication and audits begin.

    truth: file with the language of each post
    """
    languages = dict(line.split("\t") for line in truth.read_text(encoding="utf-8").splitlines())
    readers = Annotator.objects.filter(adjudicates=False, user__username__in=usernames(PEOPLE[0]))
    readers = readers.exclude(user__username__in=VISITORS)
    skippers = readers.filter(user__username__in=SKIPPERS).order_by("user__username")
    for annotator in skippers:
        work(annotator, task, lambda key, languages_read: None)
    for annotator in readers.exclude(pk__in=skippers):
        work(annotator, task, lambda key, languages_read: languages[key] if languages[key] in languages_read else None)


def work(annotator: Annotator, task: Task, answer: Callable[[str, set[str]], str | None]) -> None:
    languages = set(annotator.languages.values_list("language", flat=True))
    for _ in range(8):
        if lease := take(annotator, task):
            if label := answer(lease.unit.item.key, languages):
                judge(annotator, lease.pk, Answer(label))
            else:
                skip(annotator, lease.pk)


def crowd(name: str, kind: str, files: list[Path]) -> None:
    """Create a task about records, and let its annotators judge some of them."""
    if Task.objects.filter(name=name).exists():
        return
    fields = " ".join(KINDS[kind].fields)
    paths = [str(path) for path in files]
    call_command("import_corpus", name, *paths, fields=fields, licence="CC0-1.0", source="written for Assay")
    options = {"kind": kind, "gold": files, "gold_column": ["label=truth", "explanation=why"]}
    call_command("open_task", name, corpus=name, seed=SEED, test_items=5, gold_share=0.25, **options)
    answer_records(Task.objects.get(name=name), files)


@transaction.atomic
def answer_records(task: Task, files: list[Path]) -> None:
    """Let annotators take the test and judge some records. One of them works carelessly."""
    records = [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    truth = {record["id"]: record["truth"] for record in records}
    people = Annotator.objects.filter(user__username__in=usernames(PEOPLE[1])).order_by("pk")
    for annotator in sorted(people, key=lambda person: person.user.username != CARELESS):
        qualify(annotator, task, truth)
        label_records(annotator, task, truth)
    spread(task)


def qualify(annotator: Annotator, task: Task, truth: Mapping[str, str]) -> None:
    for language in annotator.languages.filter(language__in=task.languages).values_list("language", flat=True):
        for kind in (Trial.PRACTICE, Trial.TEST):
            with acting(annotator.user, task.name) as permit:
                trial = qualification.begin(permit, language, kind)
                while question := qualification.next_question(trial):
                    qualification.answer(permit, question.pk, truth[question.gold_answer.item.key])


def spread(task: Task) -> None:
    """Spread the times of the answers over the last hours, because all answers were given within seconds."""
    answered = timezone.now()
    for judgment in Judgment.objects.filter(unit__task=task).select_related("lease").order_by("-pk"):
        seconds = 4 + int(hash_order.lot(SEED, "seconds", str(judgment.pk)), 16) % 120 / 10
        answered -= timedelta(seconds=seconds + 90)
        opened = answered - timedelta(seconds=seconds)
        fields = {"shown_at": opened, "answered_at": answered, "active_seconds": seconds}
        Judgment.objects.filter(pk=judgment.pk).update(**fields)
        assert judgment.lease_id
        Lease.objects.filter(pk=judgment.lease_id).update(opened_at=opened, closed_at=answered)


def label_records(annotator: Annotator, task: Task, truth: Mapping[str, str]) -> None:
    careless = annotator.user.username == CARELESS
    for _ in range(CARELESS_WORK if careless else CROWD_WORK):
        if not (lease := take(annotator, task)):
            break
        item, key, lots = lease.unit.item, f"{annotator} {lease.unit.item.key}", hash_order.by_seed(SEED)
        slips = hash_order.hit(CARELESS_SLIPS if careless else SLIPS, lots=lots, purpose="slip", key=key)
        wrong = [label for label in task.labels if label != truth[item.key]]
        label = hash_order.drawn(wrong, 1, lots=lots, purpose=key)[0] if slips else truth[item.key]
        judge(annotator, lease.pk, Answer(label))


def check_place() -> None:
    """Raise CommandError if the installation has real people or texts, which must not be mixed with invented ones."""
    begun = (settings.DATA_DIR / PASSWORD).exists()
    if not begun and any(model.objects.exists() for model in (User, Task, Corpus)):
        raise CommandError(
            f"{settings.DATA_DIR} already contains accounts, corpora or tasks that do not belong to a demo. Use a "
            "separate folder for the demo, for example `ASSAY_DATA_DIR=demo-data assay serve --demo`. Nothing was "
            "changed."
        )


def shared_password() -> str:
    """Return the password of all accounts of the demo. It is generated when it is needed for the first time.

    The file that contains the password also marks the installation as a demo.
    """
    path = settings.DATA_DIR / PASSWORD
    if not path.exists():
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(9))
    return path.read_text()


def accounts(tables: Iterable[str], password: str) -> None:
    """Create the accounts of the demo. Passwords that users have set themselves are kept."""
    rows = [row for table in tables for row in people_of(table)]
    add_annotators([row for row in rows if not User.objects.filter(username=row.username).exists()])
    ada, _ = User.objects.get_or_create(username="ada", defaults={"first_name": "Ada", "last_name": "Invented"})
    Annotator.objects.update_or_create(user=ada, defaults={"adjudicates": True})
    User.objects.get_or_create(username="manager", defaults={"is_staff": True, "is_superuser": True})
    names = [row.username for row in rows] + ["ada", "manager"]
    users = User.objects.filter(username__in=names)
    without = [user.pk for user in users if not (user.password and user.has_usable_password())]
    # Hash the password once for all accounts, because hashing is slow on purpose.
    User.objects.filter(pk__in=without).update(password=make_password(password))
