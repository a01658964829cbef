"""What audits, decoys and checks of people found, as sentences, tables and plots for pages, commands and dataset cards.

The reports come from quality/audits.py, decoys.py, checks.py and declared_audits.py, or from a manifest.
"""

from collections.abc import Iterator, Mapping
from typing import Any

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
    chosen = sum(map(_chosen, rows))
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
        Column("audited", "read", NUMBER, lambda row: f"{count(row['audited'])} of {count(_chosen(row))}"),
        Column("error", "wrong, 95% interval", NUMBER, lambda row: share(row["error"])),
        Column("note", "", NOTE, lambda row: _audit_note(row, audit["limit"])),
    )
    return table(many(len(audit["languages"]), "language"), columns, _in_order(audit))


def _marked(row: dict) -> Cell:
    return Cell(row["language"], row["language"], mark="stuck" if row["over_limit"] else "")


def _chosen(row: dict) -> int:
    return row["audited"] + row["unresolved"]


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
    overruled = discarded = ""
    if number := row.get("overruled"):
        confirmations = many(row["checked"], "confirmation")
        overruled = f"of {confirmations} that an adjudicator checked {are(number, 'was', 'were')} wrong"
    if row["over_limit"]:
        return "; ".join(filter(None, (f"more than {whole_percent(limit)} may be wrong", overruled)))
    if row["waiting"]:
        return "not done yet"
    if row["unresolved"]:
        low, high = map(percent, row["bounds"])
        discarded = f"{count(row['unresolved'])} discarded; wrong in {low} to {high}, whatever these are"
    contested = "contested: people label all of it" if row["contested"] else ""
    return "; ".join(filter(None, (contested, overruled, discarded)))


def audit_plot(audit: dict) -> SafeString:
    """The error by language, for languages in which somebody has read a post; empty if there are none."""
    rows = [_plotted(row["language"], [(row["error"], row["audited"])]) for row in _in_order(audit) if row["audited"]]
    return forest(rows, title="Where the detectors agree and are wrong", counted="read") if rows else NONE


def whole_percent(share: float) -> str:
    """A share as a person has set it: 10%, 2.5%."""
    return f"{100 * share:g}%"


def limit_words(audit: dict, task: str) -> list[str]:
    """Which languages are over the limit, and what became of them."""
    limit = whole_percent(audit["limit"])
    over, contested, read = (
        sorted(row["language"] for row in audit["languages"] if row[key])
        for key in ("over_limit", "contested", "all_read")
    )
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


# --- checks of people who decide alone


NO_SECOND = (
    "There is one adjudicator, so no second opinion can be had on what adjudicators decide; make another person an "
    "adjudicator."
)


def reader_words(checks: dict[str, Any]) -> Iterator[str]:
    """Sentences on readers in all."""
    found = checks["overall"]
    chosen = found["checked"] + found["waiting"] + found["unresolved"]
    if not found["alone"] + chosen:
        yield "No post was decided by one reader alone."
        return
    yield f"One reader alone decided {many(found['alone'], 'post')}."
    if not chosen:
        yield "None was checked, so it is not known how often a reader alone is wrong."
        return
    otherwise = f"{count(found['otherwise'])} of these otherwise than the reader ({estimate(found['error'])})"
    number = f"{count(found['checked'])} done{' so far' if found['waiting'] else ''}"
    done = f"{number}, {otherwise}" if found["checked"] else "none so far" if found["waiting"] else "none has a label"
    yield (
        f"Of {many(chosen, 'more post')}, chosen by lot, an adjudicator decides each again and sees neither votes nor "
        f"the answer: {done}."
    )


def adjudicator_words(checks: dict[str, Any]) -> Iterator[str]:
    """Sentences on adjudicators."""
    found = checks["adjudicators"]
    if not found["decisions"]:
        yield "No adjudicator has decided anything."
        return
    yield f"Adjudicators decided {many(found['decisions'], 'post')}."
    if found["seconded"]:
        yield (
            f"A second adjudicator decided {count(found['seconded'])} of these too and did not see the first decision, "
            f"{count(found['differed'])} of them otherwise ({estimate(found['error'])})."
        )
    else:
        yield "No second adjudicator decided any of these, so it is not known how often adjudicators differ."
    if found["waiting"]:
        yield f"{many(found['waiting'], 'post')} still {'waits' if found['waiting'] == 1 else 'wait'} for another one."


def check_table(checks: dict[str, Any]) -> Table:
    """A row for each language in whose queue one reader has decided something, or is to be checked."""
    columns = (
        *LANGUAGE,
        numbered("alone", "decided alone"),
        numbered("checked", "checked"),
        Column("error", "otherwise, 95% interval", NUMBER, lambda row: share(row["error"])),
        Column("note", "", NOTE, _check_note),
    )
    some = ("alone", "checked", "waiting", "unresolved")
    rows = [row for row in checks["languages"] if any(row[key] for key in some)]
    return table(many(len(rows), "language"), columns, rows)


def _check_note(row: dict[str, Any]) -> str:
    waiting = f"not done yet: {count(row['waiting'])}" if row["waiting"] else ""
    discarded = f"discarded, and so not counted: {count(row['unresolved'])}" if row["unresolved"] else ""
    return "; ".join(filter(None, (waiting, discarded)))


# --- the audit of declared labels


NONE_CHOSEN = "Nobody has read these documents to check their labels, so how often they are wrong is not known."
EMPTY = table("", (), ())


def declared_words(audit: Mapping[str, Any]) -> list[str]:
    """Sentences on the audit in all."""
    said = [
        f"{many(audit['documents'], 'document')} came with a label. {count(audit['chosen'])} of them were chosen by "
        f"lot, in each language and class, for people who were not told their labels; {count(audit['audited'])} have "
        "been labelled to the end."
    ]
    if audit["error"]["value"] is not None:
        said.append(
            f"Of all these labels {estimate(audit['error'])} are wrong, each language and class weighted by its "
            "documents."
        )
    if unresolved := audit["unresolved"]:
        said.append(
            f"{many(unresolved, 'document')} of the audit {'is' if unresolved == 1 else 'are'} not done yet, or left "
            "out since people could not tell; the intervals hold whether their labels are right or wrong."
        )
    return said


_DECLARED = (
    numbered("documents", "documents"),
    Column("audited", "audited", NUMBER, lambda row: f"{count(row['audited'])} of {count(row['chosen'])}"),
    numbered("wrong", "wrong"),
    Column("error", "wrong of all, 95% interval", NUMBER, lambda row: share(row["error"])),
)


def class_table(audit: Mapping[str, Any]) -> Table:
    rows = audit["classes"]
    return table(f"{len(rows)} classes", (Column("class", "declared"), *_DECLARED), rows)


def language_table(audit: Mapping[str, Any]) -> Table:
    rows = audit["languages"]
    return table(many(len(rows), "language"), (*LANGUAGE, *_DECLARED), rows)


def found_table(audit: Mapping[str, Any]) -> Table:
    """Declared against found: a row for each declared class, a column for each answer that somebody found."""
    numbers = {(row["declared"], row["found"]): row["documents"] for row in audit["found"]}
    declared = [row["class"] for row in audit["classes"]]
    others = [row["found"] for row in audit["found"] if row["found"] not in declared]
    labels = [*declared, *dict.fromkeys(others)]

    def column(label: str) -> Column:
        return numbered(f"found {label}", label, lambda row: numbers.get((row, label), 0))

    columns = (Column("declared", "declared", says=lambda row: row), *(column(label) for label in labels))
    return table("Audited documents, by what was declared (rows) and found (columns)", columns, declared)
