"""What work a task gives, by queue, and who is there for it; in the terms of work/expected.py."""

from collections.abc import Iterator, Mapping
from typing import Any

from annotate.reports.checks import NO_SECOND
from annotate.reports.numbers import percent, rounded
from annotate.reports.tables import LANGUAGE, NOTE, Column, Table, many, numbers, table

SHOWN = 5  # languages of which the most is chosen, that are named


def work_table(work: Mapping[str, Any], *, tested: bool) -> Table:
    """tested: whether people take a test before they may work."""
    headings = {"units": "units", "agreed": "for the audit", "known": "decoys", "answers": "answers"}
    # A column that holds nothing anywhere is left out.
    some = {key: head for key, head in headings.items() if key in ("units", "answers") or _sum(work, key)}
    people = {"readers": "readers"} | ({"qualified": "passed the test"} if tested else {})
    if any(row["able"] < row["readers"] for row in work["queues"]):
        people |= {"able": "may work now"}
    rows = [{**row, "language": row["queue"]} for row in work["queues"]]
    total = {**dict.fromkeys(people), **{key: _sum(work, key) for key in headings}, "language": "all", "name": ""}
    heads = (*LANGUAGE, *numbers(some), *numbers(people), Column("note", "note", NOTE, _note))
    return table("Expected work", heads, rows, total=[{**total, "needs": 0}] if len(rows) > 1 else [])


def _sum(work: Mapping[str, Any], key: str) -> int:
    return sum(row[key] for row in work["queues"])


def _note(row: Mapping[str, Any]) -> str:
    """Nothing where nobody reads it: that is said of all such queues at once."""
    if not row["readers"] or row["readers"] >= row["needs"]:
        return ""
    asking = "each unit asks" if row["several"] == row["units"] else f"{row['several']:,} of {row['units']:,} units ask"
    return f"{asking} for {row['needs']} people, and fewer read it"


def words(work: Mapping[str, Any]) -> list[str]:
    return [*_people(work), *_audit(work["audit"]), *of_checks(work["checks"])]


def _people(work: Mapping[str, Any]) -> Iterator[str]:
    if not work["units"]:
        yield "No unit goes to people."
        return
    yield (
        f"People are asked for {many(work['answers'], 'answer')} at least, in {many(len(work['queues']), 'queue')}; "
        "what they skip or differ on asks for more."
    )
    if work["unread"]:
        unread = sum(row["units"] for row in work["queues"] if not row["readers"])
        queues = many(len(work["unread"]), "queue")
        yield f"Nobody who may log in reads {queues} with {many(unread, 'unit')}: {' '.join(work['unread'])}."
    if not work["adjudicators"]:
        yield "There is no adjudicator for what readers cannot settle."


def _audit(audit: Mapping[str, Any] | None) -> Iterator[str]:
    if not audit or not audit["chosen"]:
        return
    yield (
        f"The audit takes {audit['chosen']:,} of the {audit['posts']:,} posts on which the detectors agree "
        f"({percent(audit['chosen'] / audit['posts'])}), in {_by_language(audit['languages'], 'posts')}. "
        f"That is {rounded(audit['hours'])} hours at the supposed pace. An adjudicator reads {audit['recheck']:,} of "
        "them besides."
    )
    if mostly := " ".join(label for label, of in audit["languages"].items() if 3 * of["chosen"] >= of["posts"]):
        yield f"It takes a third or more of the posts in: {mostly}."
    if audit["limit"] < 1:
        yield from _limit(audit)


def _limit(audit: Mapping[str, Any]) -> Iterator[str]:
    languages = audit["languages"]
    able = sum(of["can_tell"] for of in languages.values())
    yield (
        f"The audit can test the limit of {percent(audit['limit'])} in {able:,} of {many(len(languages), 'language')}; "
        "another language goes to people only if certainly more of it is wrong."
    )
    if chances := [of["chance"] for of in languages.values() if of["can_tell"] and of["chance"]]:
        between = " to ".join(dict.fromkeys(map(percent, (min(chances), max(chances)))))
        yield (
            f"A language in which 1% of the agreement is wrong fails the audit by chance, and is read in full, in "
            f"{between} of cases, by how many are audited: {audit['contested']:,.0f} more posts on average in all."
        )


def of_checks(checks: Mapping[str, Any] | None) -> Iterator[str]:
    """How many units are checked that one person decides, and by whom; nothing where none is."""
    if checks and checks["chosen"]:
        yield (
            f"One reader decides {many(checks['units'], 'unit')}. Of these an adjudicator decides "
            f"{checks['chosen']:,} again, by lot and blind ({percent(checks['chosen'] / checks['units'])}), in "
            f"{_by_language(checks['languages'], 'units')}."
        )
    if checks and checks["seconds"]:
        yield (
            f"Of what is adjudicated by lot, a second adjudicator decides {checks['seconds']:,} again; what readers "
            "cannot settle adds to that."
        )
    if checks and checks["unseconded"]:
        yield NO_SECOND


def _by_language(languages: Mapping[str, Mapping[str, int]], whole: str) -> str:
    """In how many languages some are chosen of the `whole`, and the languages that have the most."""
    most = sorted(languages.items(), key=lambda of: (-of[1]["chosen"], of[0]))[:SHOWN]
    named = ", ".join(f"{label} {of['chosen']:,} of {of[whole]:,}" for label, of in most)
    return f"{many(len(languages), 'language')}: {named}{' …' if len(languages) > SHOWN else ''}"
