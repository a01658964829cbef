"""A crowd with spammers: the effect of the test, the gold answers and pausing.

Thirty people with accuracies from 60% to 95%, and three spammers, label 2,000 generated pairs of a question and a
passage, three people per pair. Spammers pass the test honestly and then answer at random. First, four tasks with the
same records run over the API of a real server, with and without the test, and with and without gold answers. When no
units are left, the manager voids the answers of paused people, and their units are asked again. Then many runs are
simulated without a server. No data are needed.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

from annotate.core.pause_rule import CHOICES, DEFAULT, Rule
from benchmarks import crowd_report
from benchmarks.clients import Log
from benchmarks.crowd_clients import Replies, let_loose
from benchmarks.crowd_seeds import EntryTest, Guard
from benchmarks.crowd_seeds import run as run_once
from benchmarks.crowd_world import LANGUAGE, PRACTICE, QUEUE, TEST, WORK, Labeler, Record, World, crowd, records
from benchmarks.place import BenchmarkFailed, Place, new_place, serving
from benchmarks.tables import show

NAME = "crowd"
REDUNDANCY = 3
TEST_OF_TASK = EntryTest(10, 0.8, 2)
TESTS = (EntryTest(8, 0.75, 3), EntryTest(10, 0.8, 3), TEST_OF_TASK, EntryTest(20, 0.8, 2))
# Records for practice and for the test.
PRACTISED, TESTED = 4, 40


def add_options(parser) -> None:
    parser.add_argument("--crowd-units", type=int, default=2_000, help="records to label (default %(default)s)")
    parser.add_argument("--crowd-seeds", type=int, default=200, help="runs without a server (default %(default)s)")
    parser.add_argument("--gold-share", type=float, default=0.15, help="of what people are given (default %(default)s)")
    parser.add_argument("--gold-pool", type=int, default=60, help="gold answers in the queue (default %(default)s)")


@dataclass
class Outcome:
    """The result of one task."""

    replies: Replies
    log: Log
    facts: dict
    # For each voiding by the manager: name -> units reopened.
    voided: list[dict[str, int]]


def run(folder: Path, options) -> None:
    labelers = crowd(30, 3)
    counts = {WORK: options.crowd_units, PRACTICE: PRACTISED, TEST: TESTED, QUEUE: options.gold_pool}
    world = World(records(counts, options.seed), options.seed)
    guards = crowd_report.guards(TEST_OF_TASK, DEFAULT, options.gold_share, options.gold_pool)
    print(
        f"{options.crowd_units:,} units, {REDUNDANCY} answers each; {len(labelers)} people, of whom "
        f"{sum(labeler.spams for labeler in labelers)} spam; gold answers: {options.gold_share:.0%} of what people are "
        f"given, {options.gold_pool} in all; seed {options.seed}; {os.cpu_count()} cores.\n",
        flush=True,
    )
    outcomes, took = {}, {}
    for title, guard in guards.items():
        # Use separate installations, because nobody receives a gold answer again that they had in an earlier task.
        with new_place() as place:
            tokens = set_up(place, world, labelers)
            with serving(place, workers=2, threads=4) as address:
                outcomes[title] = one_task(place, address, NAME, guard, tokens, world, options.seed)
            took |= {f"{title}: {step}": seconds for step, seconds in place.took.items()}
    report(outcomes, labelers, world, DEFAULT)
    show("Seconds", ["step", "s"], [[step, seconds] for step, seconds in took.items()])
    check(outcomes, options.crowd_units)
    many(options, labelers, guards)


def write_records(world: World, folder: Path) -> tuple[Path, Path]:
    """Write the corpus with all records, and the file of gold answers."""
    corpus, gold = folder / "records.jsonl", folder / "gold.jsonl"
    records = world.records.values()
    with open(corpus, "w", encoding="utf-8") as file:
        for record in records:
            row = {"id": record.id, "language": LANGUAGE, "question": record.question, "passage": record.passage}
            file.write(json.dumps(row) + "\n")
    with open(gold, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(gold_row(record)) + "\n" for record in records if record.purpose != WORK)
    return corpus, gold


def gold_row(record: Record) -> dict[str, str]:
    why = "The passage tells it." if record.truth == "1" else "The passage tells something else."
    return {"id": record.id, "label": record.truth, "purpose": record.purpose, "explanation": why}


def set_up(place: Place, world: World, labelers: list[Labeler]) -> dict[Labeler, str]:
    """Import the records and create the accounts. Return the tokens."""
    corpus, _ = write_records(world, place.folder)
    place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
    with place.timed("set up"):
        place.manage("django", "migrate", "--verbosity=0")
        place.manage("import_corpus", NAME, corpus, "--fields", "question passage", "--licence", "CC0-1.0")
        table = place.folder / "annotators.csv"
        rows = [f"{labeler.name},Invented,{LANGUAGE}:5" for labeler in labelers]
        table.write_text("\n".join(["username,name,languages", *rows]) + "\n", encoding="utf-8")
        place.manage("add_annotators", table)
        names = [labeler.name for labeler in labelers]
        call = f"from annotate.actions.registry import call_command as call\nfor n in {names}: call('create_token', n)"
        tokens = place.manage("django", "shell", "--verbosity=0", "--command", call).split()
    return dict(zip(labelers, tokens, strict=True))


def task_options(guard: Guard) -> dict[str, object]:
    """Return the options of open_task for a task with this guard."""
    test, rule = guard.test, guard.rule
    options: dict[str, object] = {"redundancy": REDUNDANCY, "gold-share": guard.gold_share, "test-items": 0}
    if test:
        options |= {"test-items": test.items, "pass-mark": test.mark, "tries": test.tries}
    if rule:
        options |= {"pause-below": rule.below}
    return options


def one_task(
    place: Place, address: str, name: str, guard: Guard, tokens: Mapping[Labeler, str], world: World, seed: str
) -> Outcome:
    """Open a task and let everyone answer. Repeat this after each voiding until no more people are paused."""
    options = [f"--{option}={value}" for option, value in task_options(guard).items()]
    with place.timed(f"{name}: open"):
        place.manage(
            *("open_task", name, "--kind=qa_match", f"--corpus={NAME}", f"--gold={place.folder / 'gold.jsonl'}"),
            *(f"--languages={LANGUAGE}", f"--seed={seed}", *options),
        )
    replies, log, voided = Replies(), Log(), []
    while True:
        with place.timed(f"{name}: work"):
            let_loose(address, name, tokens, world, replies, log, tested=guard.test is not None)
        facts = json.loads(place.run("-m", "benchmarks.crowd_work", "facts", name))
        if facts["faults"]:
            break
        with place.timed(f"{name}: void"):
            gone = json.loads(place.run("-m", "benchmarks.crowd_work", "void", name))
        if not gone:
            break
        voided.append(gone)
    return Outcome(replies, log, facts, voided)


def right_share(labels: Mapping[str, str], world: World) -> float:
    return sum(world.truth[key] == label for key, label in labels.items()) / len(labels)


def report(outcomes: Mapping[str, Outcome], labelers: Iterable[Labeler], world: World, rule: Rule) -> None:
    show(
        "Over the API (right: % of the labels; answers: to units; each: answers by the people who gave fewest and "
        "most)",
        ["", "labels", "right", "qualified", "paused", "spammers", "answers", "voided", "gold", "each"],
        [[title, *_cells(outcome, world)] for title, outcome in outcomes.items()],
    )
    show(
        "Work (a second: judgments; ms: of a request, at the median and the 95th percentile)",
        ["", "judgments", "s", "a second", "requests", "4xx", "5xx", "ms 50%", "ms 95%"],
        [[title, *_work(outcome)] for title, outcome in outcomes.items()],
    )
    by_name = {labeler.name: labeler for labeler in labelers}
    for title, outcome in outcomes.items():
        if out := [by_name[name].accuracy for name, passed in outcome.replies.passed.items() if not passed]:
            print(
                f"Not qualified in the task with {title}: {', '.join(f'{share:.1%}' for share in sorted(out))} right.\n"
            )
        if paused := outcome.facts["paused"]:
            show(
                f"Paused in the task with {title} (units: answered before)",
                ["", "accuracy", "a fault", "gold right", "of", "units"],
                [
                    [
                        name,
                        by_name[name].accuracy,
                        _verdict(by_name[name], rule),
                        row["right"],
                        row["asked"],
                        row["units"],
                    ]
                    for name, row in paused.items()
                ],
            )


def _verdict(labeler: Labeler, rule: Rule) -> str:
    return "yes" if crowd_report.kind_of(labeler, rule.below) == "good" else "no"


def _cells(outcome: Outcome, world: World) -> list[object]:
    facts, replies = outcome.facts, outcome.replies
    answers = Counter(
        name
        for name, question, kind, _ in replies.judgments
        if kind == "answer" and world.records[question].purpose == WORK
    )
    return [
        len(facts["labels"]),
        100 * right_share(facts["labels"], world),
        sum(replies.passed.values()) if replies.passed else "-",
        len(facts["paused"]),
        sum(name.startswith("spammer") for name in facts["paused"]),
        answers.total(),
        facts["voided"],
        sum(count for _, count in facts["known"].values()),
        f"{min(answers.values())} to {max(answers.values())}",
    ]


def _work(outcome: Outcome) -> list[object]:
    log, judged = outcome.log, len(outcome.replies.judgments)
    refused = sum(count for status, count in log.statuses.items() if 400 <= status < 500)
    slow = [1000 * seconds for seconds in quantiles(log.latencies, n=20)]
    rate = judged / log.seconds
    return [judged, log.seconds, rate, log.statuses.total(), refused, log.failures, slow[9], slow[18]]


def check(outcomes: Mapping[str, Outcome], units: int) -> None:
    """Raise BenchmarkFailed if the run violates an invariant."""
    for title, outcome in outcomes.items():
        if faults := wrong(outcome, units):
            raise BenchmarkFailed(f"The task with {title}: {' '.join(faults[:10])}")
    print(f"Each of the {units:,} units of each task has exactly {REDUNDANCY} answers that stand.\n")


def wrong(outcome: Outcome, units: int) -> list[str]:
    """Return a sentence for each invariant that the run violates."""
    facts, faults = outcome.facts, list(outcome.facts["faults"])
    if strange := {name for name, *_ in outcome.replies.judgments if not outcome.replies.passed.get(name, True)}:
        faults.append(f"{', '.join(sorted(strange))} answered units without passing the test.")
    if outcome.log.failures:
        faults.append(f"The server failed {outcome.log.failures:,} times.")
    if facts["stages"] != {"LABELLED": units}:
        faults.append(f"Not all of {units:,} units are labelled: {facts['stages']}.")
    if facts["answers"] != {str(REDUNDANCY): units}:
        faults.append(f"Not all units have {REDUNDANCY} answers that stand: {facts['answers']}.")
    if sorted(map(list, outcome.replies.judgments)) != facts["judgments"]:
        faults.append("The acknowledged answers differ from the stored ones.")
    return faults


def many(options, labelers: list[Labeler], guards: Mapping[str, Guard]) -> None:
    """Print the exact tables next to the results of many runs without a server."""
    seeds = [f"{options.seed}-{number}" for number in range(options.crowd_seeds)]

    def runs(guard: Guard):
        return [
            run_once(labelers, guard, units=options.crowd_units, redundancy=REDUNDANCY, seed=seed) for seed in seeds
        ]

    crowd_report.exact_table()
    crowd_report.table_of_tests(TESTS)
    crowd_report.guards_table({title: runs(guard) for title, guard in guards.items()}, DEFAULT.below)
    crowd_report.seeds_table(
        {rule: runs(Guard(TEST_OF_TASK, rule, options.gold_share, options.gold_pool)) for rule in CHOICES}
    )
