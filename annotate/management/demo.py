"""The demo: small tasks on real texts and invented records, with invented annotators who have started to label.

fixtures/demo.toml lists the tasks. They are created while the server runs, by the actions that managers use. The login
page lists the finished tasks, and what to try in them.
"""

import json
import os
import secrets
import sys
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.core.management.base import CommandError
from django.db import connections, transaction
from django.utils import timezone

from annotate.actions import job_worker
from annotate.actions.registry import by_name
from annotate.controls import qualification
from annotate.core.draws import hash_order
from annotate.core.stages import ADJUDICATION
from annotate.kinds import Answer
from annotate.kinds.interface_language import negative
from annotate.models import Annotator, Job, Judgment, Lease, Task, Trial, Unit
from annotate.work import job_store
from annotate.work.accounts import add_annotators
from annotate.work.judgments import judge
from annotate.work.moves import labels_as_seen
from annotate.work.people_file import read_table
from annotate.work.permit import acting
from annotate.work.queue import take
from corpora.models import Corpus
from corpora.system import IN_CHECKOUT

PASSWORD = "demo_password"  # noqa: S105 - the name of a file
PEOPLE = ("annotators.csv", "crowd_annotators.csv")
VISITORS = ("anna", "yusuf")  # accounts for visitors to the demo, which have not started to label
LOTS = hash_order.by_seed("2014")
SKIP_SHARE = 0.04  # share of units that annotators skip
SYSTEM_SLIPS = 0.15  # share of the simulated system's answers that are wrong
CARELESS = "max"  # user name of an annotator who passes the tests and then answers mostly wrong
CARELESS_WORK, CARELESS_SLIPS = 40, 0.9  # number of units this annotator judges, and their share of wrong answers


def demo_folder() -> Path:
    """Return the folder with the demo's files: the fixtures, or the copy of them in an installed package."""
    return settings.BASE_DIR / "fixtures" if IN_CHECKOUT else Path(__file__).parents[1] / "demo"


@dataclass(frozen=True)
class DemoTask:
    """A task of the demo. demo.toml explains the fields."""

    name: str
    steps: list[dict[str, Any]]
    truth: dict[str, Any]
    work: int
    annotator: str
    manager: str
    people: Sequence[str] = ()
    slips: float = 0.05
    report: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def true_answers(self) -> dict[str, str]:
        """Mapping from item id to true answer. An answer may have several labels, sorted and separated by spaces."""
        lines = [line for path in self.truth["files"] for line in Path(path).read_text(encoding="utf-8").splitlines()]
        if self.truth["files"][0].endswith(".tsv"):
            return dict(line.split("\t") for line in lines)
        answers = {row[self.truth["id"]]: row[self.truth["label"]] for row in map(json.loads, lines)}
        return {key: answer if isinstance(answer, str) else " ".join(sorted(answer)) for key, answer in answers.items()}

    @cached_property
    def keys(self) -> list[str]:
        units = Task.objects.get(name=self.name).units
        return list(units.order_by("item__key").values_list("item__key", flat=True).distinct())

    def simulate_answer(self, name: str, key: str, slips: float) -> str:
        """Return the answer of a simulated annotator or system to an item.

        slips: share of wrong answers
        """
        truth = self.true_answers[key]
        if not hash_order.is_drawn(slips, lots=LOTS, purpose="slip", key=f"{name} {key}"):
            return truth
        others = {self.true_answers[other] for other in self.keys} - {truth}
        return hash_order.draw_sample(others, 1, lots=LOTS, purpose=f"{name} {key}")[0]


def read_config() -> tuple[dict[str, Any], list[DemoTask]]:
    """Return the content of demo.toml with absolute paths, and its tasks."""
    text = (demo_folder() / "demo.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text.replace('"./', f"{json.dumps(str(demo_folder()))[:-1]}/"))
    return tables, [DemoTask(**table) for table in tables["tasks"]]


# --- Before the server starts


def prepare(port: int) -> str:
    """Create the accounts, and return instructions for logging in. An existing demo is kept."""
    check_folder()
    create_accounts(password := shared_password())
    write_welcome([])
    lines = [f"  {name:8} {description}\n" for name, description in read_config()[0]["accounts"].items()]
    return f"""
Open http://localhost:{port}/ and log in with the password  {password}  as
{"".join(lines)}\
All people are invented. The tasks appear within a minute, and the page lists what to try in them."""


def check_folder() -> None:
    """Raise CommandError if the installation has real accounts or texts, which must not be mixed with the demo's."""
    is_demo = (settings.DATA_DIR / PASSWORD).exists()
    if not is_demo and any(model.objects.exists() for model in (User, Task, Corpus)):
        raise CommandError(
            f"{settings.DATA_DIR} already contains accounts, corpora or tasks that do not belong to a demo. Use a "
            "separate folder for the demo, for example `ASSAY_DATA_DIR=demo-data assay serve --demo`. Nothing was "
            "changed."
        )


def shared_password() -> str:
    """Return the password of all accounts, generated on the first call. Its file marks the data folder as a demo's."""
    path = settings.DATA_DIR / PASSWORD
    if not path.exists():
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(9))
    return path.read_text()


def create_accounts(password: str) -> None:
    """Create the demo's accounts. Passwords that users have set themselves are kept."""
    rows = [row for table in PEOPLE for row in read_table(demo_folder() / table)]
    add_annotators([row for row in rows if not User.objects.filter(username=row.username).exists()])
    ada, _ = User.objects.get_or_create(username="ada", defaults={"first_name": "Ada", "last_name": "Invented"})
    Annotator.objects.update_or_create(user=ada, defaults={"adjudicates": True})
    User.objects.get_or_create(username="manager", defaults={"is_staff": True, "is_superuser": True})
    users = User.objects.filter(username__in=[row.username for row in rows] + ["ada", "manager"])
    new = [user.pk for user in users if not (user.password and user.has_usable_password())]
    # Hash the password once for all accounts, because hashing is slow on purpose.
    User.objects.filter(pk__in=new).update(password=make_password(password))


# --- While the server runs


def fork_build() -> None:
    """Create the tasks in a child process. If this process exits, the child stops after the current task."""
    server = os.getpid()
    connections.close_all()
    if not os.fork():
        build(lambda: os.getppid() == server)
        sys.exit()


def build(is_wanted: Callable[[], bool] = lambda: True) -> None:
    """Create missing tasks, export their gold sets and evaluate on them. Stop once `is_wanted` returns False."""
    tasks = read_config()[1]
    for number, demo in enumerate(tasks):
        if not is_wanted():
            return
        write_welcome(tasks[:number])
        create(demo)
    exports = [find_or_start("export_gold", task=demo.name) for demo in tasks]
    run_jobs()
    sets = [{"gold": [str(job_store.folder(job) / "out")], "unfinished": "yes"} for job in exports]
    reports = [
        find_or_start("evaluate", **gold, **report_options(demo)) for demo, gold in zip(tasks, sets, strict=True)
    ]
    run_jobs()
    write_welcome(tasks, exports, reports)


def create(demo: DemoTask) -> None:
    """Create a task, and have its annotators judge some units."""
    if not Task.objects.filter(name=demo.name).exists():
        for step in demo.steps:
            by_name()[step["action"]].perform({name: value for name, value in step.items() if name != "action"})
    task = Task.objects.get(name=demo.name)
    annotators = Annotator.objects.exclude(user__username__in=VISITORS).filter(adjudicates=False)
    if demo.people:
        annotators = annotators.filter(user__username__in=demo.people)
    # The careless annotator comes first, while there are enough units.
    for annotator in sorted(annotators, key=lambda person: (person.user.username != CARELESS, person.pk)):
        if not (annotator.judgments.filter(unit__task=task) or annotator.trials.filter(task=task)):
            work(annotator, demo, task)


@transaction.atomic  # a single commit is faster than one per answer
def work(annotator: Annotator, demo: DemoTask, task: Task) -> None:
    """Have an annotator take the tests and judge some units."""
    if task.test_items:
        qualify(annotator, demo, task)
    is_careless = annotator.user.username == CARELESS
    number, slips = (CARELESS_WORK, CARELESS_SLIPS) if is_careless else (demo.work, demo.slips)
    for _ in range(number):
        if not (lease := take(annotator, task)):
            break
        judge(annotator, lease.pk, answer_of(annotator, demo, lease.unit, slips))
    spread_times(annotator, task)


def qualify(annotator: Annotator, demo: DemoTask, task: Task) -> None:
    for language in annotator.languages.filter(language__in=task.languages).values_list("language", flat=True):
        for kind in (Trial.PRACTICE, Trial.TEST):
            with acting(annotator.user, task.name) as permit:
                trial = qualification.begin(permit, language, kind)
                while question := qualification.next_question(trial):
                    qualification.answer(permit, question.pk, demo.true_answers[question.gold_answer.item.key])


def answer_of(annotator: Annotator, demo: DemoTask, unit: Unit, slips: float) -> Answer | None:
    """Return an annotator's simulated answer, or None to skip the unit."""
    name, key, task = annotator.user.username, unit.item.key, unit.task
    label = demo.simulate_answer(name, key, slips)
    if unit.asked:
        label = unit.asked if label == unit.asked else negative(unit.asked)
    elif task.kind.noun == "post" and not annotator.languages.filter(language=label).exists():
        return None
    is_possible = unit.asked or not task.labels or label in task.labels
    if not is_possible or hash_order.is_drawn(SKIP_SHARE, lots=LOTS, purpose="skip", key=f"{name} {key}"):
        return None
    return Answer(labels_as_seen(annotator, [(unit, label)])[0], is_sure=True)


def spread_times(annotator: Annotator, task: Task) -> None:
    """Spread an annotator's answers over the last few hours, because all were created within seconds."""
    answered = timezone.now() - timedelta(hours=4 * hash_order.uniform_number(LOTS, task.name, annotator.user.username))
    for judgment in annotator.judgments.filter(unit__task=task).order_by("-pk"):
        seconds = task.kind.seconds * (0.4 + hash_order.uniform_number(LOTS, "seconds", str(judgment.pk)))
        answered -= timedelta(seconds=seconds + 20)
        opened = answered - timedelta(seconds=seconds)
        Judgment.objects.filter(pk=judgment.pk).update(shown_at=opened, answered_at=answered, active_seconds=seconds)
        Lease.objects.filter(judgment=judgment).update(opened_at=opened, closed_at=answered)


def find_or_start(action: str, **options: Any) -> Job:
    """Return the job with these options. If there is none, start it on behalf of the manager."""
    existing = Job.objects.filter(action=action, given=options).first()
    return existing or job_worker.start(action, options, User.objects.get(username="manager"))


def run_jobs() -> None:
    """Run jobs until none is left. The server's worker may run some of them."""
    while job_store.has_open_jobs():
        if claimed := job_store.claim():
            with claimed[1]:
                job_worker.run(claimed[0].pk)
        job_store.record_outcomes()
        time.sleep(0.1)


def report_options(demo: DemoTask) -> dict[str, Any]:
    """Write a simulated system's predictions. Return the options of a report on it, or on the task's own system."""
    path = settings.DATA_DIR / "demo" / demo.name / "simulated.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = (f"{key}\t{demo.simulate_answer('system', key, SYSTEM_SLIPS)}\n" for key in demo.keys)
    path.write_text("id\tlabel\n" + "".join(rows), encoding="utf-8")
    return {"predictions": str(path)} | demo.report


def write_welcome(tasks: Sequence[DemoTask], exports: Sequence[Job] = (), reports: Sequence[Job] = ()) -> None:
    """Write the login page's text about the finished tasks.

    exports, reports: for each task, the jobs to link to: the export of its gold set and the evaluation on it
    """
    tables, rest = read_config()[0], len(read_config()[1]) - len(tasks)
    lines = [tables["welcome"], *([f"\n*Tasks still being created: {rest}. Reload the page.*"] if rest else ())]
    for desk in tables["desks"] if tasks else ():
        lines.append(f"\n## {desk['heading']}\n")
        for demo, export, report in zip_longest(tasks, exports, reports):
            task = Task.objects.get(name=demo.name)
            names = {"title": task.title, "cases": task.units.filter(stage=ADJUDICATION).count(), **vars(demo)}
            links = desk["links"].format(export=export.pk, report=report.pk) if export else ""
            lines.append(f"- {desk['line'].format(**names)}{links}")
    (settings.DATA_DIR / "welcome.md").write_text("\n".join(lines), encoding="utf-8")
