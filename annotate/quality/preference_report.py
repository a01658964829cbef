"""Tables and sentences that present preferences on pages, in commands and on cards.

preference_statistics.py computes the figures.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from annotate.core.estimation.resampling import LEAST_LEFT_OUT
from annotate.core.measures.paired_comparisons import ENOUGH
from annotate.quality.agreement_report import Address, Section, nowhere
from annotate.reports.numbers import coefficient, estimate, p_value, percent
from annotate.reports.tables import NUMBER, Cell, Column, Table, are, estimated, language, many, numbered, share, table

TIE, NONE = "tie", "none"


# --- Tables


def two_tables(pair: Section) -> list[Table]:
    """Return two tables for a pair of systems: how often each was preferred, and how often by a majority."""
    a, b = pair["systems"]
    named = {a: a, b: b, TIE: "no difference", NONE: "no majority"}

    def answers(title: str, answer: str, number: str, shares: str, counts: str) -> Table:
        columns = Column("answer", answer), numbered("number", number), estimated("share", "share, 95% interval")
        numbers = pair[counts]
        rows = [{"answer": named[of], "number": numbers[of], "share": made} for of, made in pair[shares].items()]
        return table(title, columns, rows)

    said = f"{many(pair['judgments'], 'judgment')} of {many(pair['units'], 'comparison')}"
    majorities = f"majorities of {many(pair['finished'], 'comparison')}"
    return [
        answers(said, "preferred", "judgments", "shares", "counts"),
        answers(majorities, "majority", "comparisons", "majority_shares", "majority"),
    ]


def pair_table(section: Section, *, shown: int | None = None) -> Table:
    """Return a table with a row for each pair of systems.

    shown: maximum number of rows; None for all. If there are more pairs, those with the lowest p-values are shown.
    """
    pairs = section["pairs"]
    if shown is not None and len(pairs) > shown:
        pairs = sorted(pairs, key=lambda pair: pair["p"])[:shown]

    def of_judgments(key: str, heading: str, place: int) -> Column:
        return Column(key, heading, NUMBER, lambda pair: share(pair["shares"][(*pair["systems"], TIE)[place]]))

    columns = (
        Column("a", "A", says=lambda pair: pair["systems"][0]),
        Column("b", "B", says=lambda pair: pair["systems"][1]),
        numbered("units", "units"),
        of_judgments("of_a", "A", 0),
        of_judgments("of_b", "B", 1),
        of_judgments("ties", "ties", 2),
        Column("p_holm", "Holm p", NUMBER, lambda pair: Cell(p_value(pair["p_holm"]), pair["p_holm"])),
    )
    return table(f"{many(len(section['pairs']), 'pair')} of systems", columns, pairs)


def language_table(report: Section) -> Table | None:
    """Return a table of the preferences between two systems in each language.

    Return None if there is only one language, or if there are more than two systems.
    """
    if len(report["languages"]) < 2 or len(report["systems"]) != 2:
        return None
    a, b = report["systems"]
    rows = [{"language": code, **section["pairs"][0]} for code, section in report["languages"].items()]
    columns = (
        Column("language", "language", says=lambda row: language(row["language"])),
        numbered("units", "units"),
        *map(_share_column, (a, b, TIE)),
    )
    return table("preferences by language", columns, rows)


def _share_column(answer: str) -> Column:
    return Column(answer, "ties" if answer == TIE else answer, NUMBER, lambda row: share(row["shares"][answer]))


def order_table(report: Section) -> Table:
    """Return a table of three or more systems, with how often each wins and its strength.

    Strengths are left out if they are not finite.
    """
    whole = report["all"]
    columns = [
        Column("system", "system"),
        numbered("judgments", "judgments"),
        estimated("win", "preferred, ties as half"),
        *_of_ties(whole["order"], "strengths", lambda row: row["system"]),
    ]
    return table(many(len(whole["standings"]), "system"), columns, whole["standings"])


def difference_table(report: Section, *, shown: int | None = None) -> Table:
    """Return a table of the differences in strength between systems, with a row for each pair.

    shown: maximum number of rows; None for all. If there are more pairs, those whose systems have the most judgments
        are shown.
    """
    order, standings = report["all"]["order"], report["all"]["standings"]
    judged = {each["system"]: each["judgments"] for each in standings}
    rows = order["left_out"]["differences"] or order["half"]["differences"]
    if shown is not None:
        rows = sorted(rows, key=lambda row: -min(judged[system] for system in row["systems"]))[:shown]
    columns = (
        Column("a", "A", says=lambda row: row["systems"][0]),
        Column("b", "B", says=lambda row: row["systems"][1]),
        *_of_ties(order, "differences", lambda row: row["systems"]),
    )
    return table("strength of A less that of B", columns, rows)


def _of_ties(order: Mapping[str, Section], key: str, named: Callable[[dict[str, Any]], Any]) -> list[Column]:
    """Return a column for each treatment of ties, unless strengths are not finite with it.

    order: results by treatment of ties.
    key: key of the results that the columns show: "strengths" or "differences".
    named: function that returns the system or the pair of systems of a row.
    """
    headings = {"left_out": "without ties", "half": "ties as half"}
    word = "strength " if key == "strengths" else ""

    def column(ties: str, heading: str) -> Column:
        found = {str(named(each)): each for each in order[ties][key]}

        def says(row: dict[str, Any]) -> Cell:
            made = found[str(named(row))]
            return Cell(coefficient(made), made["value"])

        return Column(ties, word + heading, NUMBER, says)

    return [column(ties, heading) for ties, heading in headings.items() if order[ties][key]]


def side_table(
    people: Sequence[dict[str, Any]], names: Mapping[int, str], *, address: Address = nowhere, asked: str = ""
) -> Table:
    """Return a table of how often each person chose the first side, with the most one-sided person first.

    people: rows of `people` in the report.
    names: name to show for each annotator, by annotator key. An annotator without a name is shown by pseudonym.
    address: function that returns the address of an annotator's page.
    """

    def person(row: dict[str, Any]) -> Cell:
        name = names.get(row["annotator"], row["pseudonym"])
        return Cell(name, row["pseudonym"], address(row["annotator"]))

    columns = (
        Column("person", "annotator", says=person),
        numbered("judgments", "judgments"),
        numbered("ties", "ties"),
        numbered("first", "first side"),
        estimated("share", "share, 95% interval"),
        Column("p", "Holm p", NUMBER, lambda row: Cell(p_value(row["p"]), row["p"])),
        Column("out", "out of line", says=lambda row: "yes" if row["out_of_line"] else ""),
    )
    return table("Who chooses the first side", columns, people, slug="sides", asked=asked)


# --- Text


def words(report: Section) -> list[str]:
    """Return sentences that explain and complete the tables."""
    whole = report["all"]
    said = [
        "A share is of judgments, ties apart; its interval says what other messages like these would give, with the "
        "same people. The judgments of one message count together, as all see the same replies; of fewer than "
        f"{LEAST_LEFT_OUT} messages no interval is given. A majority is more than half of the judgments of a "
        "comparison.",
    ]
    if unfinished := whole["unfinished"]:
        is_, them = ("is", "it") if unfinished == 1 else ("are", "them")
        said.append(
            f"{unfinished:,} of {many(whole['comparisons'], 'comparison')} {is_} not answered by all who are asked "
            f"yet; majorities and the sign test leave {them} out."
        )
    if len(report["systems"]) == 2:
        [pair] = whole["pairs"]
        a, b = pair["systems"]
        said.append(
            f"Without ties, {a} has the majority of {many(pair['majority'][a], 'message')} and {b} of "
            f"{pair['majority'][b]:,}: by the sign test p = {p_value(pair['p'])} that neither is preferred. Counting "
            f"ties as half, {a} is preferred in {estimate(pair['win'])}."
        )
    elif whole["order"]:
        said += order_words(whole["order"])
    if whole["equal"]:
        said.append(
            f"Of {are(whole['equal'], 'comparison', 'comparisons')} both systems suggest the same; nobody was asked, "
            "and each counts as so many ties as people would have been asked."
        )
    return [*said, side_words(whole["sides"], whole["people"])]


def agreement_words(report: Section) -> list[str]:
    """Return a sentence about agreement. Only commands need it, because pages and cards have a section on agreement."""
    if (alpha := report["all"]["agreement"])["value"] is None:
        return []
    return [f"Krippendorff’s nominal alpha is {coefficient(alpha)}; `agreement` tells more of how far people agree."]


TIES = {"left_out": "With ties left out", "half": "With ties as half a win for both"}


def order_words(order: Mapping[str, Section]) -> list[str]:
    found = []
    if any(each["strengths"] for each in order.values()):
        found.append(
            "Strengths are those of Bradley and Terry’s model, in natural logarithms: a system is preferred to another "
            f"with the odds of e to the difference. Each is stated less that of {order['half']['reference']}, the "
            "system with the most judgments, with ties left out and with a tie as half a win for both."
        )
    for ties, each in order.items():
        if not each["strengths"]:
            parts = "; ".join(", ".join(group) for group in each["groups"])
            found.append(
                f"{TIES[ties]}, there are no finite strengths: the systems fall into groups between which nobody "
                "preferred the one, or nobody preferred the other, or that nobody compared: "
                f"{parts}. Ask about more messages, or leave out who always wins or loses."
            )
        elif each["lost"] > 1 - ENOUGH:
            found.append(
                f"{TIES[ties]}, strengths have no intervals: in {percent(each['lost'])} of the drawings some system "
                "always wins or loses, so that no strength is finite."
            )
    return found


def side_words(sides: Section, people: int) -> str:
    """Return a sentence about whether people prefer the system that they see first.

    sides: SIDES for all people together.
    people: number of people who have answered.
    """
    if not people:
        return "Nobody has answered yet, so nothing can be said of sides."
    if not sides["judgments"]:
        return "Which system stood first is not known, so nothing can be said of sides."
    out, chosen = sides["out_of_line"], sides["judgments"] - sides["ties"]
    told = (
        f"{are(out, 'person is', 'people are')} out of line: they choose one side so much more often that chance makes "
        "it less than once in a hundred such tasks"
        if out
        else "nobody is out of line"
    )
    return (
        f"The first side was chosen in {estimate(sides['share'])} of the "
        f"{are(chosen, 'judgment that was', 'judgments that were')} no tie; {told}. Which system "
        "stands first is drawn by lot for each person and message, so that whoever prefers a side prefers neither "
        "system, but makes their difference look smaller."
    )


def tables(report: Section, *, shown: int | None = None) -> list[Table]:
    """Return the tables for cards and commands. They do not include the table of people.

    shown: maximum number of pairs of systems in a table; None for all.
    """
    whole = report["all"]
    if not whole["judgments"]:
        return []
    finite = whole["order"] and any(each["differences"] for each in whole["order"].values())
    differences = [difference_table(report, shown=shown)] if finite else []
    found = (
        two_tables(whole["pairs"][0])
        if len(report["systems"]) == 2
        else [order_table(report), *differences, pair_table(whole, shown=shown)]
    )
    return [*found, *([by_language] if (by_language := language_table(report)) else [])]
