"""What the checks of people who decide alone found, in words and as a table: for the admin's page, commands and card.

The report comes from quality/checks.py, or from a manifest. Nothing is counted here.
"""

from collections.abc import Iterator
from typing import Any

from annotate.reports.numbers import count, estimate
from annotate.reports.tables import LANGUAGE, NOTE, NUMBER, Column, Table, many, numbered, share, table

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
        Column("note", "", NOTE, _note),
    )
    rows = [row for row in checks["languages"] if any(row[key] for key in _COUNTED)]
    return table(many(len(rows), "language"), columns, rows)


_COUNTED = ("alone", "checked", "waiting", "unresolved")


def _note(row: dict[str, Any]) -> str:
    waiting = f"not done yet: {count(row['waiting'])}" if row["waiting"] else ""
    discarded = f"discarded, and so not counted: {count(row['unresolved'])}" if row["unresolved"] else ""
    return "; ".join(filter(None, (waiting, discarded)))
