"""The demo: a small task of each kind on real posts and records, and invented annotators who have begun to label."""

import json
import os
import secrets
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.core.management.base import CommandError
from django.utils import timezone

from annotate.actions.commands import call_command
from annotate.controls import qualification
from annotate.core.draws import hash_order
from annotate.kinds import KINDS, Answer
from annotate.models import Annotator, Judgment, Lease, Task, Trial
from annotate.work.accounts import add_annotators
from annotate.work.judgments import judge, skip
from annotate.work.people_file import read_table
from annotate.work.permit import acting
from annotate.work.queue import take
from corpora.models import Corpus
from corpora.system import IN_CHECKOUT

NAME = "demo"
PASSWORD = "demo_password"  # noqa: S105 - the name of a file
# Annotators of posts, and of records.
PEOPLE = ("annotators.csv", "crowd_annotators.csv")
# Part of the corpus only, so that `open_task demo --extend` can add more.
SIZE = 1200
SEED = "2014"
SKIPPERS = ("goran", "zofia", "indra", "tomas")
# Accounts for visitors. The demo answers nothing in their names.
VISITORS = ("anna", "yusuf")
# A second task that asks about one language at a time, in languages that the visitors read.
VERIFY = "demo-precision"
VERIFIED = ["de", "en", "nl", "fr", "ar", "tr", "he"]
VERIFY_SIZE = 30
# Record tasks: name -> kind. Each corpus has the name of its task.
CROWD = {"demo-ads": "ad_relevance", "demo-qa": "qa_match", "demo-pages": "web_ranking"}
CROWD_WORK = 10  # units that each annotator has judged
SLIPS = 0.05  # share of wrong answers
CARELESS = "max"  # mostly wrong after passing the test
CARELESS_WORK, CARELESS_SLIPS = 40, 0.8
LICENCE = "CC-BY-4.0"
SOURCE = "lingua-py, Leipzig Corpora Collection, AfriSenti and CLD2; see fixtures/README.md"


def material() -> Path:
    """Return the folder of the demo's posts, records and people. pyproject.toml lists the fixtures in the package."""
    return settings.BASE_DIR / "fixtures" if IN_CHECKOUT else Path(__file__).parents[1] / "demo"


def people_of(table: str):
    return read_table((material() / table).read_text(encoding="utf-8"))


def usernames(table: str) -> list[str]:
    return [row.username for row in people_of(table)]


def set_up(port: int) -> str:
    """Create what is missing of the demo and return the login instructions. If run again, it keeps all answers."""
    check_place()
    password = shared_password()
    call_command(
        "import_corpus", NAME, str(material() / "demo_posts.jsonl"), licence=LICENCE, text_may_leave=True, source=SOURCE
    )
    call_command("prelabel", NAME)
    accounts(PEOPLE, password)
    if not Task.objects.filter(name=NAME).exists():
        # So small a sample has too few posts in most languages for the default audits and checks.
        few = {"audit_least": 2, "audit_limit": 1.0}
        call_command("open_task", NAME, corpus=NAME, size=SIZE, seed=SEED, **few)
        begin(Task.objects.get(name=NAME), material() / "demo_truth.tsv")
    if not Task.objects.filter(name=VERIFY).exists():
        options = {"design": "precision", "predictor": "majority", "languages": VERIFIED, "size": VERIFY_SIZE}
        call_command("open_task", VERIFY, corpus=NAME, seed=SEED, **options)
    for name, kind in CROWD.items():
        crowd(name, kind, sorted((material() / "records").glob(f"{kind}.*.jsonl")))
    return f"""
Open http://localhost:{port}/ and log in with the password  {password}  as
  anna     who reads German, English and Dutch
  yusuf    who reads Arabic, Amharic, Turkish, Hebrew and French
  ada      who adjudicates what readers skip or doubt (some have begun already)
  oliver   who labels ads, answers and pages in English (anna and yusuf take the test first)
  manager  who sees to languages, people and tasks, and to the annotators that were paused
The people are invented, and there are more of them: the manager sees all."""


def begin(task, truth: Path):
    """Let some readers skip their first items and others answer theirs, so that adjudication and audits have begun."""
    languages = dict(line.split("\t") for line in truth.read_text(encoding="utf-8").splitlines())
    readers = Annotator.objects.filter(adjudicates=False, user__username__in=usernames(PEOPLE[0]))
    readers = readers.exclude(user__username__in=VISITORS)
    skippers = readers.filter(user__username__in=SKIPPERS).order_by("user__username")
    for annotator in skippers:
        work(annotator, task, lambda key, own: None)
    for annotator in readers.exclude(pk__in=skippers):
        work(annotator, task, lambda key, own: languages[key] if languages[key] in own else None)


def work(annotator, task, answer):
    own = set(annotator.languages.values_list("language", flat=True))
    for _ in range(8):
        if lease := take(annotator, task):
            if label := answer(lease.unit.item.key, own):
                judge(annotator, lease.pk, Answer(label))
            else:
                skip(annotator, lease.pk)


def crowd(name, kind, files):
    """Create a task about records that its annotators have begun, one of them carelessly."""
    if Task.objects.filter(name=name).exists():
        return
    fields = " ".join(KINDS[kind].fields)
    paths = [str(path) for path in files]
    call_command("import_corpus", name, *paths, fields=fields, licence="CC0-1.0", source="written for Assay")
    options = {"kind": kind, "gold": files, "gold_column": ["label=truth", "explanation=why"]}
    call_command("open_task", name, corpus=name, seed=SEED, test_items=5, gold_share=0.25, **options)
    task = Task.objects.get(name=name)
    records = [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    truth = {record["id"]: record["truth"] for record in records}
    people = Annotator.objects.filter(user__username__in=usernames(PEOPLE[1])).order_by("pk")
    for annotator in sorted(people, key=lambda person: person.user.username != CARELESS):
        qualify(annotator, task, truth)
        label_records(annotator, task, truth)
    spread(task)


def qualify(annotator, task, truth):
    for language in annotator.languages.filter(language__in=task.languages).values_list("language", flat=True):
        for kind in (Trial.PRACTICE, Trial.TEST):
            with acting(annotator.user, task.name) as permit:
                trial = qualification.begin(permit, language, kind)
                while question := qualification.next_question(trial):
                    qualification.answer(permit, question.pk, truth[question.gold_answer.item.key])


def spread(task):
    """Spread the answers over the last hours. Otherwise they would all have the same time."""
    last = timezone.now()
    for judgment in Judgment.objects.filter(unit__task=task).select_related("lease").order_by("-pk"):
        took = 4 + int(hash_order.lot(SEED, "seconds", str(judgment.pk)), 16) % 120 / 10
        last -= timedelta(seconds=took + 90)
        shown = last - timedelta(seconds=took)
        fields = {"shown_at": shown, "answered_at": last, "active_seconds": took}
        Judgment.objects.filter(pk=judgment.pk).update(**fields)
        Lease.objects.filter(pk=judgment.lease_id).update(opened_at=shown, closed_at=last)


def label_records(annotator, task, truth):
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
    """Raise CommandError if there are real people or texts, since the demo's would mix with them."""
    begun = (settings.DATA_DIR / PASSWORD).exists()
    if not begun and any(model.objects.exists() for model in (User, Task, Corpus)):
        raise CommandError(
            f"The data in {settings.DATA_DIR} are not a demo's: there are accounts, corpora or tasks already, and "
            "invented people would stand among them. Give the demo a folder of its own, for example "
            "`ASSAY_DATA_DIR=demo-data assay serve --demo`; nothing was changed."
        )


def shared_password() -> str:
    """Return the password of all demo accounts, generated for this installation.

    Its file also marks the installation as a demo.
    """
    path = settings.DATA_DIR / PASSWORD
    if not path.exists():
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(9))
    return path.read_text()


def accounts(tables: Iterable[str], password: str) -> None:
    """Create the demo's accounts. Those who set their own password keep it."""
    rows = [row for table in tables for row in people_of(table)]
    add_annotators([row for row in rows if not User.objects.filter(username=row.username).exists()])
    ada, _ = User.objects.get_or_create(username="ada", defaults={"first_name": "Ada", "last_name": "Invented"})
    Annotator.objects.update_or_create(user=ada, defaults={"adjudicates": True})
    User.objects.get_or_create(username="manager", defaults={"is_staff": True, "is_superuser": True})
    names = [row.username for row in rows] + ["ada", "manager"]
    users = User.objects.filter(username__in=names)
    without = [user.pk for user in users if not (user.password and user.has_usable_password())]
    # Hash once for all accounts, since hashing is slow on purpose.
    User.objects.filter(pk__in=without).update(password=make_password(password))
