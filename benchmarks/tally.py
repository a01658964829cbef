"""The result of a whole run: the exported gold set compared with the truth. Only the exported files are read."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.tables import share, show
from benchmarks.world import World, key_of

WAYS = ("round 1", "round 2", "adjudication", "discarded", "unfinished")
STRATA = ("agreed", "audited", "contested", "disputed")
_COLUMNS = [
    *("id", "label", "text", "stage", "stratum", "agreed", "round", "judged_as", "votes", "judgments", "transitions"),
]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one post. label: None if it is not in the gold set. way: agreed, or one of WAYS."""

    id: str
    label: str | None
    truth: str
    language: str
    stratum: str
    way: str
    copy: bool

    @property
    def wrong(self) -> bool:
        return self.label is not None and self.label != self.truth


def read_gold(folder: Path) -> list[dict]:
    """Return all rows of an export: those with a label and those left out."""
    rows = pq.read_table(folder / "gold.parquet", columns=_COLUMNS).to_pylist()
    left_out = folder / "left_out.jsonl"  # not there if it would be empty
    if not left_out.exists():
        return rows
    with open(left_out, encoding="utf-8") as file:
        return rows + [json.loads(line) for line in file]


def outcomes(rows: Iterable[dict], world: World) -> list[Outcome]:
    return [
        Outcome(
            id=row["id"],
            label=row["label"],
            truth=world.truth[row["id"]],
            language=world.language[row["id"]],
            stratum=row["stratum"],
            way=_way(row),
            copy=row["judged_as"] is not None,
        )
        for row in rows
    ]


def _way(row: dict) -> str:
    if row["stage"] == "DISCARDED":
        return "discarded"
    ways = {"agreed": "agreed", "settled": "adjudication", "answered": f"round {row['round']}"}
    return ways.get(row["transitions"][-1]["event"], "unfinished")


def exported_judgments(rows: Iterable[dict]) -> Counter[tuple[str, ...]]:
    """Count (key of the text, kind, label, reason, comment), as in Log.acknowledged. Copies have no judgments."""
    return Counter(
        (key_of(row["text"]), *(judgment[name] or "" for name in ("kind", "label", "reason", "comment")))
        for row in rows
        if row["judged_as"] is None
        for judgment in row["judgments"]
        if judgment["voided_at"] is None
    )


Which = Callable[[Outcome], bool]


def shares_table(outcomes: list[Outcome]) -> None:
    """Show the shares of all and of the disputed, by posts and by units (the distinct texts, which people judge)."""
    units = [outcome for outcome in outcomes if not outcome.copy]
    rows = []

    def add(name: str, which: Which, whole: Which) -> None:
        row: list[object] = [name]
        for group in (units, outcomes):
            count, of = sum(map(which, group)), sum(map(whole, group))
            row += [count, share(count, of)]
        rows.append(row)

    def disputed(outcome: Outcome) -> bool:
        return outcome.stratum == "disputed"

    def agreed_on(outcome: Outcome) -> bool:
        return not disputed(outcome)

    add("all", lambda _: True, lambda _: True)
    add("agreed on", agreed_on, lambda _: True)
    for stratum in ("audited", "contested"):
        add(f"  {stratum}, of these", lambda outcome, name=stratum: outcome.stratum == name, agreed_on)
    add("disputed", disputed, lambda _: True)
    for way in WAYS:
        add(f"  {way}, of the disputed", lambda outcome, way=way: disputed(outcome) and outcome.way == way, disputed)
    show("How posts came to their labels", ["", "units", "share", "posts", "share"], rows)


def errors(outcomes: Iterable[Outcome], which: Which = lambda _: True) -> tuple[int, int]:
    """Return the numbers of wrong and of labelled posts among those chosen."""
    labelled = [outcome for outcome in outcomes if outcome.label is not None and which(outcome)]
    return sum(outcome.wrong for outcome in labelled), len(labelled)


def errors_table(outcomes: list[Outcome]) -> None:
    def of(stratum: str, also: Which = lambda _: True) -> Which:
        return lambda outcome: outcome.stratum == stratum and also(outcome)

    def pidgin(outcome: Outcome) -> bool:
        return outcome.language == "pcm"

    groups: list[tuple[str, Which]] = [
        ("agreed", of("agreed")),
        ("  without Nigerian Pidgin", of("agreed", lambda outcome: not pidgin(outcome))),
        ("  Nigerian Pidgin alone", of("agreed", pidgin)),
        ("audited", of("audited")),
        ("contested", of("contested")),
        ("disputed", of("disputed")),
        *((f"  {way}", of("disputed", lambda outcome, way=way: outcome.way == way)) for way in WAYS[:3]),
        ("  Nigerian Pidgin alone", of("disputed", pidgin)),
        ("whole gold set", lambda _: True),
    ]
    units = [outcome for outcome in outcomes if not outcome.copy]
    rows = []
    for name, which in groups:
        row: list[object] = [name]
        for group in (units, outcomes):
            wrong, labelled = errors(group, which)
            row += [labelled, wrong, share(wrong, labelled), share(labelled - wrong, labelled)]
        rows.append(row)
    head = ["stratum", "units", "wrong", "error", "accuracy", "posts", "wrong", "error", "accuracy"]
    show("Labels in the exported gold set against the truth", head, rows)


def confusions(outcomes: Iterable[Outcome], which: Which) -> str:
    """Return the wrong labels with their truths, the commonest first: `ms for id 4, ...`."""
    counts = Counter((outcome.label, outcome.language) for outcome in outcomes if outcome.wrong and which(outcome))
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{label} for {language} {count:,}" for (label, language), count in ordered) or "none"
