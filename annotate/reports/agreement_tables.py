"""What agreeing.py reports, put into tables and words: for the command, the manager's page and the dataset card.

Nothing is counted here.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from annotate.reports.numbers import NOT_MEASURED, coefficient, count, estimate, span
from annotate.reports.predictor_report import LANGUAGE, NUMBER, TEXT, Table, name_of

ALL = "all"
Section = Mapping[str, Any]


# Heading -> what a section says below it.
Columns = Sequence[tuple[str, Callable[[Section], str]]]
COLUMNS: Columns = (
    *((key, lambda part, key=key: count(part[key])) for key in ("units", "annotators", "judgments")),
    ("observed", lambda part: estimate(part["observed"])),
    ("alpha", lambda part: coefficient(part["nominal"])),
)


def agreement_table(report: Section, columns: Columns = COLUMNS, *, ordinal: str = "ordinal alpha") -> Table:
    """A row a language, and one in all where there are several. ordinal: the heading of that alpha, if there is one."""
    graded = [(ordinal, lambda part: coefficient(part["ordinal"]))] if report["ordered"] else []
    told = [*columns, *graded]
    rows = [(code, name, *(said(part) for _, said in told)) for code, name, part in _parts(report)]
    return Table("languages", (*LANGUAGE, *((heading, NUMBER) for heading, _ in told)), rows)


def accuracy_table(report: Section) -> Table:
    """Where true labels were given: how often they are met."""
    columns = (*LANGUAGE, ("with a true label", NUMBER), ("majority right", NUMBER), ("Dawid-Skene right", NUMBER))
    rows = [
        (
            code,
            name,
            count(part["gold"]["units"]),
            *(accuracy(part["gold"][how]) for how in ("majority", "dawid_skene")),
        )
        for code, name, part in _parts(report)
    ]
    return Table("languages", columns, rows)


def rest_table(part: Section, names: Mapping[int, str], most: int | None = None) -> Table:
    """Each annotator of a section against the rest, who agrees least first. names: by primary key, or pseudonyms."""
    columns = (("annotator", TEXT), ("units shared", NUMBER), ("agreement", NUMBER), ("kappa", NUMBER))
    rows = [
        (
            names.get(one["annotator"], one["pseudonym"]),
            count(one["units"]),
            estimate(one["agreement"]),
            coefficient(one["kappa"]),
        )
        for one in part["against_rest"][:most]
    ]
    return Table("annotators", columns, rows)


def difference_table(part: Section, most: int | None = None) -> Table:
    """The units of which Dawid and Skene's model says what no label with the most votes is, the surest first."""
    columns = (("item", TEXT), ("votes", TEXT), ("Dawid-Skene", TEXT), ("posterior", NUMBER))
    rows = [
        (
            unit["item"],
            ", ".join(f"{label}: {votes}" for label, votes in unit["votes"].items()),
            " or ".join(unit["dawid_skene"]),
            f"{unit['posterior']:.3f}",
        )
        for unit in part["dawid_skene"]["differs"][:most]
    ]
    return Table("units", columns, rows)


def words(report: Section) -> list[str]:
    """A sentence on the agreement in all, one on Dawid and Skene's model, and one on the true labels, if there are."""
    part, model = report[ALL], report[ALL]["dawid_skene"]
    repeats = " (repeats counted)" if report["repeats"] else ""
    told = [
        f"{count(part['judgments'])} judgments of {count(part['annotators'])} annotators on {count(part['units'])} "
        f"units{repeats}, {count(part['units_of_two'])} of them judged by two or more: alpha is "
        f"{coefficient(part['nominal'], 4)}.",
        f"Dawid and Skene's model differs from what has the most votes on {count(len(model['differs']))} units; on "
        f"{count(model['tied'])} the votes tie.",
    ]
    if not model["converged"]:
        told[1] += f" It has not converged in {count(model['rounds'])} rounds, so its figures are no maximum."
    if gold := part["gold"]:
        unknown = f" {count(gold['unknown'])} true labels are of no unit here." if gold["unknown"] else ""
        told.append(
            f"Of {count(gold['units'])} units with a true label the majority, ties counted by their shares, has "
            f"{accuracy(gold['majority'])} right, and Dawid-Skene {accuracy(gold['dawid_skene'])}.{unknown}"
        )
    return told


def accuracy(made: Mapping[str, Any]) -> str:
    """89.66% [89.0, 90.3]: to the hundredth, as such sets are published."""
    if made["value"] is None:
        return NOT_MEASURED
    return f"{made['value']:.2%} {span(made['low'], made['high'])}"


def _parts(report: Section) -> list[tuple[str, str, Section]]:
    """Code, name and section of each language, and of all where there are several or none is known."""
    languages = [(code, name_of(code), part) for code, part in report["languages"].items()]
    return languages if len(languages) == 1 else [*languages, (ALL, "", report[ALL])]
