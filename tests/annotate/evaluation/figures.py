"""Functions that evaluate a predictor and look up figures in the report."""

import csv
import json
from fractions import Fraction

import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.evaluation.posts import evaluate
from annotate.evaluation.subjects import read_sets

KIND = """title = "How content is the reviewer?"
form = "grades"

[[layout]]
style = "passage"
fields = ["review"]

[[answers]]
code = "3"
name = "Content"

[[answers]]
code = "2"
name = "Between"

[[answers]]
code = "1"
name = "Annoyed"

[options]
redundancy = 1
"""

# The detectors agree on German on 60 posts and on English on 20, half of each audited; 20 posts are disputed.
VOTER = (
    (27, "de", "audited", "de", "de"),
    (2, "de", "audited", "en", "de"),
    (1, "de", "audited", "und", "de"),
    (30, "de", "agreed", "", "de"),
    (10, "en", "audited", "en", "en"),
    (10, "en", "agreed", "", "en"),
    (6, "", "disputed", "de", "de"),
    (2, "", "disputed", "de", "en"),
    (8, "", "disputed", "en", "en"),
    (4, "", "disputed", "und", "en"),
)


def refusal(*arguments):
    """Return the error message of `evaluate` for invalid arguments."""
    with pytest.raises(CommandError) as refused:
        call_command("evaluate", *map(str, arguments))
    return str(refused.value)


def in_three_forms(out, capsys, *arguments):
    """Return the output of `evaluate`, its HTML, its report, and the words of all three with single spaces."""
    capsys.readouterr()
    call_command("evaluate", *map(str, arguments), "--out", str(out))
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100
    markdown, html = ((out / f"report.{suffix}").read_text(encoding="utf-8") for suffix in ("md", "html"))
    words = [" ".join(form.split()) for form in (text, markdown, html)]
    return text, html, json.loads((out / "report.json").read_text()), words


def as_percent(row):
    return f"{100 * row['value']:.1f}% [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"


def run(subject, *folders, unfinished=False, allow_erased=False, **options):
    return evaluate(subject, read_sets(folders, unfinished=unfinished, allow_erased=allow_erased), **options)


def figures(report, measure, **of):
    """Return the only row of a report, or of its comparison, with this measure and slice."""
    [row] = [row for row in report["rows"] if (row["measure"], row["of"]) == (measure, of)]
    return row


def accuracy(report, posts="with und", measure="accuracy"):
    return figures(report, measure, posts=posts)


def by_label(report, measure):
    """Return the rows of a measure by label."""
    rows = [row for row in report["rows"] if row["measure"] == measure and [*row["of"]] == ["label"]]
    return {row["of"]["label"]: row for row in rows}


def values(report, measure):
    return {label: row["value"] for label, row in by_label(report, measure).items()}


def means(report, measure, labels="all labels"):
    """Return (posts, mean, labels) for each mean."""
    rows = [row for row in report["rows"] if row["measure"] == f"mean_{measure}" and row["of"]["labels"] == labels]
    return [(row["of"]["posts"], row["value"], row["note"].removeprefix("mean over ")) for row in rows]


def measures_of(report):
    return {row["measure"] for row in report["rows"]}


def close(number):
    return pytest.approx(float(Fraction(number)))


def interval(estimate):
    return estimate["low"], estimate["high"]


def rows_of(gold):
    return [json.loads(line) for line in (gold / "gold.jsonl").read_text(encoding="utf-8").splitlines()]


def written(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",").writerows(rows)
    return path
