"""What all reports of `evaluate` have in common: the title, the sets of records, and which of two systems is better."""

from collections.abc import Mapping
from typing import Any

from annotate.reports.tables import DIGEST, NAME, Column, many, numbered


def title(report: dict) -> str:
    subject = report["predictor"]["spelled"]
    if comparison := report.get("comparison"):
        subject = f"{subject} against {comparison['other']['spelled']}"
    return f"{subject}, measured on {many(len(report['gold']), 'gold set')}"


def names_of(report: dict) -> tuple[str, str]:
    """Of the two systems that a report compares."""
    return report["predictor"]["spelled"], report["comparison"]["other"]["spelled"]


def better_of(apart: Mapping[str, Any] | None, names: tuple[str, str]) -> str:
    """The name of the better one, if the interval of the difference says so; else nothing."""
    return dict(zip(("first", "second"), names, strict=True)).get(apart.get("better"), "") if apart else ""


def sets_of(noun: str) -> tuple[Column, ...]:
    """The columns of the table of sets, of which each row is a `noun`, as in "records"."""
    return (
        Column("name", "gold set"),
        Column("design", "design", NAME, lambda gold: gold.get("design", "")),
        numbered("rows", noun),
        Column("finished", "finished", says=lambda gold: "yes" if gold["finished"] else "NO"),
        Column("predictor", "drawn by", NAME, lambda gold: gold.get("predictor", "")),
        Column("folder_name", "folder", NAME),
        Column("digest", "SHA-256", DIGEST),
    )
