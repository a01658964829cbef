"""Tables and sentences on preferences between systems, for pages, commands and dataset cards.

preference_statistics.py computes the figures.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from annotate.core.estimation.resampling import LEAST_LEFT_OUT
from annotate.core.measures.paired_comparisons import MIN_FINITE
from annotate.quality.agreement_report import Address, Section, no_link, person_column
from annotate.reports.numbers import coefficient, estimate, p_value, percent
from annotate.reports.tables import NUMBER, Cell, Column, Table, are, estimated, language, many, numbered, share, table

TIE, NONE = "tie", "none"


# --- Tables


def answer_tables(pair: Section) -> list[Table]:
    """Return two tables for a pair of systems: how often each was preferred, overall and by a majority."""
    a, b = pair["systems"]
    display_names = {a: a, b: b, TIE: "no difference", NONE: "no majority"}

    def answers(title: str, answer: str, number: str, shares: str, counts: str) -> Table:
        columns = Column("answer", answer), numbered("number", number), estimated("share", "share, 95% interval")
        numbers = pair[counts]
        rows = [
            {"answer": display_names[key], "number": numbers[key], "share": figures}
            for key, figures in pair[shares].items()
        ]
        return table(title, columns, rows)

    title = f"{many(pair['judgments'], 'judgment')} of {many(pair['units'], 'comparison')}"
    majorities = f"majorities of {many(pair['finished'], 'comparison')}"
    return [
        answers(title, "preferred", "judgments", "shares", "counts"),
        answers(majorities, "majority", "comparisons", "majority_shares", "majority"),
    ]


def pair_table(section: Section, *, shown: int | None = None) -> Table:
    """Return a table of preferences with a row for each pair of systems.

    shown: maximum number of rows; None for all. If there are more, the pairs with the lowest p-values are shown.
    """
    pairs = section["pairs"]
    if shown is not None and len(pairs) > shown:
        pairs = sorted(pairs, key=lambda pair: pair["p"])[:shown]

    def of_judgments(key: str, heading: str, place: int) -> Column:
        return Column(key, heading, NUMBER, lambda pair: share(pair["shares"][(*pair["systems"], TIE)[place]]))

    columns = (
        Column("a", "A", says=lambda pair: pair["systems"][0]),
        Column("b", "B", says=lambda pair: pair["systems"][1]),
        numbered("units", "comparisons"),
        of_judgments("of_a", "A", 0),
        of_judgments("of_b", "B", 1),
        of_judgments("ties", "ties", 2),
        Column("p_holm", "Holm p", NUMBER, lambda pair: Cell(p_value(pair["p_holm"]), pair["p_holm"])),
    )
    return table(f"{many(len(section['pairs']), 'pair')} of systems", columns, pairs)


def language_table(report: Section) -> Table | None:
    """Return a table of the preferences between two systems by language.

    Return None if there is only one language, or more than two systems.
    """
    if len(report["languages"]) < 2 or len(report["systems"]) != 2:
        return None
    a, b = report["systems"]
    rows = [{"language": code, **section["pairs"][0]} for code, section in report["languages"].items()]
    columns = (
        Column("language", "language", says=lambda row: language(row["language"])),
        numbered("units", "comparisons"),
        *map(_share_column, (a, b, TIE)),
    )
    return table("preferences by language", columns, rows)


def _share_column(answer: str) -> Column:
    return Column(answer, "ties" if answer == TIE else answer, NUMBER, lambda row: share(row["shares"][answer]))


def order_table(report: Section) -> Table:
    """Return a table of three or more systems, with their win rates and strengths.

    Strengths are left out if they are not finite.
    """
    whole = report["all"]
    columns = [
        Column("system", "system"),
        numbered("judgments", "judgments"),
        estimated("win", "preferred, ties as half"),
        *_tie_columns(whole["order"], "strengths", lambda row: row["system"]),
    ]
    return table(many(len(whole["standings"]), "system"), columns, whole["standings"])


def difference_table(report: Section, *, shown: int | None = None) -> Table:
    """Return a table of differences in strength, with a row for each pair of systems.

    shown: maximum number of rows; None for all. If there are more, the pairs whose systems have the most judgments are
        shown.
    """
    order, standings = report["all"]["order"], report["all"]["standings"]
    judged = {standing["system"]: standing["judgments"] for standing in standings}
    rows = order["left_out"]["differences"] or order["half"]["differences"]
    if shown is not None:
        rows = sorted(rows, key=lambda row: -min(judged[system] for system in row["systems"]))[:shown]
    columns = (
        Column("a", "A", says=lambda row: row["systems"][0]),
        Column("b", "B", says=lambda row: row["systems"][1]),
        *_tie_columns(order, "differences", lambda row: row["systems"]),
    )
    return table("strength of A minus strength of B", columns, rows)


def _tie_columns(order: Mapping[str, Section], key: str, system_of: Callable[[dict[str, Any]], Any]) -> list[Column]:
    """Return a column for each treatment of ties that leads to finite strengths.

    order: results by treatment of ties.
    key: key of the results that the columns show: "strengths" or "differences".
    system_of: function that returns the system or the pair of systems of a row.
    """
    headings = {"left_out": "without ties", "half": "ties as half"}
    word = "strength " if key == "strengths" else ""

    def column(ties: str, heading: str) -> Column:
        results = {str(system_of(result)): result for result in order[ties][key]}

        def says(row: dict[str, Any]) -> Cell:
            strength = results[str(system_of(row))]
            return Cell(coefficient(strength), strength["value"])

        return Column(ties, word + heading, NUMBER, says)

    return [column(ties, heading) for ties, heading in headings.items() if order[ties][key]]


def side_table(
    people: Sequence[dict[str, Any]], names: Mapping[int, str], *, address: Address = no_link, sort: str = ""
) -> Table:
    """Return a table of how often each annotator chose the first side, most one-sided first.

    people: rows of `people` in the report.
    names, address: see agreement_report.person_column.
    """
    columns = (
        person_column(names, address),
        numbered("judgments", "judgments"),
        numbered("ties", "ties"),
        numbered("first", "first side"),
        estimated("share", "share, 95% interval"),
        Column("p", "Holm p", NUMBER, lambda row: Cell(p_value(row["p"]), row["p"])),
        Column("out", "outlier", says=lambda row: "yes" if row["out_of_line"] else ""),
    )
    return table("Who chooses the first side", columns, people, slug="sides", sort=sort)


# --- Text


def words(report: Section) -> list[str]:
    """Return sentences that explain and complete the tables."""
    whole = report["all"]
    sentences = [
        "Shares are of all judgments, and ties count as a separate answer. The intervals apply to similar messages "
        "judged by the same annotators, so the judgments of a message are treated as a cluster. With fewer than "
        f"{LEAST_LEFT_OUT} messages, there is no interval. A majority is more than half of the judgments of a "
        "comparison.",
    ]
    if unfinished := whole["unfinished"]:
        is_, them = ("is", "it") if unfinished == 1 else ("are", "them")
        sentences.append(
            f"{unfinished:,} of {many(whole['comparisons'], 'comparison')} {is_} not fully answered yet. Majorities "
            f"and the sign test do not include {them}."
        )
    if len(report["systems"]) == 2:
        [pair] = whole["pairs"]
        a, b = pair["systems"]
        sentences.append(
            f"Without ties, {a} has the majority in {many(pair['majority'][a], 'message')} and {b} in "
            f"{pair['majority'][b]:,}. The sign test of no preference has p = {p_value(pair['p'])}. Counting ties as "
            f"half, {a} is preferred in {estimate(pair['win'])}."
        )
    elif whole["order"]:
        sentences += order_words(whole["order"])
    if whole["equal"]:
        sentences.append(
            f"In {are(whole['equal'], 'comparison', 'comparisons')}, both systems suggest the same replies. No "
            "annotator was asked, and each counts as one tie per annotator who would have been asked."
        )
    return [*sentences, side_words(whole["sides"], whole["people"])]


def agreement_words(report: Section) -> list[str]:
    """Return a sentence on agreement for commands. Pages and cards have a separate section on it."""
    if (alpha := report["all"]["agreement"])["value"] is None:
        return []
    return [f"Krippendorff’s nominal alpha is {coefficient(alpha)}. For more figures, run `agreement`."]


TIES = {"left_out": "Without ties", "half": "Counting ties as half a win for both"}


def order_words(order: Mapping[str, Section]) -> list[str]:
    sentences = []
    if any(results["strengths"] for results in order.values()):
        sentences.append(
            "Strengths are from Bradley and Terry’s model, in natural logarithms: the odds that a system is preferred "
            "to another are e to the power of their difference. Each strength is relative to "
            f"{order['half']['reference']}, the system with the most judgments, once without ties and once with a tie "
            "as half a win for both."
        )
    for ties, results in order.items():
        if not results["strengths"]:
            parts = "; ".join(", ".join(group) for group in results["groups"])
            sentences.append(
                f"{TIES[ties]}, there are no finite strengths, because the systems fall into groups that were never "
                f"compared, or a group was never preferred to another: {parts}. Ask about more messages, or remove "
                "systems that always win or lose."
            )
        elif results["lost"] > 1 - MIN_FINITE:
            sentences.append(
                f"{TIES[ties]}, strengths have no intervals: in {percent(results['lost'])} of the resamples, a system "
                "always wins or loses, so no strength is finite."
            )
    return sentences


def side_words(sides: Section, people: int) -> str:
    """Return a sentence on whether annotators prefer the system that they see first.

    sides: SIDES dict for all annotators, see preference_statistics.py.
    people: number of annotators who have answered.
    """
    if not people:
        return "Nobody has answered yet, so a preference for a side is unknown."
    if not sides["judgments"]:
        return "The order of the systems is unknown, and so is any preference for a side."
    number, chosen = sides["out_of_line"], sides["judgments"] - sides["ties"]
    outliers = (
        f"{are(number, 'annotator is an outlier', 'annotators are outliers')}: they choose one side so often that this "
        "happens by chance in fewer than one in a hundred such tasks"
        if number
        else "no annotator is an outlier"
    )
    return (
        f"The first side was chosen in {estimate(sides['share'])} of {many(chosen, 'judgment')} without a tie; "
        f"{outliers}. The order is random for each annotator and message, so a preference for a side favours neither "
        "system, but makes their difference look smaller."
    )


def tables(report: Section, *, shown: int | None = None) -> list[Table]:
    """Return the tables for cards and commands. They exclude the table of annotators.

    shown: maximum number of pairs of systems in a table; None for all.
    """
    whole = report["all"]
    if not whole["judgments"]:
        return []
    finite = whole["order"] and any(results["differences"] for results in whole["order"].values())
    differences = [difference_table(report, shown=shown)] if finite else []
    main_tables = (
        answer_tables(whole["pairs"][0])
        if len(report["systems"]) == 2
        else [order_table(report), *differences, pair_table(whole, shown=shown)]
    )
    return [*main_tables, *([by_language] if (by_language := language_table(report)) else [])]
