"""Tables of corpora, tasks, draws, predictors, vocabularies and accounts, and sentences about actions' results."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.hashers import is_password_usable
from django.utils import timezone

from annotate.kinds.interface_language import label_name
from annotate.reports.numbers import NOT_MEASURED
from annotate.reports.tables import (
    NAME,
    NOTE,
    NUMBER,
    SENTENCE,
    SHORT,
    Cell,
    Column,
    Table,
    are,
    many,
    numbered,
    numbers,
    percentage,
    ratio,
    table,
    timed,
    when,
)

Rows = Iterable[dict[str, Any]]


def corpora_table(rows: Rows, address: Callable[[str], str] = lambda name: "", sort: str = "") -> Table:
    """Return the table of corpora.

    address: function that returns the URL of a corpus; no links by default.
    sort: requested order, from the URL.
    """
    heads = (
        Column("corpus", "corpus", says=lambda row: Cell(row["corpus"], row["corpus"], url=address(row["corpus"]))),
        numbered("rows", "rows"),
        Column("holds", "kind"),
        Column("voted", "with votes", NUMBER, lambda row: _votes(row, row["voted"], row["rows"])),
        Column("agreed", "agreed on", NUMBER, lambda row: _votes(row, row["agreed"], row["voted"])),
        Column("licence", "licence", says=lambda row: row["licence"] or NOT_MEASURED),
        Column("text", "text rights", NAME, lambda row: "publishable" if row["text_may_leave"] else "not publishable"),
        *numbers({"draws": "draws"}),
        Column("predictors", "predictions by", NAME, lambda row: ", ".join(row["predictors"])),
        Column("note", "", NOTE, lambda row: row["fault"]),
    )
    return table("Corpora", heads, rows, slug="corpora", sort=sort)


def _votes(row: dict[str, Any], part: int, whole: int) -> Cell:
    return ratio(part, whole) if row["holds"] == "posts" else Cell(NOT_MEASURED)


def tasks_table(rows: Rows) -> Table:
    heads = (
        Column("task", "task", says=lambda row: row["name"]),
        Column("kind", "kind"),
        Column("corpora", "corpus", NAME, lambda row: ", ".join(row["corpora"])),
        Column("open", "is", says=lambda row: "open" if row["is_open"] else "closed"),
        *numbers({"units": "items"}),
        Column("done", "done", NUMBER, lambda row: ratio(row["done"], row["units"])),
        *numbers({"queued": "queued", "missing": "missing", "answers_today": "in 24 h"}),
        *numbers({"adjudication": "to decide"}),
        Column("next", "next", NOTE),
    )
    return table("Tasks", heads, rows)


def waits_table(rows: Rows) -> Table:
    def whom(row: dict[str, Any]) -> str:
        return f"readers of {label_name(row['queue'])}" if row["queue"] else "adjudicators"

    heads = (
        Column("task", "task"),
        Column("for", "waits for", says=whom),
        *numbers({"waiting": "items", "missing": "answers needed", "able": "people"}),
        Column("stuck", "", says=lambda row: "stalled" if row["stuck"] else ""),
    )
    return table("Queues", heads, rows)


def draws_table(rows: Rows) -> Table:
    def tasks(row: dict[str, Any]) -> str:
        return ", ".join(row["tasks"]) or ("(enlarged)" if row["extended"] else NOT_MEASURED)

    heads = (
        numbered("draw", "draw"),
        Column("corpus", "corpus"),
        Column("design", "design"),
        Column("language", "for", says=lambda row: row["language"] or "all"),
        Column("predictor", "by", says=lambda row: row["predictor"] or NOT_MEASURED),
        Column("seed", "seed"),
        *numbers({"drawn": "drawn", "frame": "of"}),
        percentage("chance", "chance"),
        Column("tasks", "task", says=tasks),
        Column("created_at", "made", NAME, lambda row: f"{row['created_at']:%Y-%m-%d}"),
    )
    return table("Draws", heads, rows)


def predictors_table(rows: list[dict[str, Any]]) -> Table:
    classes = Column("classes", "classes with several labels", NAME, lambda row: " ".join(row["classes"]))
    ranked = Column("ranked", "ranked labels", NAME, lambda row: "ranked" if row["ranked"] else NOT_MEASURED)
    heads = (
        Column("predictor", "predictor"),
        Column("corpus", "corpus"),
        *numbers({"posts": "posts", "of": "of"}),
        Column("source", "from", says=lambda row: row["source"] or "the detectors' votes"),
        *([classes] if any(row["classes"] for row in rows) else []),
        *([ranked] if any(row["ranked"] for row in rows) else []),
        Column("note", "", NOTE, _incomplete),
    )
    return table("Predictors", heads, rows)


def _incomplete(row: dict[str, Any]) -> str:
    if row["complete"]:
        return ""
    if not row["source"]:
        return f"some posts have no votes; run `assay prelabel {row['corpus']}`"
    if row["ranked"]:
        return "records that were added later have no ranked labels"
    return "the corpus has grown; import predictions for all posts under the same version"


def vocabularies_table(rows: Rows) -> Table:
    heads = (
        Column("vocabulary", "vocabulary"),
        *numbers({"version": "version", "concepts": "concepts"}),
        Column("languages", "languages", says=lambda row: " ".join(tag or NOT_MEASURED for tag in row["languages"])),
        Column("source", "from"),
        Column("imported_at", "imported", NAME, lambda row: f"{row['imported_at']:%Y-%m-%d}"),
    )
    return table("Vocabularies", heads, rows)


def pauses_table(rows: Rows) -> Table:
    heads = (
        Column("task", "task"),
        Column("name", "annotator"),
        Column("right", "gold answers right", NUMBER, lambda row: f"{row['right']:,} of {row['asked']:,}"),
        timed("at", "since"),
    )
    return table("Pauses", heads, rows)


# --- Sentences about the results of actions and about remaining work, for pages and commands


def rerouted(counts: dict[str, int]) -> str:
    """Return a sentence about the result of `reroute` in work/routing.py."""
    queues, adjudication, decided = counts["queues"], counts["adjudication"], counts["decided"]
    by_answers = f" Decided by existing answers: {decided:,}." if decided else ""
    return f"Moved: {queues:,} to the queue of the next language, {adjudication:,} to adjudication.{by_answers}"


def undecidable(count: int) -> str:
    """Return a sentence about units that no adjudicator may decide, with advice, or "" if there are none.

    count: result of `undecidable` in task_overview.py.
    """
    if not count:
        return ""
    it = "it" if count == 1 else "them"
    wait = f"{are(count, 'post is waiting', 'posts are waiting')} for an adjudicator who has not read {it}"
    return f"{wait}. Make another person an adjudicator."


def contested(waiting: Mapping[str, int]) -> str:
    """Return a sentence that explains why annotators label posts on which the detectors agree, or "" if they don't.

    waiting: number of waiting units by label.
    """
    if not waiting:
        return ""
    wait = are(sum(waiting.values()), "is waiting", "are waiting")
    return f"The audit failed for {' '.join(sorted(waiting))}, so people label these too: {wait}."


def closed(done: Mapping[str, Any]) -> str:
    """Describe the result of `close` in work/closure.py."""
    open_now = many(done["in_hand"], "item")
    open_note = f" Annotators can still answer the items that they have open ({open_now})." if done["in_hand"] else ""
    status = "has been closed, so annotators no longer receive its items" if done["changed"] else "was already closed"
    digest = (
        f" Publish this digest of the outcomes of randomly drawn items: {done['digest']}." if done["digest"] else ""
    )
    headings = {"decided": "Decided by existing answers", "unconfirmed": "Labelled by one reader without confirmation"}
    headings |= {"left_out": "Excluded without a label"}
    outcome_notes = "".join(
        f" {heading}: {many(done[name], 'item')}." for name, heading in headings.items() if done[name]
    )
    return f"Task {done['task']} {status}.{outcome_notes} {_left(done)}{open_note}{digest}"


def leave_out(task: str) -> str:
    """Return a sentence that explains how to end a task with unlabelled units."""
    return f"To end the task without the items that lack a label: `assay close {task} --leave-out`."


def reopened(done: Mapping[str, Any]) -> str:
    """Describe the result of `reopen` in work/closure.py."""
    status = "has been reopened, so annotators receive its items" if done["changed"] else "was already open"
    return f"Task {done['task']} {status}. {_left(done)}"


def _left(done: Mapping[str, Any]) -> str:
    unfinished = done["unfinished"]
    return f"Items without a label: {unfinished:,}." if unfinished else "All items are finished."


# --- Annotators and managers


def workload_table(queues: Rows) -> Table:
    """Return a table of a task's waiting work, with the average amount per reader.

    queues: rows of queue_states
    """

    def answers(row: dict[str, Any]) -> Cell:
        share = row["missing"] / row["readers"] if row["readers"] else None
        return Cell(NOT_MEASURED) if share is None else Cell(f"{round(share):,}", share)

    columns = (
        Column("language", "language", SHORT, lambda row: row["name"]),
        *numbers({"waiting": "items waiting", "missing": "answers needed", "readers": "annotators"}),
        Column("share", "answers each", NUMBER, answers),
    )
    return table("Workload", columns, [row for row in queues if row["waiting"]], slug="workload")


Invitation = tuple[datetime | None, datetime | None, datetime]  # used_at, revoked_at and expires_at of an invite


def account_state(password: str, invite: Invitation | None, now: datetime, *, active: bool) -> str:
    """Describe whether and how a user can log in.

    password: hash of the password
    invite: latest invitation, if any
    """
    if not active:
        return "locked out"
    if is_password_usable(password):
        return "active"
    if invite is None:
        return "no link yet"
    used_at, revoked_at, expires_at = invite
    if used_at or revoked_at:
        return "the link was revoked" if revoked_at else "the link was used"
    day = f"{timezone.localtime(expires_at):%Y-%m-%d}"
    return f"invited, link valid until {day}" if expires_at > now else f"the link expired on {day}"


def managers_table(users: Iterable[Any], sort: str = "") -> Table:
    rights = ("as granted in the admin", "everything")
    columns = (
        Column("username", "user name", SHORT, lambda user: user.username),
        Column("name", "name", SENTENCE, lambda user: user.get_full_name()),
        Column("rights", "may change", SENTENCE, lambda user: rights[user.is_superuser]),
        Column("last", "last log-in", SHORT, lambda user: when(user.last_login)),
    )
    return table("Managers", columns, users, slug="managers", sort=sort)
