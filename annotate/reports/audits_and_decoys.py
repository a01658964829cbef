"""What audits and decoys found, in words, tables and plots: for the admin's page, the command and the dataset card.

The reports come from quality/audits.py and decoys.py, or from a manifest. Nothing is counted here.
"""

from django.utils.safestring import SafeString

from annotate.reports.numbers import NOT_MEASURED, count, estimate, percent
from annotate.reports.plots import Mark, Row, forest
from annotate.reports.tables import (
    LANGUAGE,
    NOTE,
    NUMBER,
    Cell,
    Column,
    Table,
    are,
    beside,
    many,
    numbered,
    share,
    table,
)

NONE = SafeString("")


def audit_words(audit: dict) -> list[str]:
    """Sentences on the audit in all; none if nobody was asked."""
    rows = audit["languages"]
    agreed, read = (sum(row[key] for row in rows) for key in ("posts", "audited"))
    chosen = read + sum(row["unresolved"] for row in rows)
    if not chosen:
        return []
    words = [
        f"The detectors agree on {count(agreed)} posts. {count(chosen)} of these were chosen by lot for people to "
        f"read, who were not told, and {count(read)} have been read to the end."
    ]
    if audit["overall"]["value"] is not None:
        words.append(
            f"Of all on which they agree, the detectors are wrong in {estimate(audit['overall'])}, "
            f"each language weighted by its posts{_slips(audit)}."
        )
        if chosen > read:
            low, high = map(percent, audit["overall_bounds"])
            words.append(
                f"The interval takes the {are(chosen - read, 'post', 'posts')} of the audit without a label to be like "
                f"those that were read. Whatever {'it is' if chosen - read == 1 else 'they are'}, the detectors are "
                f"wrong in {low} to {high}."
            )
        assumed = audit.get("assumed")
        if assumed and assumed["low"] is not None:
            words.append(
                "How often the adjudicators slip is not known, since no two have decided the same. If they did in 1%, "
                f"the detectors would be wrong in {estimate(assumed)}."
            )
    return words


def _slips(audit: dict) -> str:
    slips = audit.get("slips")
    return f", less what adjudicators call wrong by mistake ({estimate(slips)} of their decisions)" if slips else ""


def audit_table(audit: dict) -> Table:
    """A row for each language: those over the limit first, then those with the most errors, then with the
    most posts.
    """
    columns = (
        Column("language", "language", says=_marked),
        LANGUAGE[1],
        numbered("posts", "agreed on"),
        Column("audited", "read", NUMBER, _read),
        Column("error", "wrong, 95% interval", NUMBER, lambda row: share(row["error"])),
        Column("note", "", NOTE, lambda row: _audit_note(row, audit["limit"])),
    )
    return table(many(len(audit["languages"]), "language"), columns, _in_order(audit))


def _marked(row: dict) -> Cell:
    """The language; a row over the limit is set off."""
    return Cell(row["language"], row["language"], mark="stuck" if row["over_limit"] else "")


def _read(row: dict) -> str:
    return f"{count(row['audited'])} of {count(row['audited'] + row['unresolved'])}"


def _in_order(audit: dict) -> list[dict]:
    return sorted(
        audit["languages"],
        key=lambda row: (
            not row["over_limit"],
            not row["contested"],
            -(row["error"]["value"] or 0),
            -row["posts"],
            row["language"],
        ),
    )


def _audit_note(row: dict, limit: float) -> str:
    overruled = _overruled(row)
    if row["over_limit"]:
        return "; ".join(filter(None, (f"more than {whole_percent(limit)} may be wrong", overruled)))
    if row["waiting"]:
        return "not done yet"
    discarded = _discarded(row) if row["unresolved"] else ""
    contested = "contested: people label all of it" if row["contested"] else ""
    return "; ".join(filter(None, (contested, overruled, discarded)))


def _discarded(row: dict) -> str:
    low, high = map(percent, row["bounds"])
    return f"{count(row['unresolved'])} discarded; wrong in {low} to {high}, whatever these are"


def _overruled(row: dict) -> str:
    """Where an adjudicator overruled readers: each time stands for all that nobody checked."""
    if not (number := row.get("overruled")):
        return ""
    return f"of {many(row['checked'], 'confirmation')} that an adjudicator checked {are(number, 'was', 'were')} wrong"


def audit_plot(audit: dict) -> SafeString:
    """The error by language, for languages in which somebody has read a post; empty if there are none."""
    rows = [_plotted(row["language"], [(row["error"], row["audited"])]) for row in _in_order(audit) if row["audited"]]
    return forest(rows, title="Where the detectors agree and are wrong", counted="read") if rows else NONE


def whole_percent(share: float) -> str:
    """A share as a person has set it: 10%, 2.5%."""
    return f"{100 * share:g}%"


def over_limit(audit: dict) -> list[str]:
    return sorted(row["language"] for row in audit["languages"] if row["over_limit"])


def limit_words(audit: dict, task: str) -> list[str]:
    """Which languages are over the limit, and what became of them."""
    limit, over = whole_percent(audit["limit"]), over_limit(audit)
    contested = sorted(row["language"] for row in audit["languages"] if row["contested"])
    read = sorted(row["language"] for row in audit["languages"] if row["all_read"])
    words = []
    if contested:
        words.append(f"Contested, since more than {limit} may be wrong; people label all of it: {' '.join(contested)}.")
    if read:
        words.append(f"More than {limit} may be wrong, but nothing is left that people do not read: {' '.join(read)}.")
    if over:
        return [
            *words,
            f"Over the limit of {limit}: {' '.join(over)}; `assay audit {task} --contest` has people label them.",
        ]
    if len(contested) + len(read) == len(audit["languages"]):
        return words
    other = "No other language" if words else "No language"
    return [*words, f"{other} that has unread posts and a finished audit is over the limit of {limit}."]


def contested(sent: dict[str, int]) -> str:
    """What controls/audit.contest_all did."""
    if not sent:
        return (
            "No language that has unread posts and a finished audit is over the limit, so nothing was sent to people."
        )
    return f"Sent to people: {', '.join(f'{count(units)} of {label}' for label, units in sent.items())}."


def added(posts: dict[str, int], wanted: int, to: str) -> str:
    """What controls/audit.py or rechecks.py added. wanted: how many it was asked for; to: "audit" or "checks"."""
    by_language = ", ".join(f"{count(number)} of {label}" for label, number in posts.items())
    number = sum(posts.values())
    all_there_are = f" These are all there are, and not {count(wanted)}." if number < wanted else ""
    return f"Added to the {to} by lot: {many(number, 'post')}: {by_language}.{all_there_are}"


def decoy_words(decoys: dict) -> list[str]:
    """Sentences on the decoys in all; none if there are none."""
    rows = decoys["languages"]
    hidden, answers, yes = (sum(row[key] for row in rows) for key in ("decoys", "answers", "yes"))
    if not hidden:
        return []
    said = f"In {count(answers)} answers to them readers said Yes {count(yes)} times."
    return [
        f"{many(hidden, 'post')} known not to be in the language {'was' if hidden == 1 else 'were'} hidden among the "
        "others.",
        said if answers else "No reader has answered one yet.",
    ]


def _told(rate: dict) -> str:
    if not rate["answers"]:
        return NOT_MEASURED
    return f"{count(rate['yes'])} of {count(rate['answers'])}: {estimate(rate['false_yes'])}"


DECOYS = (
    *LANGUAGE,
    numbered("decoys", "decoys"),
    Column("false_yes", "false Yes, 95% interval", NUMBER, _told),
    Column("sheets", "on sheets", NUMBER, lambda row: _told(row["sheets"])),
)


def decoy_table(decoys: dict) -> Table:
    return table(many(len(decoys["languages"]), "language"), DECOYS, decoys["languages"])


def decoy_plot(decoys: dict) -> SafeString:
    answered = [row for row in decoys["languages"] if row["answers"]]
    on_sheets = any(row["sheets"]["answers"] for row in answered)
    rows = [
        _plotted(
            row["language"],
            [(part["false_yes"], part["answers"]) for part in (row, *([row["sheets"]] if on_sheets else []))],
        )
        for row in answered
    ]
    series = ("all", "on sheets") if on_sheets else ()
    title = "How often readers say Yes to decoys"
    return forest(rows, title=title, series=series, counted="answers") if rows else NONE


def _plotted(language: str, estimates: list[tuple[dict, int]]) -> Row:
    """estimates: each with the posts that it rests on, as people counted them."""
    marks = tuple(Mark(made["value"], made["low"], made["high"], posts) for made, posts in estimates)
    return Row(language, beside(language), marks)
