"""The `status`, `corpora`, `vocabularies`, `predictors`, `draws` and `tasks` actions.

`status` shows the data folder, the queues and the next steps. The other actions print lists.
"""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.db import connection
from django.db.models import Count, Q

from annotate.actions.action import ActionError, Outcome, Progress, Values, action, address_note
from annotate.actions.database import harmful_settings, missing_migrations
from annotate.controls import replenishment
from annotate.controls.check_report import NO_SECOND
from annotate.controls.replenishment import class_progress_table
from annotate.core.option import Option
from annotate.figures import overview_report
from annotate.figures.annotator_statistics import unseen_pauses
from annotate.figures.task_overview import Overview, draw_rows, load_overview
from annotate.models import Annotator, Task
from annotate.reports.table_formats import as_lines, underline
from annotate.reports.tables import Table, many
from annotate.work.accounts import managers
from corpora.models import Corpus
from corpora.storage.inventory import POSTS, corpus_rows, predictor_rows
from corpora.vocabulary.concept_index import vocabulary_rows

SHOWN = 20  # maximum number of queues in the table; --json lists all of them
UNITS = ("B", "kB", "MB", "GB", "TB")


@action(
    "status",
    "Show the status of the installation: data folder, database, people, corpora, tasks, queues, unreviewed pauses "
    "and next steps.",
)
def status_action(values: Values, progress: Progress) -> Outcome:
    status = {"installation": _installation(), "database": _database()}
    lines = [_installation_lines(status)]
    if status["database"]["migrations_missing"]:
        next_step = (
            "The database belongs to an older version of Assay. Back it up, then run `assay serve` to update it."
        )
        return Outcome([*lines, "", next_step], data={**status, "next": [next_step]})
    overview, corpora, pauses, people = load_overview(), corpus_rows(), unseen_pauses(), _people()
    of_classes = {task.name: replenishment.class_progress(task) for task in replenishment.balanced_tasks()}
    next_steps = _next_steps(corpora, overview, people)
    tables = [
        ("Corpora", overview_report.corpora_table(corpora) if corpora else None, ""),
        ("Tasks", overview_report.tasks_table(overview.tasks).without({"next"}) if overview.tasks else None, ""),
        ("Queues", *_queue_table(overview)),
        *((f"Classes of {name}", class_progress_table(rows), "") for name, rows in of_classes.items()),
        ("Unreviewed pauses", overview_report.pauses_table(pauses) if pauses else None, ""),
    ]
    lines.append(_people_line(people))
    for title, table, note in tables:
        if table:
            lines += ["", underline(title, "-"), as_lines(table), *([note] if note else [])]
    if next_steps:
        lines += ["", underline("Next steps", "-"), *next_steps]
    data = {**status, "people": people, "corpora": corpora, "tasks": overview.tasks, "waits": overview.waits}
    return Outcome(lines, data=data | {"classes": of_classes, "pauses": pauses, "next": next_steps})


def _queue_table(overview: Overview) -> tuple[Table | None, str]:
    """Return a table of queues, and a note on how many queues it omits.

    Stalled queues come first, followed by the queues that need the most answers.
    """
    rows = sorted(overview.waits, key=lambda row: (not row["stuck"], -row["missing"]))
    note = f"{many(len(rows) - SHOWN, 'more row')}; --json prints all of them." if len(rows) > SHOWN else ""
    return (overview_report.waits_table(rows[:SHOWN]) if rows else None), note


# --- Data folder and database


def _installation() -> dict[str, Any]:
    folder = Path(settings.DATA_DIR)
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return {"site": settings.SITE, "data_folder": folder, "free_bytes": shutil.disk_usage(existing).free}


def _database() -> dict[str, Any]:
    return {
        "vendor": connection.vendor,
        "name": str(connection.settings_dict["NAME"]),
        "bytes": _size(),
        "migrations_missing": missing_migrations(),
        "harmful_settings": harmful_settings(),
    }


def _size() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_database_size(current_database())"
            if connection.vendor == "postgresql"
            else "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        )
        return int(cursor.fetchone()[0])


def _installation_lines(status: dict[str, Any]) -> str:
    installation, database = status["installation"], status["database"]
    vendor = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}.get(database["vendor"], database["vendor"])
    return "\n".join(
        [
            f"Site         {installation['site']}{address_note()}",
            f"Data folder  {installation['data_folder']} ({_bytes(installation['free_bytes'])} free)",
            f"Database     {vendor}, {database['name']} ({_bytes(database['bytes'])})",
            *(f"             {sentence}" for sentence in database["harmful_settings"]),
        ]
    )


def _bytes(number: float) -> str:
    power = min(len(UNITS) - 1, (len(str(int(number))) - 1) // 3)
    return f"{number / 1000**power:,.0f} {UNITS[power]}"


# --- People


def _people() -> dict[str, int]:
    active = Q(user__is_active=True)
    counts = Annotator.objects.aggregate(
        annotators=Count("pk", filter=active),
        adjudicators=Count("pk", filter=active & Q(adjudicates=True)),
        # An annotator has no password until they use the invitation.
        invited=Count("pk", filter=active & Q(user__password__startswith=UNUSABLE_PASSWORD_PREFIX)),
    )
    return {**counts, "managers": managers().count()}


def _people_line(people: dict[str, int]) -> str:
    invited = f" ({people['invited']:,} without a password)" if people["invited"] else ""
    adjudicators, managers = many(people["adjudicators"], "adjudicator"), many(people["managers"], "manager")
    return f"People       {many(people['annotators'], 'annotator')}{invited}, including {adjudicators}; {managers}"


# --- Next steps


def _next_steps(corpora: list[dict[str, Any]], overview: Overview, people: dict[str, int]) -> list[str]:
    """Return the next steps as sentences, in the order to take them."""
    sentences = []
    if not people["managers"]:
        sentences.append("Create an account for a manager: `assay add_manager NAME`.")
    sentences += _steps_for_corpora(corpora) if corpora else [NOTHING["corpora"]]
    if not people["annotators"]:
        sentences.append("Add annotators: `assay add_annotators FILE`.")
    unseconded = [row["name"] for row in overview.tasks if row["unseconded"]]
    return [
        *sentences,
        *(f"Task {row['name']}: {row['next']}" for row in overview.tasks),
        *([f"{NO_SECOND} Tasks that need one: {' '.join(unseconded)}."] if unseconded else []),
    ]


def _steps_for_corpora(rows: list[dict[str, Any]]) -> list[str]:
    """Return the next steps for corpora that lack votes or draws, as sentences."""
    sentences = []
    for row in rows:
        name = row["corpus"]
        if row["holds"] == POSTS and row["voted"] < row["rows"]:
            sentences.append(f"Corpus {name} has posts without votes: `assay prelabel {name}`.")
        elif not (row["draws"] or row["fault"]):
            sentences.append(
                f"No items have been drawn from corpus {name}: `assay open_task TASK --corpus {name} --seed 1 …`."
            )
    return sentences


# --- Lists

NOTHING = {
    "corpora": "There are no corpora yet. Import a file of posts: `assay import_corpus NAME FILE --licence LICENCE`.",
    "vocabularies": "There are no vocabularies yet. Import one: `assay import_vocabulary NAME FILE`.",
    "predictors": (
        "There are no predictors yet. Create detector votes with `assay prelabel CORPUS`, or import predictions with "
        "`assay import_predictions CORPUS FILE --name NAME --version VERSION`."
    ),
    "draws": "There are no draws yet. Opening a task creates one: `assay open_task NAME --corpus CORPUS --seed 1 …`.",
    "tasks": "There are no tasks yet. Open one: `assay open_task NAME --corpus CORPUS --size 1000 --seed 1`.",
}


def _list(key: str, rows: list[dict[str, Any]]) -> Outcome:
    """Return a table of the rows, or a sentence on how to create the first row if there is none.

    key: a key of NOTHING
    """
    table = getattr(overview_report, f"{key}_table")
    return Outcome([as_lines(table(rows)) if rows else NOTHING[key]], data={key: rows})


@action("corpora", "List the corpora, with their content, votes, licences and draws.")
def corpora_action(values: Values, progress: Progress) -> Outcome:
    outcome = _list("corpora", corpus_rows())
    todo = _steps_for_corpora(outcome.data["corpora"])
    return replace(outcome, said=[*outcome.said, *(["", *todo] if todo else [])])


@action("vocabularies", "List the vocabularies and their versions.")
def vocabularies_action(values: Values, progress: Progress) -> Outcome:
    return _list("vocabularies", vocabulary_rows())


@action(
    "predictors",
    "List the predictors of a corpus: detectors, their majority, and imported predictors.",
    Option("corpus", default="", argument=True, help="the corpus's name; by default all corpora"),
)
def predictors_action(values: Values, progress: Progress) -> Outcome:
    return _list("predictors", predictor_rows(values["corpus"]))


@action(
    "draws",
    "List the draws, with their design, seed, size, selection probability and task.",
    Option("of", default="", argument=True, shown="NAME", help="a task or a corpus; by default all draws"),
)
def draws_action(values: Values, progress: Progress) -> Outcome:
    name = values["of"]
    # If a corpus and a task have the same name, list the draws of the corpus. They include the draws of the task.
    if not name or Corpus.objects.filter(name=name).exists():
        return _list("draws", draw_rows(corpus=name))
    if Task.objects.filter(name=name).exists():
        return _list("draws", draw_rows(task=name))
    raise ActionError(f"There is no task or corpus {name!r}. `assay tasks` and `assay corpora` list their names.")


@action("tasks", "List the tasks, with their progress and next step.")
def tasks_action(values: Values, progress: Progress) -> Outcome:
    return _list("tasks", load_overview().tasks)
