"""Tables of corpora, tasks, draws, predictors, vocabularies and accounts, and sentences about results of actions."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.utils import timezone

from annotate.kinds.interface_language import label_name
from annotate.reports.numbers import NOT_MEASURED, percent
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
    ratio,
    table,
    timed,
    when,
)

Rows = Iterable[dict[str, Any]]


def corpora_table(rows: Rows) -> Table:
    heads = (
        Column("corpus", "corpus"),
        numbered("rows", "rows"),
        Column("holds", "of"),
        Column("voted", "with votes", NUMBER, lambda row: _votes(row, row["voted"], row["rows"])),
        Column("agreed", "agreed on", NUMBER, lambda row: _votes(row, row["agreed"], row["voted"])),
        Column("licence", "licence", says=lambda row: row["licence"] or NOT_MEASURED),
        Column("text", "text", NAME, lambda row: "may leave" if row["text_may_leave"] else "stays"),
        *numbers({"draws": "draws"}),
        Column("predictors", "predictors", NAME, lambda row: ", ".join(row["predictors"])),
        Column("note", "", NOTE, lambda row: row["fault"]),
    )
    return table("Corpora", heads, rows)


def corpora_on_page(rows: Rows, address: Callable[[str], str], asked: str = "") -> Table:
    """Return the table of corpora for a page.

    address: function that returns the URL of a corpus.
    asked: requested order, from the URL.
    """
    made = corpora_table(rows)
    linked = replace(made.columns[0], says=lambda row: Cell(row["corpus"], row["corpus"], url=address(row["corpus"])))
    return table("Corpora", (linked, *made.columns[1:]), rows, slug="corpora", asked=asked)


def _votes(row: dict[str, Any], part: int, whole: int) -> Cell:
    return ratio(part, whole) if row["holds"] == "posts" else Cell(NOT_MEASURED)


def tasks_table(rows: Rows) -> Table:
    heads = (
        Column("task", "task", says=lambda row: row["name"]),
        Column("kind", "kind"),
        Column("corpora", "corpus", NAME, lambda row: ", ".join(row["corpora"])),
        Column("open", "is", says=lambda row: "open" if row["is_open"] else "closed"),
        *numbers({"units": "units"}),
        Column("done", "done", NUMBER, lambda row: ratio(row["done"], row["units"])),
        *numbers({"queued": "queued", "missing": "missing", "answers_today": "in 24 h"}),
        *numbers({"adjudication": "to settle"}),
        Column("next", "next", NOTE),
    )
    return table("Tasks", heads, rows)


def waits_table(rows: Rows) -> Table:
    def whom(row: dict[str, Any]) -> str:
        return f"readers of {label_name(row['queue'])}" if row["queue"] else "adjudicators"

    heads = (
        Column("task", "task"),
        Column("for", "waits for", says=whom),
        *numbers({"waiting": "units", "missing": "answers missing", "able": "who may"}),
        Column("stuck", "", says=lambda row: "stands still" if row["stuck"] else ""),
    )
    return table("What waits for whom", heads, rows)


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
        Column("chance", "chance", NUMBER, lambda row: Cell(percent(row["chance"]), row["chance"])),
        Column("tasks", "task", says=tasks),
        Column("created_at", "made", NAME, lambda row: f"{row['created_at']:%Y-%m-%d}"),
    )
    return table("Draws", heads, rows)


def predictors_table(rows: list[dict[str, Any]]) -> Table:
    classes = Column("classes", "classes of several labels", NAME, lambda row: " ".join(row["classes"]))
    ranked = Column("ranked", "ranks labels", NAME, lambda row: "ranked" if row["ranked"] else NOT_MEASURED)
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
        return f"posts lack votes; run `assay prelabel {row['corpus']}`"
    if row["ranked"]:
        return "the corpus has grown since, and what was added has no ranked labels"
    return "the corpus has grown since: import predictions for all of its posts under the same version"


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


# --- Sentences on the results of actions and on remaining work, for pages and commands


def rerouted(counts: dict[str, int]) -> str:
    """Return a sentence about the result of `reroute` in work/routing.py."""
    queues, adjudication, decided = counts["queues"], counts["adjudication"], counts["decided"]
    by_answers = f" Decided by the answers that they have: {decided:,}." if decided else ""
    return f"Sent on: {queues:,} to readers of their next language, {adjudication:,} to adjudication.{by_answers}"


def undecidable(count: int) -> str:
    """Return a sentence about units that no adjudicator may decide, and what to do about them.

    count: result of `undecidable` in task_overview.py; if it is zero, the sentence is empty.
    """
    if not count:
        return ""
    it = "it" if count == 1 else "them"
    wait = f"{are(count, 'post waits', 'posts wait')} for an adjudicator who has not read {it}"
    return f"{wait}; make another person an adjudicator."


def contested(waiting: Mapping[str, int]) -> str:
    """Return a sentence that explains why people label posts on which the detectors agree.

    waiting: mapping from label to its number of waiting units; if it is empty, the sentence is empty.
    """
    if not waiting:
        return ""
    wait = are(sum(waiting.values()), "of them waits", "of them wait")
    return f"The audit failed for {' '.join(sorted(waiting))}, so people label these too: {wait}."


def closed(done: Mapping[str, Any]) -> str:
    """Return sentences about the result of `close` in work/closure.py."""
    open_now = many(done["in_hand"], "unit")
    held = f" What people have open now ({open_now}) may still be answered." if done["in_hand"] else ""
    now = "is closed now: nobody is given its units" if done["changed"] else "was closed already"
    digest = f" Publish this digest of what became of its drawn units: {done['digest']}." if done["digest"] else ""
    ended = {"decided": "Decided by what was answered", "unconfirmed": "Labelled by one reader, and not confirmed"}
    ended |= {"left_out": "Left out without a label"}
    by_this = "".join(f" {what}: {many(done[name], 'unit')}." for name, what in ended.items() if done[name])
    return f"Task {done['task']} {now}.{by_this} {_left(done)}{held}{digest}"


def leave_out(task: str) -> str:
    """Return a sentence that explains how to end a task although some of its units have no label."""
    return f"To end the task without these units: `assay close {task} --leave-out`."


def reopened(done: Mapping[str, Any]) -> str:
    """Return sentences about the result of `reopen` in work/closure.py."""
    now = "is open again: people are given its units" if done["changed"] else "was open already"
    return f"Task {done['task']} {now}. {_left(done)}"


def _left(done: Mapping[str, Any]) -> str:
    left = done["unfinished"]
    return f"Without a label yet: {many(left, 'unit')}." if left else "All of its units are done."


# --- Accounts


def accounts_table(annotators: Iterable[Any], address: Callable[[int], str], now: datetime, asked: str = "") -> Table:
    """Return the table of annotators' accounts.

    annotators: annotators with their accounts, languages and invites.
    address: function that returns the URL of an annotator from the primary key.
    """

    def user(one: Any) -> Cell:
        note = "manager" if one.user.is_staff else ""
        return Cell(one.user.username, one.user.username, url=address(one.pk), note=note)

    columns = (
        Column("username", "user name", SHORT, user),
        Column("name", "name", SENTENCE, lambda one: one.user.get_full_name()),
        Column("reads", "reads", SENTENCE, lambda one: " ".join(map(str, one.languages.all())) or NOT_MEASURED),
        Column("adjudicates", "adjudicates", SHORT, lambda one: "yes" if one.adjudicates else "no"),
        Column("state", "account", SENTENCE, lambda one: account_state(one, now)),
        Column("last", "last log-in", SHORT, lambda one: when(one.user.last_login)),
    )
    return table("Annotators", columns, annotators, slug="accounts", asked=asked)


def account_state(annotator: Any, now: datetime) -> str:
    """Describe how the person can log in."""
    if not annotator.user.is_active:
        return "locked out"
    if annotator.user.has_usable_password():
        return "has a password"
    invite = next(iter(annotator.invites.all()), None)
    if invite is None:
        return "no link yet"
    if invite.used_at or invite.revoked_at:
        return "the link was withdrawn" if invite.revoked_at else "the link was used"
    day = f"{timezone.localtime(invite.expires_at):%Y-%m-%d}"
    return f"invited, the link works until {day}" if invite.expires_at > now else f"the link expired on {day}"


def managers_table(users: Iterable[Any], asked: str = "") -> Table:
    rights = ("what the admin gives them", "everything")
    columns = (
        Column("username", "user name", SHORT, lambda user: user.username),
        Column("name", "name", SENTENCE, lambda user: user.get_full_name()),
        Column("rights", "may change", SENTENCE, lambda user: rights[user.is_superuser]),
        Column("last", "last log-in", SHORT, lambda user: when(user.last_login)),
    )
    return table("Managers", columns, users, slug="managers", asked=asked)
