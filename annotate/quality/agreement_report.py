"""Tables, plots and sentences on inter-annotator agreement, for pages, commands and dataset cards.

agreement_statistics.py computes the figures.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from unicodedata import normalize

from django.utils.safestring import SafeString

from annotate.core.agreement.coefficients import LEAST_OTHERS
from annotate.kinds.interface_language import label_name
from annotate.reports.numbers import NOT_MEASURED, coefficient, count, percent, span
from annotate.reports.plots import Mark, Row, forest, whole_axis
from annotate.reports.tables import (
    ALL,
    LANGUAGE,
    NUMBER,
    ONE_LANGUAGE,
    SHORT,
    Cell,
    Column,
    LabelName,
    Table,
    language,
    many,
    numbered,
    table,
)

NONE = SafeString("")
Section = Mapping[str, Any]
Address = Callable[[int], str]  # returns the URL of an annotator's or a unit's page, by key

# Figure -> column heading in the agreement table, for commands (COMMAND) and pages (PAGE). Figures that a task does not
# have are omitted. For example, there is an ordinal alpha only if labels are grades.
COMMAND = {
    "units": "items",
    **{key: key for key in ("annotators", "judgments", "observed")},
    "masi": "MASI alpha",
    "jaccard": "Jaccard alpha",
    "unitizing": "unitizing alpha",
    "nominal": "alpha",
    "ordinal": "ordinal alpha",
    "ac1": "AC1",
}
PAGE = {
    "units_of_two": "items with two or more answers",
    "annotators": "annotators",
    "observed": "observed agreement, 95% interval",
    "masi": "alpha, MASI",
    "jaccard": "alpha, Jaccard",
    "unitizing": "alpha, characters of spans",
    "nominal": "alpha, nominal",
    "ordinal": "alpha, ordinal",
    "ac1": "AC1",
}
MEASURES = ("observed", "masi", "jaccard", "unitizing", "nominal", "ordinal", "ac1")
# Distance between labels -> its name in the title of a plot.
BY = {"nominal": "nominal", "ordinal": "ordinal", "masi": "MASI", "unitizing": "unitizing"}
# Model whose accuracy is measured with true labels -> its name.
MODELS = {"dawid_skene": "Dawid-Skene", "one_coin": "one-coin", "mace": "MACE", "glad": "GLAD"}


def no_link(key: int) -> str:
    """Return an empty URL, for output that cannot link to pages, such as in a terminal."""
    return ""


def measured(key: str, heading: str, digits: int) -> Column:
    """Return a column for a coefficient. Unlike a share, it can be negative and can lack an interval.

    digits: number of decimals.
    """

    def says(row: dict[str, Any]) -> Cell:
        return Cell(coefficient(row[key], digits), row[key] and row[key]["value"])

    return Column(key, heading, NUMBER, says)


def agreement_table(
    report: Section, headings: Mapping[str, str], *, digits: int = 3, on_page: bool = False, sort: str = ""
) -> Table:
    """Return a table of agreement with a row for each language and, if there are several, one for all languages.

    headings: heading of each figure (COMMAND or PAGE).
    on_page: whether the table is for a page, where the language has a single column and rows can be sorted.
    sort: requested order of the rows, from the URL.
    """
    shown_keys = [key for key in headings if key not in MEASURES or report[ALL].get(key)]
    columns = [
        measured(key, headings[key], digits) if key in MEASURES else numbered(key, headings[key]) for key in shown_keys
    ]
    rows, total = _parts(report)
    if on_page:
        language_column = Column("language", "language", SHORT, _language)
        return table(
            "Agreement by language", (language_column, *columns), rows, total=total, slug="agreement", sort=sort
        )
    return table("languages", (*LANGUAGE, *columns), [*rows, *total])


def _language(row: dict[str, Any]) -> Cell:
    return Cell("all languages") if row["language"] == ALL else language(row["language"])


def _parts(report: Section) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows for each language, and the row for all languages unless there is exactly one language."""
    languages = [{**part, "language": code} for code, part in report["languages"].items()]
    return languages, [] if len(languages) == 1 else [{**report[ALL], "language": ALL, "name": ALL}]


def label_table(
    report: Section, *, digits: int = 3, shown: int | None = None, sort: str = "", name_of: LabelName | None = None
) -> Table | None:
    """Return a table of how reliably annotators distinguish each label from all others, lowest agreement first.

    With only two labels, return None, because the alpha of each would equal the overall alpha.

    shown: maximum number of rows; None for all.
    name_of: function that returns a label's name; None to use the English name.
    """
    rows = report[ALL]["by_label"]
    if len(rows) < 3:
        return None
    columns = (
        Column("label", "label", says=lambda row: name_of(row["label"]) if name_of else row["name"]),
        numbered("units", "items with this label"),
        measured("alpha", "alpha against all other labels", digits),
    )
    return table("Agreement by label", columns, rows[:shown], slug="labels", sort=sort)


def accuracy_table(report: Section) -> Table:
    """Return a table of the majority's and each model's accuracy by language, measured with true labels.

    If answers are label sets, the table has the majority's mean F1 instead.
    """

    def accuracy_column(key: str, heading: str) -> Column:
        return Column(key, heading, NUMBER, lambda row: accuracy(row["gold"][key]))

    models = MODELS if report[ALL]["dawid_skene"] else {}
    columns = (
        *LANGUAGE,
        numbered("units", "with a true label", lambda row: row["gold"]["units"]),
        accuracy_column("majority", "majority right" if models else "mean F1 of the majority"),
        *(accuracy_column(key, f"{name} right") for key, name in models.items()),
    )
    rows, total = _parts(report)
    return table("languages", columns, [*rows, *total])


def person_column(names: Mapping[int, str], address: Address) -> Column:
    """Return a column with the annotators' names.

    names: name of each annotator, by annotator key. Annotators without a name are shown by pseudonym.
    address: function that returns the URL of an annotator's page.
    """

    def person(row: Section) -> Cell:
        name = names.get(row["annotator"], row["pseudonym"])
        return Cell(name, name.casefold(), address(row["annotator"]))

    return Column("name", "annotator", says=person)


def rest_table(
    rows: Sequence[Section], names: Mapping[int, str], *, address: Address = no_link, digits: int = 3, sort: str = ""
) -> Table:
    """Return a table of each annotator's agreement with all others, lowest agreement first.

    rows: `against_rest` in the report, or its first rows.
    names, address: see person_column.
    """
    columns = (
        person_column(names, address),
        numbered("units", "shared items"),
        measured("agreement", "agreement with the others, 95% interval", digits),
        measured("kappa", "kappa", digits),
    )
    return table("Each annotator against the others", columns, rows, slug="rest", sort=sort)


def difference_table(
    rows: Sequence[Section], *, address: Address = no_link, sort: str = "", name_of: LabelName = str
) -> Table:
    """Return a table of the units where Dawid and Skene's model chooses a label that does not have the most votes.

    Rows are sorted by the model's certainty, highest first.

    rows: `differs` in the report, or its first rows.
    name_of: function that returns a label's name.
    """

    def label_column(key: str, heading: str) -> Column:
        return Column(key, heading, says=lambda row: Cell(" or ".join(map(name_of, row[key])), row[key]))

    def votes(row: Section) -> Cell:
        return Cell(", ".join(f"{name_of(label)}: {number}" for label, number in row["votes"].items()))

    def certainty(row: Section) -> Cell:
        return Cell(percent(row["posterior"]), row["posterior"])

    columns = (
        Column("item", "record", says=lambda row: Cell(row["item"], row["item"], address(row["unit"]))),
        *([ONE_LANGUAGE] if any(row["language"] for row in rows) else []),
        Column("votes", "answers", says=votes),
        label_column("majority", "majority"),
        label_column("dawid_skene", "model"),
        Column("posterior", "the model's certainty", NUMBER, certainty),
    )
    return table("Where the model disagrees", columns, rows, slug="differs", sort=sort)


def words(report: Section) -> list[str]:
    """Return sentences that summarize overall agreement, the models, and accuracy if there are true labels."""
    part = report[ALL]
    repeats = " (including repeats)" if report["repeats"] else ""
    of_two = f"{count(part['units_of_two'])} of them" if part["units_of_two"] else "none of them"
    counted = (
        f"{_many(part['judgments'], 'judgment')} by {many(part['annotators'], 'annotator')} on "
        f"{_many(part['units'], 'item')}{repeats}, {of_two} with two or more judgments"
    )
    sentences = _set_sentences(counted, part) if part.get("masi") else _label_sentences(counted, part)
    if not part["units_of_two"]:
        sentences[0] = f"{counted}, so there is no agreement to measure."
    return sentences


def _set_sentences(counted: str, part: Section) -> list[str]:
    sentences = [
        f"{counted}: alpha is {coefficient(part['masi'], 4)} with MASI distance, {coefficient(part['jaccard'], 4)} "
        f"with Jaccard distance, and {coefficient(part['nominal'], 4)} if only equal sets agree.",
        "An annotator's agreement with the others is the mean F1 with their answers.",
    ]
    if unitizing := part.get("unitizing"):
        sentences.append(f"Alpha is {coefficient(unitizing, 4)} if each differently marked character counts.")
    if gold := part["gold"]:
        sentences.append(
            f"On {_many(gold['units'], 'item')} with true labels, the majority’s labels have a mean F1 of "
            f"{accuracy(gold['majority'])}.{_unknown(gold)}"
        )
    return sentences


def _unknown(gold: Section) -> str:
    if not gold["unknown"]:
        return ""
    return f" {_many(gold['unknown'], 'true label')} {'belongs' if gold['unknown'] == 1 else 'belong'} to no item here."


def _many(number: float, noun: str) -> str:
    """Return a number with its noun, as tables.many does. The number can be an effective sample size with decimals."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def _label_sentences(counted: str, part: Section) -> list[str]:
    model = part["dawid_skene"]
    sentences = [
        f"{counted}: alpha is {coefficient(part['nominal'], 4)}.",
        "Dawid and Skene's model differs from the label with the most votes on "
        f"{_many(len(model['differs']), 'item')}. The votes are tied on {count(model['tied'])}.",
    ]
    if not model["converged"]:
        sentences[1] += f" It did not converge in {_many(model['rounds'], 'round')}, so its figures are approximate."
    if gold := part["gold"]:
        models = ", ".join(f"{name} {accuracy(gold[key])}" for key, name in MODELS.items())
        sentences.append(
            f"On {_many(gold['units'], 'item')} with a true label, the accuracy is {accuracy(gold['majority'])} for "
            f"the majority (ties count in part), {models}.{_unknown(gold)}"
        )
        sentences += [
            f"{MODELS[key]} is significantly less accurate than the majority, so do not use its labels here."
            for key in gold["worse"]
        ]
        sentences += calibration_sentences(gold)
    return sentences


def spelling_variants(labels: Iterable[str]) -> list[list[str]]:
    """Return groups of labels that differ only in case or width."""
    groups: dict[str, list[str]] = {}
    for label in labels:
        groups.setdefault(normalize("NFKC", label).casefold(), []).append(label)
    return [group for group in groups.values() if len(group) > 1]


def variants_warning(group: list[str]) -> str:
    return (
        f"The labels {' and '.join(group)} differ only in case or width, but count as different labels. If they are "
        "the same, write them identically in the file and import it under another name."
    )


def doubts(report: Section) -> list[str]:
    """Return warnings about the interpretation of the agreement figures.

    There is a warning for each of these cases:

    - Some labels differ only in case or width.
    - Comparisons are measured by the position of the systems, not by their names.
    - Only a sample of the units is measured.
    - Nearly all answers have the same label, so alpha says little about reliability.
    """
    sentences, part = [variants_warning(group) for group in spelling_variants(report.get("labels", ()))], report[ALL]
    if report["placed"]:
        sentences.append(
            "Each item compares two of several systems. Agreement is measured by their alphabetical position "
            "and not by their names, because annotators cannot prefer a system that they do not see."
        )
    if (used := part["nominal"]["units"]) < part["units_of_two"]:
        sentences.append(
            f"Of {count(part['units_of_two'])} items with two or more answers, a random sample of {count(used)} is "
            "measured."
        )
    if few := part["few_others"]:
        others = few["others"]
        basis = f"alpha, which is {coefficient(part['nominal'])}, is based on these few"
        sentences += [
            f"Of {count(part['units_of_two'])} items with two or more answers, {count(others) if others else 'none'} "
            f"{'has' if others == 1 else 'have'} a label other than {few['label']}, so "
            f"{f'{basis} and says little about reliability' if others else 'there is no alpha'}.",
            f"AC1 is {coefficient(part['ac1'], 4)}, and observed agreement is {coefficient(part['observed'], 4)}.",
        ]
    languages = [code for code, figures in report["languages"].items() if figures["few_others"]]
    if languages and len(report["languages"]) > 1:
        sentences.append(
            f"In {', '.join(languages)}, fewer than {LEAST_OTHERS} items have a label other than the most frequent "
            "one. Alpha says little there, so look at AC1 and observed agreement."
        )
    return sentences


def calibration_sentences(gold: Section) -> list[str]:
    """Return a sentence that compares the posteriors of Dawid and Skene's model with its accuracy.

    The list is empty without posteriors.

    gold: `gold` in a SECTION of agreement_statistics.py.
    """
    sure, right = gold["sure"], gold["dawid_skene"]
    if sure is None:
        return []
    summary = f"The mean posterior of Dawid-Skene's labels is {percent(sure)}, and their accuracy is {accuracy(right)}"
    if right["low"] <= sure <= right["high"]:
        return [f"{summary}. On these items, the two agree."]
    more = "more" if sure > right["high"] else "less"
    return [f"{summary}. The model is {more} certain than accurate, so do not read a posterior as a probability."]


def accuracy(estimate: Mapping[str, Any]) -> str:
    """Format an accuracy with two decimals and its interval, such as 89.66% [89.0, 90.3]."""
    if estimate["value"] is None:
        return NOT_MEASURED
    return f"{estimate['value']:.2%} {span(estimate['low'], estimate['high'])}"


# --- Plots


def _alphas(rows: Sequence[Row], title: str) -> SafeString:
    return forest(rows, title=title, counted="units", axis=whole_axis(rows), decimals=True)


def agreement_plot(report: Section) -> SafeString:
    key = report["by"]
    if report[ALL][key]["value"] is None:
        return NONE
    parts = {code: part[key] for code, part in report["languages"].items() if part[key]["value"] is not None}
    if len(parts) != 1:
        parts[ALL] = report[ALL][key]
    rows = [Row(code, label_name(code) if code != ALL else "", (_mark(measure),)) for code, measure in parts.items()]
    return _alphas(rows, f"Krippendorff’s alpha ({BY[key]})")


def rest_plot(report: Section, names: Mapping[int, str]) -> SafeString:
    rows = [
        Row(names.get(row["annotator"], row["pseudonym"]), "", (_mark(row["agreement"]),))
        for row in report[ALL]["against_rest"]
        if row["agreement"]["value"] is not None
    ]
    return _alphas(rows, "Each annotator against the others") if rows else NONE


def _mark(measure: Section) -> Mark:
    low, high = (measure["value"] if measure[end] is None else measure[end] for end in ("low", "high"))
    return Mark(measure["value"], low, high, measure["units"])
