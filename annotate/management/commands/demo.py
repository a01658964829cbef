import json
import os
import secrets
import socket
import sys
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from annotate.core import lottery
from annotate.kinds import KINDS, Answer
from annotate.models import Annotator, Judgment, Lease, Task, Trial
from annotate.quality import qualification
from annotate.work.accounts import add_annotators
from annotate.work.judging import judge, skip
from annotate.work.people_file import read_table
from annotate.work.permit import acting
from annotate.work.queue import take

NAME = "demo"
# Who reads posts, and who else labels records.
PEOPLE = ("annotators.csv", "crowd_annotators.csv")
# Not the whole corpus, so that `open_task demo --extend` has something to add.
SIZE = 1200
SEED = "2014"
SKIPPERS = ("goran", "zofia", "indra", "tomas")
# They are for whoever tries the demo: nothing is done in their names.
VISITORS = ("anna", "yusuf")
# A second task, of the kind that asks about one language at a time, in languages of the two.
VERIFY = "demo-precision"
VERIFIED = ["de", "en", "nl", "fr", "ar", "tr", "he"]
VERIFY_SIZE = 30
# Tasks about records: name -> kind of question. The corpus has the task's name.
CROWD = {"demo-ads": "ad_relevance", "demo-qa": "qa_match", "demo-pages": "web_ranking"}
CROWD_WORK = 10  # units that each of their people has judged
SLIPS = 0.05  # of the answers
CARELESS = "max"  # is wrong in most, once the test is passed
CARELESS_WORK, CARELESS_SLIPS = 40, 0.8
LICENCE = "CC-BY-4.0"
SOURCE = "lingua-py, Leipzig Corpora Collection, AfriSenti and CLD2; see fixtures/README.md"


def people_of(table: str):
    return read_table((settings.BASE_DIR / "fixtures" / table).read_text(encoding="utf-8"))


def usernames(table: str) -> list[str]:
    return [row.username for row in people_of(table)]


class Command(BaseCommand):
    help = "Set up and serve a small task on real posts. Run again, it keeps what people have labelled."

    def add_arguments(self, parser):
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--no-serve", action="store_true", help="set up only")

    def handle(self, *, port, no_serve, **options):
        if not no_serve:
            self.check_port(port)
        fixtures = settings.BASE_DIR / "fixtures"
        call_command("migrate", verbosity=0)
        call_command(
            "import_corpus",
            NAME,
            str(fixtures / "demo_posts.jsonl"),
            licence=LICENCE,
            text_may_leave=True,
            source=SOURCE,
        )
        call_command("prelabel", NAME)
        password = self.accounts(PEOPLE)
        if not Task.objects.filter(name=NAME).exists():
            # So small a sample has too few posts of most languages to audit them as one would.
            call_command("open_task", NAME, corpus=NAME, size=SIZE, seed=SEED, audit_least=2, audit_limit=1.0)
            self.begin(Task.objects.get(name=NAME), fixtures / "demo_truth.tsv")
        if not Task.objects.filter(name=VERIFY).exists():
            options = {"design": "precision", "predictor": "majority", "languages": VERIFIED, "size": VERIFY_SIZE}
            call_command("open_task", VERIFY, corpus=NAME, seed=SEED, **options)
        for name, kind in CROWD.items():
            self.crowd(name, kind, sorted((fixtures / "records").glob(f"{kind}.*.jsonl")))
        self.stdout.write(
            f"""
Open http://localhost:{port}/ and log in with the password  {password}  as
  anna     who reads German, English and Dutch (or any user name of fixtures/annotators.csv)
  yusuf    who reads Arabic, Amharic, Turkish, Hebrew and French
  ada      who adjudicates what readers skip or doubt (some have begun already)
  oliver   who labels ads, answers and pages in English (anna and yusuf take the test first)
  manager  who sees to languages, people and tasks, and to who was paused
The people are invented. What they label stays in {settings.DATA_DIR}.
"""
        )
        if not no_serve:
            self.stdout.write("Serving; Ctrl-C ends it.")
            self.stdout.flush()
            command = ["gunicorn", "deploy.wsgi", f"--bind=127.0.0.1:{port}", "--threads=8", "--log-level=warning"]
            os.chdir(settings.BASE_DIR)
            os.execv(sys.executable, [sys.executable, "-m", *command])  # noqa: S606 - becomes the server

    def begin(self, task, truth: Path):
        """Have some readers skip what comes first, and others answer it, so that adjudication and audit have begun."""
        languages = dict(line.split("\t") for line in truth.read_text(encoding="utf-8").splitlines())
        readers = Annotator.objects.filter(adjudicates=False, user__username__in=usernames(PEOPLE[0]))
        readers = readers.exclude(user__username__in=VISITORS)
        skippers = readers.filter(user__username__in=SKIPPERS).order_by("user__username")
        for annotator in skippers:
            self.work(annotator, task, lambda key, own: None)
        for annotator in readers.exclude(pk__in=skippers):
            self.work(annotator, task, lambda key, own: languages[key] if languages[key] in own else None)

    def work(self, annotator, task, answer):
        own = set(annotator.languages.values_list("language", flat=True))
        for _ in range(8):
            if lease := take(annotator, task):
                if label := answer(lease.unit.item.key, own):
                    judge(annotator, lease.pk, Answer(label))
                else:
                    skip(annotator, lease.pk)

    def crowd(self, name, kind, files):
        """A task about records, on which its people have begun: one of them carelessly."""
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
            self.qualify(annotator, task, truth)
            self.label(annotator, task, truth)
        self.spread(task)

    def qualify(self, annotator, task, truth):
        for language in annotator.languages.filter(language__in=task.languages).values_list("language", flat=True):
            for kind in (Trial.PRACTICE, Trial.TEST):
                with acting(annotator, task.name) as permit:
                    trial = qualification.begin(permit, language, kind)
                    while question := qualification.next_question(trial):
                        qualification.answer(permit, question.pk, truth[question.gold_answer.item.key])

    def spread(self, task):
        """As if they had worked over the last hours: else all that a manager sees is one moment."""
        last = timezone.now()
        for judgment in Judgment.objects.filter(unit__task=task).select_related("lease").order_by("-pk"):
            took = 4 + int(lottery.lot(SEED, "seconds", str(judgment.pk)), 16) % 120 / 10
            last -= timedelta(seconds=took + 90)
            shown = last - timedelta(seconds=took)
            fields = {"shown_at": shown, "answered_at": last, "active_seconds": took}
            Judgment.objects.filter(pk=judgment.pk).update(**fields)
            Lease.objects.filter(pk=judgment.lease_id).update(opened_at=shown, closed_at=last)

    def label(self, annotator, task, truth):
        careless = annotator.user.username == CARELESS
        for _ in range(CARELESS_WORK if careless else CROWD_WORK):
            if not (lease := take(annotator, task)):
                break
            item, kept = lease.unit.item, {"seed": SEED, "key": f"{annotator} {lease.unit.item.key}"}
            slips = lottery.hit(CARELESS_SLIPS if careless else SLIPS, purpose="slip", **kept)
            wrong = [label for label in task.labels if label != truth[item.key]]
            label = lottery.drawn(wrong, 1, seed=SEED, purpose=kept["key"])[0] if slips else truth[item.key]
            judge(annotator, lease.pk, Answer(label))

    def check_port(self, port):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except (OSError, OverflowError) as error:
                raise CommandError(
                    f"Port {port} cannot be used ({error}). Choose another: manage.py demo --port 8001."
                ) from error

    def accounts(self, tables: Iterable[str]) -> str:
        """Make the demo's people, all with one password that is made for this installation; returns it."""
        path = settings.DATA_DIR / "demo_password"
        if not path.exists():
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_hex(4))
        password = path.read_text()
        rows = [row for table in tables for row in people_of(table)]
        add_annotators([row for row in rows if not User.objects.filter(username=row.username).exists()])
        ada, _ = User.objects.get_or_create(username="ada", defaults={"first_name": "Ada", "last_name": "Invented"})
        Annotator.objects.update_or_create(user=ada, defaults={"adjudicates": True})
        User.objects.get_or_create(username="manager", defaults={"is_staff": True, "is_superuser": True})
        names = [row.username for row in rows] + ["ada", "manager"]
        for user in User.objects.filter(username__in=names):
            if not user.password or not user.has_usable_password():
                user.set_password(password)
                user.save(update_fields=["password"])
        return password
