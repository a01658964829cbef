"""A whole run on real text, from files of posts to a gold set.

20,000 posts with new ids are resampled with replacement from lingua_sentences. The shares of languages are those of
twitter_langid/uniformly_sampled.tsv, limited to languages present in both. One post in a hundred is a tweet in Nigerian
Pidgin from afrisenti_tweets. Commands import the posts and open the task. Simulated readers, who know only their own
languages, answer through the API of a real server, and an adjudicator works through the pages. The exported files are
compared with the truth.
"""

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import quantiles
from urllib.parse import urlsplit

from benchmarks import tally
from benchmarks.clients import Browser, Log, adjudicate, let_read
from benchmarks.material import resample, write_jsonl
from benchmarks.place import BenchmarkFailed, Place, new_place, serving
from benchmarks.tables import show
from benchmarks.world import Reader, World, label_of, people

NAME = "bench"
PIDGIN_SHARE = 0.01
ADJUDICATOR = "adjudicator"
# Seconds between attempts. Otherwise, most requests at the end would find no unit, and dominate the figures.
PAUSE = 3.0
LICENCE = "CC-BY-4.0"


def add_options(parser) -> None:
    parser.add_argument("--posts", type=int, default=20_000, help="posts in the corpus (default %(default)s)")
    parser.add_argument("--size", type=int, help="posts drawn for the task (default: all)")
    parser.add_argument("--slip", type=float, default=0.015, help="share of wrong answers (default %(default)s)")
    parser.add_argument("--readers", type=int, default=60, help="people, at least 55 (default %(default)s)")
    parser.add_argument(
        "--threads", type=int, default=4, help="of each of the server's 2 workers (default %(default)s)"
    )


def run(folder: Path, options) -> None:
    posts, covered = resample(folder, options.posts, PIDGIN_SHARE, options.seed)
    world = World(posts, slip=options.slip, seed=options.seed)
    readers = people(options.readers, options.seed)
    size = options.size or options.posts
    with new_place() as place:
        print(
            f"{len(posts):,} posts of {len(world.languages):,} distinct texts in "
            f"{len(set(world.language.values()))} languages, {PIDGIN_SHARE:.0%} of them Nigerian Pidgin;\n"
            f"the other languages have {covered:.1%} of the uniform sample. {size:,} posts drawn.\n"
            f"{len(readers)} readers who slip on {options.slip:.1%} of answers, one adjudicator; "
            f"seed {options.seed}; {place.database}; {os.cpu_count()} cores.\n",
            flush=True,
        )
        write_jsonl(posts, place.folder / "posts.jsonl")
        output = set_up(place, size, options.seed)
        tokens, invite = make_people(place, readers)
        logs: list[tuple[str, Log]] = []
        with serving(place, workers=2, threads=options.threads) as address:
            Browser(address, Log()).accept_invite(urlsplit(invite).path, f"{ADJUDICATOR} has a long password")
            # A language that fails its audit goes to readers when the adjudicator has had the last word on it.
            for turn in ("", " again", " a third time"):
                reading, deciding = Log(), Log()
                with place.timed(f"readers, over the API{turn}"):
                    let_read(address, NAME, tokens, world.answer, reading, PAUSE)
                with place.timed(f"adjudicator, over the pages{turn}"):
                    browser = Browser(address, deciding)
                    adjudicate(browser, NAME, ADJUDICATOR, world.decided)
                    browser.close()
                logs += [(f"readers{turn}", reading), (f"adjudicator{turn}", deciding)]
                if not deciding.acknowledged:
                    break
        with place.timed("export_gold"):
            output += place.manage("export_gold", NAME, "--out", place.folder / "gold")
        print(output.replace(f"{place.folder}/", ""))
        rows = tally.read_gold(place.folder / "gold")
    report(rows, world, logs, place)
    check(rows, world, [log for _, log in logs])


def set_up(place: Place, size: int, seed: str) -> str:
    """Migrate, import, prelabel and open the task. Return the output of the commands."""
    with place.timed("migrate"):
        place.manage("django", "migrate", "--verbosity=0")
    with place.timed("import_corpus"):
        output = place.manage("import_corpus", NAME, place.folder / "posts.jsonl", "--licence", LICENCE)
    with place.timed("prelabel"):
        output += place.manage("prelabel", NAME)
    with place.timed("open_task"):
        output += place.manage("open_task", NAME, "--corpus", NAME, f"--size={size}", f"--seed={seed}")
    return output


def annotators_csv(readers: Iterable[Reader]) -> str:
    lines = [f"{reader.name},Invented,{' '.join(f'{code}:5' for code in reader.languages)}" for reader in readers]
    # An adjudicator must read something; below every task's level it gives no queue.
    return "\n".join(["username,name,languages", *lines, f"{ADJUDICATOR},Invented,en:0"]) + "\n"


def make_people(place: Place, readers: list[Reader]) -> tuple[dict[Reader, str], str]:
    """Create the accounts. Return the readers' tokens and the adjudicator's invite."""
    table = place.folder / "annotators.csv"
    table.write_text(annotators_csv(readers), encoding="utf-8")
    with place.timed("add_annotators"):
        links = place.manage("add_annotators", table)
        # A manager would tick this in the admin.
        place.manage(
            "shell",
            "--verbosity=0",
            "--command",
            f"Annotator.objects.filter(user__username={ADJUDICATOR!r}).update(adjudicates=True)",
        )
    invite = next(line.split("\t")[1] for line in links.split("\n") if line.startswith(f"{ADJUDICATOR}\t"))
    with place.timed("create_token"):
        # In one process, because the start takes longer than the work.
        names = [reader.name for reader in readers]
        call = f"from annotate.actions.registry import call_command as call\nfor n in {names}: call('create_token', n)"
        tokens = place.manage("django", "shell", "--verbosity=0", "--command", call).split()
    return dict(zip(readers, tokens, strict=True)), invite


def report(rows: list[dict], world: World, logs: list[tuple[str, Log]], place: Place) -> None:
    outcomes = tally.outcomes(rows, world)
    copies = sum(outcome.copy for outcome in outcomes)
    unlisted = sum(label_of(outcome.language) != outcome.language for outcome in outcomes if outcome.language != "pcm")
    print(
        f"{len(outcomes):,} posts drawn: {len(outcomes) - copies:,} units of distinct text are judged, {copies:,} "
        f"copies take their labels.\n{unlisted:,} posts are in languages off the list other than Nigerian Pidgin; the "
        "truth of both is und.\n"
    )
    tally.shares_table(outcomes)
    tally.errors_table(outcomes)
    units = [outcome for outcome in outcomes if not outcome.copy]
    for stratum in tally.STRATA:
        wrong = tally.confusions(units, lambda unit, name=stratum: unit.stratum == name and unit.language != "pcm")
        print(f"Wrong units among the {stratum}, without Nigerian Pidgin: {wrong}.")
    print()
    show(
        "Work (a second: judgments, until 90% were made; ms: of a request, at the median and the 95th percentile)",
        ["", "judgments", "skips", "s", "a second", "requests", "4xx", "5xx", "ms 50%", "ms 95%"],
        [_work(name, log) for name, log in logs],
    )
    show("Seconds", ["step", "s"], [[step, seconds] for step, seconds in place.took.items()])


def _work(name: str, log: Log) -> list[object]:
    judged, skips = len(log.acknowledged), log.kinds()["skip"]
    busy = int(judged * 0.9)
    rate = busy / (log.times[busy - 1] - log.start) if busy else 0.0
    refused = sum(count for status, count in log.statuses.items() if 400 <= status < 500)
    slow = [1000 * seconds for seconds in quantiles(log.latencies, n=20)] if len(log.latencies) > 1 else [0.0] * 19
    return [
        name,
        judged,
        skips,
        log.seconds,
        rate,
        log.statuses.total(),
        refused,
        log.failures,
        slow[9],
        slow[18],
    ]


def check(rows: list[dict], world: World, logs: list[Log]) -> None:
    """Raise BenchmarkFailed if the run violates an invariant."""
    if failures := sum(log.failures for log in logs):
        raise BenchmarkFailed(f"The server failed {failures:,} times.")
    unfinished = sum(outcome.way == "unfinished" for outcome in tally.outcomes(rows, world))
    if unfinished:
        raise BenchmarkFailed(f"{unfinished:,} posts were left unfinished.")
    logged, exported = acknowledged(*logs), tally.exported_judgments(rows)
    if logged != exported:
        lost, extra = (logged - exported).total(), (exported - logged).total()
        raise BenchmarkFailed(
            f"{lost:,} acknowledged judgments are missing from the export, and {extra:,} in it were never made."
        )
    print(f"All {logged.total():,} acknowledged judgments are in the export, and no others.\n")


def acknowledged(*logs: Log) -> Counter[tuple[str, ...]]:
    return Counter(judgment for log in logs for judgment in log.acknowledged)
