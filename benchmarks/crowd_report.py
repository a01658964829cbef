"""Tables of the crowd benchmark: the pausing rule, exactly and over many runs, and the effect of each guard."""

from collections.abc import Mapping, Sequence
from statistics import mean, quantiles

from annotate.core.pause_rule import ACCURACIES, ANSWERS, CHOICES, Row, Rule, mean_until_pause, table
from benchmarks.crowd_seeds import EntryTest, Guard, Run, Work, exactly, paused_by
from benchmarks.crowd_world import Labeler
from benchmarks.tables import show

# Half-open intervals of accuracy.
BANDS = ((0.6, 0.65), (0.65, 0.7), (0.7, 0.75), (0.75, 0.8), (0.8, 0.85), (0.85, 0.9), (0.9, 0.951))


def named(rule: Rule) -> str:
    return f"below {rule.below:.0%}, {rule.confidence:.0%} sure, from the {rule.least}th"


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def exact_table() -> None:
    """Print for each rule the probability of a pause, by accuracy and number of gold answers."""
    rows: dict[Rule, list[Row]] = {rule: table([rule]) for rule in CHOICES}
    for number in ANSWERS:
        show(
            f"Chance (%) to have been paused by the {number}th gold answer, exactly",
            ["rule", *(f"{accuracy:.0%} right" for accuracy in ACCURACIES)],
            [[named(rule), *(percent(dict(row.by)[number]) for row in rows[rule])] for rule in CHOICES],
        )
    show(
        "Gold answers until the pause, on average, exactly",
        ["rule", *(f"{accuracy:.0%} right" for accuracy in ACCURACIES if accuracy <= 0.6)],
        [
            [named(rule), *(_mean_until(rule, accuracy) for accuracy in ACCURACIES if accuracy <= 0.6)]
            for rule in CHOICES
        ],
    )


def _mean_until(rule: Rule, accuracy: float) -> str:
    answers = mean_until_pause(accuracy, rule)
    return "-" if answers is None else f"{answers:.1f}"


def groups(runs: Sequence[Run]) -> dict[str, list[Work]]:
    """Return the people of all runs by type."""
    work = [person for run in runs for person in run.work if person.admitted]
    by_type = {"spammers": [person for person in work if person.labeler.spams]}
    for low, high in BANDS:
        title = f"{100 * low:.0f}% to {100 * high:.0f}% right"
        by_type[title] = [p for p in work if not p.labeler.spams and low <= p.labeler.accuracy < high]
    return {title: people for title, people in by_type.items() if people}


def seeds_table(runs: Mapping[Rule, Sequence[Run]]) -> None:
    """Print for each rule who was paused over many runs, next to the exact values."""
    for rule, made in runs.items():
        rows = []
        for title, people in groups(made).items():
            stopped = [person for person in people if person.paused]
            cells: list[object] = [title, len(people)]
            for number in (10, 20):
                cells += [percent(paused_by(people, number)), percent(exactly(people, number, rule))]
            units = f"{mean(person.answered for person in stopped):.0f}" if stopped else "-"
            rows.append([*cells, percent(len(stopped) / len(people)), units])
        show(
            f"Paused (%): {named(rule)}; {len(made)} runs",
            ["", "people", "by 10th", "exact", "by 20th", "exact", "in the end", "units until"],
            rows,
        )


def guards_table(runs: Mapping[str, Sequence[Run]], below: float) -> None:
    """Print the effect of a task's guards: the share of right labels, and the cost."""
    rows = []
    for title, made in runs.items():
        shares = [100 * run.accuracy for run in made]
        ends = quantiles(shares, n=40) if len(shares) > 1 else shares * 39
        rows.append(
            [
                title,
                mean(shares),
                f"{ends[0]:.1f} to {ends[-1]:.1f}",
                mean(sum(person.admitted for person in run.work) for run in made),
                *(mean(_paused(run, kind, below) for run in made) for kind in ("spammers", "worse", "good")),
                mean(run.answers for run in made),
                mean(run.voided for run in made),
                mean(sum(len(person.gold) for person in run.work) for run in made),
            ]
        )
    show(
        f"Right labels (%) and who was paused, on average (worse: honest, but right in less than {below:.0%})",
        ["", "right", "95% of runs", "admitted", "spammers", "worse", "good", "answers", "voided", "gold"],
        rows,
    )


def kind_of(labeler: Labeler, below: float) -> str:
    return "spammers" if labeler.spams else "worse" if labeler.accuracy < below else "good"


def _paused(run: Run, kind: str, below: float) -> int:
    return sum(person.paused and kind_of(person.labeler, below) == kind for person in run.work)


def table_of_tests(tests: Sequence[EntryTest]) -> None:
    show(
        "Chance (%) to pass the test, each try of other questions, exactly",
        ["test", *(f"{accuracy:.0%} right" for accuracy in ACCURACIES)],
        [
            [
                f"{test.items} questions, {test.mark:.0%} right, {test.tries} tries",
                *(percent(test.chance(accuracy)) for accuracy in ACCURACIES),
            ]
            for test in tests
        ],
    )


def guards(test: EntryTest, rule: Rule, gold_share: float, gold_pool: int) -> dict[str, Guard]:
    """Return the guards with and without the test, and with and without pausing."""
    return {
        "no guard": Guard(None, None),
        "test": Guard(test, None),
        "gold answers": Guard(None, rule, gold_share, gold_pool),
        "both": Guard(test, rule, gold_share, gold_pool),
    }
