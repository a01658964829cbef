"""The actions `status`, `corpora`, `vocabularies`, `predictors`, `draws` and `tasks`.

`status` shows the data folder, the queues and the next steps; the others are lists.
"""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Count, Q

from annotate.actions.action import ActionError, Outcome, Progress, Values, action, assumed
from annotate.actions.database import harmful_settings
from annotate.controls import replenishment
from annotate.controls.checks import NO_SECOND
from annotate.controls.replenishment import standing_table
from annotate.core.option import Option
from annotate.figures import overview_report
from annotate.figures.annotator_statistics import unseen_pauses
from annotate.figures.task_overview import Standing, draws_there, standing
from annotate.models import Annotator, Task
from annotate.reports.table_formats import as_lines, underlined
from annotate.reports.tables import Table, many
from annotate.work.accounts import managers
from corpora.models import Corpus
from corpora.storage.inventory import POSTS, corpora_there, predictors_there
from corpora.vocabulary.concept_index import vocabularies_there

SHOWN = 20  # maximum number of queues in the table; --json lists all of them
UNITS = ("B", "kB", "MB", "GB", "TB")


@action(
    "status",
    "Show the status: the installation, its data folder and database, people, corpora and tasks, what waits for whom, "
    "pauses that nobody has looked at, and what to do next.",
)
def status_action(values: Values, progress: Progress) -> Outcome:
    there = {"installation": _installation(), "database": _database()}
    said = [_place(there)]
    if there["database"]["migrations_missing"]:
        next_step = "The database is older than Assay. Make a copy of it; then `assay serve` brings it up to date."
        return Outcome([*said, "", next_step], data={**there, "next": [next_step]})
    stands, found, pauses, people = standing(), corpora_there(), unseen_pauses(), _people()
    of_classes = {task.name: replenishment.standing(task) for task in replenishment.of_classes()}
    todo = _todo(found, stands, people)
    tables = [
        ("Corpora", overview_report.corpora_table(found) if found else None, ""),
        ("Tasks", overview_report.tasks_table(stands.tasks).without({"next"}) if stands.tasks else None, ""),
        ("What waits for whom", *_waits(stands)),
        *((f"Classes of {name}", standing_table(rows), "") for name, rows in of_classes.items()),
        ("Pauses that nobody has looked at", overview_report.pauses_table(pauses) if pauses else None, ""),
    ]
    said.append(_of_people(people))
    for title, table, rest in tables:
        if table:
            said += ["", underlined(title, "-"), as_lines(table), *([rest] if rest else [])]
    if todo:
        said += ["", underlined("What to do next", "-"), *todo]
    data = {**there, "people": people, "corpora": found, "tasks": stands.tasks, "waits": stands.waits}
    return Outcome(said, data=data | {"classes": of_classes, "pauses": pauses, "next": todo})


def _waits(stands: Standing) -> tuple[Table | None, str]:
    """Return a table of queues, and a note about how many queues it leaves out.

    The table lists stalled queues first, then the queues that miss the most answers.
    """
    rows = sorted(stands.waits, key=lambda row: (not row["stuck"], -row["missing"]))
    more = f"{many(len(rows) - SHOWN, 'row')} more; --json has all." if len(rows) > SHOWN else ""
    return (overview_report.waits_table(rows[:SHOWN]) if rows else None), more


# --- Data folder and database


def _installation() -> dict[str, Any]:
    folder = Path(settings.DATA_DIR)
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return {"site": settings.SITE, "data_folder": folder, "free_bytes": shutil.disk_usage(there).free}


def _database() -> dict[str, Any]:
    name = connection.settings_dict["NAME"]
    executor = MigrationExecutor(connection)
    missing = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    return {
        "vendor": connection.vendor,
        "name": str(name),
        "bytes": _size(),
        "migrations_missing": missing,
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


def _place(there: dict[str, Any]) -> str:
    place, database = there["installation"], there["database"]
    vendor = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}.get(database["vendor"], database["vendor"])
    return "\n".join(
        [
            f"Site         {place['site']}{assumed()}",
            f"Data folder  {place['data_folder']} ({_bytes(place['free_bytes'])} free)",
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
        # Annotators without a password have not used their invitation yet.
        invited=Count("pk", filter=active & Q(user__password__startswith=UNUSABLE_PASSWORD_PREFIX)),
    )
    return {**counts, "managers": managers().count()}


def _of_people(people: dict[str, int]) -> str:
    invited = f" ({people['invited']:,} of them set no password yet)" if people["invited"] else ""
    adjudicators, managers = many(people["adjudicators"], "adjudicator"), many(people["managers"], "manager")
    return f"People       {many(people['annotators'], 'annotator')}{invited}, of these {adjudicators}; {managers}"


# --- Next steps


def _todo(found: list[dict[str, Any]], stands: Standing, people: dict[str, int]) -> list[str]:
    """Return a sentence for each next step, in the order in which the steps should be taken."""
    said = []
    if not people["managers"]:
        said.append("Make an account for the manager: `assay add_manager NAME`.")
    said += _todo_of_corpora(found) if found else [NOTHING["corpora"]]
    if not people["annotators"]:
        said.append("Nobody is there to annotate: `assay add_annotators FILE`.")
    unseconded = [row["name"] for row in stands.tasks if row["unseconded"]]
    return [
        *said,
        *(f"Task {row['name']}: {row['next']}" for row in stands.tasks),
        *([f"{NO_SECOND} These tasks ask for one: {' '.join(unseconded)}."] if unseconded else []),
    ]


def _todo_of_corpora(rows: list[dict[str, Any]]) -> list[str]:
    """Return the next steps for corpora that have posts without votes, or from which nothing was drawn."""
    said = []
    for row in rows:
        name = row["corpus"]
        if row["holds"] == POSTS and row["voted"] < row["rows"]:
            said.append(f"Corpus {name} has posts without votes: `assay prelabel {name}`.")
        elif not (row["draws"] or row["fault"]):
            said.append(f"Nothing was drawn from corpus {name} yet: `assay open_task TASK --corpus {name} --seed 1 …`.")
    return said


# --- Lists

NOTHING = {
    "corpora": "There is no corpus yet. Make one of a file of posts: `assay import_corpus NAME FILE --licence "
    "LICENCE`.",
    "vocabularies": "There is no vocabulary yet. Take one in: `assay import_vocabulary NAME FILE`.",
    "predictors": "There is no predictor: no posts have votes, and no predictions were imported. See `assay prelabel "
    "CORPUS` and `assay import_predictions CORPUS FILE --name NAME --version VERSION`.",
    "draws": "Nothing was drawn yet. A draw is made when a task is opened: `assay open_task NAME --corpus CORPUS "
    "--seed 1 …`.",
    "tasks": "There is no task yet. Open one on a corpus: `assay open_task NAME --corpus CORPUS --size 1000 --seed 1`.",
}


def _listed(what: str, rows: list[dict[str, Any]]) -> Outcome:
    """Return a table of the rows. If there are no rows, return the step that would create the first one.

    what: a key of NOTHING
    """
    table = getattr(overview_report, f"{what}_table")
    return Outcome([as_lines(table(rows)) if rows else NOTHING[what]], data={what: rows})


@action("corpora", "List the corpora: what each holds, its votes, licence and draws.")
def corpora_action(values: Values, progress: Progress) -> Outcome:
    outcome = _listed("corpora", corpora_there())
    todo = _todo_of_corpora(outcome.data["corpora"])
    return replace(outcome, said=[*outcome.said, *(["", *todo] if todo else [])])


@action("vocabularies", "List the vocabularies, each with its versions.")
def vocabularies_action(values: Values, progress: Progress) -> Outcome:
    return _listed("vocabularies", vocabularies_there())


@action(
    "predictors",
    "List the predictors of a corpus: detectors, their majority, and imported ones.",
    Option("corpus", default="", argument=True, help="the corpus's name; without it, all corpora"),
)
def predictors_action(values: Values, progress: Progress) -> Outcome:
    return _listed("predictors", predictors_there(values["corpus"]))


@action(
    "draws",
    "List the draws: design, seed, size and chance, and the task that asks about each.",
    Option("of", default="", argument=True, shown="NAME", help="a task or a corpus; without it, all draws"),
)
def draws_action(values: Values, progress: Progress) -> Outcome:
    name = values["of"]
    # If a corpus and a task have the same name, list the draws of the corpus, which include those of the task.
    if not name or Corpus.objects.filter(name=name).exists():
        return _listed("draws", draws_there(corpus=name))
    if Task.objects.filter(name=name).exists():
        return _listed("draws", draws_there(task=name))
    raise ActionError(f"There is no task and no corpus {name!r}; `assay tasks` and `assay corpora` list what there is.")


@action("tasks", "List the tasks, with their progress and next step.")
def tasks_action(values: Values, progress: Progress) -> Outcome:
    return _listed("tasks", standing().tasks)
