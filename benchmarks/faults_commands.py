"""All commands that write: killed, disconnected from the database or out of space at a random point, and run again.

The result is compared with that of an undisturbed run, file by file and table by table.
"""

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from benchmarks.faults_disk import small_disk
from benchmarks.faults_work import HANGS, Begun, begin
from benchmarks.place import BenchmarkFailed, Place, copy_of
from tests import digests
from tests.running import DATA, ROOT

FIXTURES = ROOT / "fixtures"
# Fixture -> how many of its lines the commands read (None: all).
MATERIAL = {
    "demo_posts.jsonl": 200,
    "eurlex/train.jsonl": 20,
    "oasst1/messages.jsonl": 200,
    "crowd/cf_amt.labels.tsv": 1500,
    "twitter_langid/uniformly_sampled.tsv": 900,
    "records/qa_match.en.jsonl": None,
    "eurovoc/concepts.json": None,
    "eurovoc/schemes.json": None,
}
ROWS = 20_000  # of the file whose import takes a while
# The state before each command, in this order.
BASE = (
    "import_corpus posts posts.jsonl --licence CC-BY-4.0",
    "prelabel posts",
    "import_corpus unread posts.jsonl --licence CC-BY-4.0",
    "import_corpus acts train.jsonl --format eurlex --licence CC-BY-4.0",
    "import_threads threads messages.jsonl --licence Apache-2.0 --text-may-leave",
    "import_vocabulary eurovoc concepts.json --schemes schemes.json",
    "import_judgments crowd cf_amt.labels.tsv",
    "import_gold uniformly_sampled.tsv --out out/published --design uniform --name published",
    "add_annotators staff.csv",
    'import_corpus questions qa_match.en.jsonl --fields "question passage" --licence CC0-1.0',
    "open_task doubted --kind qa_match --corpus questions --seed 1 --redundancy 2 --test-items 0 --gold-share 0 "
    "--on-conflict ADJUDICATION",
    "import_judgments doubted doubted.csv",
    "open_task language --corpus posts --size 100 --seed 1",
    "open_task unsaid --corpus posts --size 100 --seed 2",
    "export_gold crowd --out out/crowd",
    "evaluate guesses.csv --gold out/published --out out/report",
)
# Each is run on a copy of that state.
COMMANDS = (
    "import_corpus many many.jsonl --licence CC0-1.0",
    "import_corpus posts more.jsonl --licence CC-BY-4.0",
    "prelabel unread --processes 1",
    "import_predictions posts predictions.tsv --name mine --version 1",
    "import_threads again messages.jsonl --licence Apache-2.0 --text-may-leave",
    "import_scores threads scores.csv --name toxic --threshold 0.5",
    "import_vocabulary other concepts.json --schemes schemes.json",
    "suggest acts --vocabulary eurovoc",
    "open_task second --corpus posts --size 150 --seed 3",
    "extend_task language --size 150",
    "import_judgments elsewhere cf_amt.labels.tsv",
    "import_judgments doubted others.csv",
    "adjudicate doubted decisions.csv --as ada",
    "adjudicate doubted --as ada --out out/waiting.csv",
    "add_annotators people.csv",
    "add_manager maria --yes",
    "reroute language",
    "close language",
    "delete unsaid --yes",
    "delete --corpus unread --yes",
    "import_gold uniformly_sampled.tsv --out out/imported --design uniform --name imported",
    "export_gold doubted --out out/doubted",
    "export_gold crowd --out out/crowd",
    "export_gold crowd --out out/crowd --tell-secret",
    "export_pairs threads --out out/pairs --seed 1",
    "evaluate guesses.csv --gold out/published --out out/fresh",
    "evaluate guesses.csv --gold out/published --out out/report",
    "check_kind mood.toml --out out/mood.html",
)


@dataclass
class Tally:
    """The results of one type of fault in one command."""

    faults: int = 0
    too_late: int = 0
    done_already: int = 0
    half_written: list[str] = field(default_factory=list)
    unrepeatable: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)


@dataclass
class Undisturbed:
    """A command without any fault: its duration (seconds), the size of its output (bytes), and the files before and
    after it."""

    seconds: float
    room: int
    before: dict[str, str]
    after: dict[str, str]
    meaning: dict[str, str]


def prepare(place: Place) -> None:
    """Create the files that the commands read, and the state before the first command."""
    write_material(place.folder)
    place.manage("django", "migrate", "--verbosity=0")
    for words in BASE:
        begun = begin(place, words)
        if begun.end():
            raise BenchmarkFailed(f"{words} failed:\n{begun.output}")


def write_material(folder: Path) -> None:
    for name, count in MATERIAL.items():
        lines = (FIXTURES / name).read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / Path(name).name).write_text("".join(lines[:count]), encoding="utf-8")
    (folder / "out").mkdir()
    posts = (FIXTURES / "demo_posts.jsonl").read_text(encoding="utf-8").splitlines()
    (folder / "posts.jsonl").write_text("\n".join(posts[:200]) + "\n", encoding="utf-8")
    (folder / "more.jsonl").write_text("\n".join(posts[200:]) + "\n", encoding="utf-8")
    ids = [json.loads(line)["id"] for line in posts[:200]]
    (folder / "predictions.tsv").write_text("".join(f"{key}\tde\t0.5\n" for key in ids))
    many = (json.dumps({"id": n, "text": f"Das ist der Text mit der Nummer {n}."}) for n in range(ROWS))
    (folder / "many.jsonl").write_text("\n".join(many) + "\n")
    messages = [json.loads(line)["id"] for line in (folder / "messages.jsonl").read_text("utf-8").splitlines()]
    (folder / "scores.csv").write_text("id,score\n" + "".join(f"{key},0.{n % 10}\n" for n, key in enumerate(messages)))
    # Two answers that conflict, so that an adjudicator has to decide.
    questions = [json.loads(line)["id"] for line in (folder / "qa_match.en.jsonl").read_text("utf-8").splitlines()]
    half = len(questions) // 2
    for name, some in (("doubted.csv", questions[:half]), ("others.csv", questions[half:])):
        rows = [f"{key},worker{label},{label}" for key in some for label in (0, 1)]
        (folder / name).write_text("\n".join(["task,worker,label", *rows]) + "\n")
    rows = [f"{key},{n % 2},I have read it" for n, key in enumerate(questions[:half])]
    (folder / "decisions.csv").write_text("\n".join(["id,label,reason", *rows]) + "\n")
    (folder / "staff.csv").write_text("username,name,languages,adjudicates\nada,Ada,en:5,yes\nben,Ben,de:5 en:5,\n")
    published = (folder / "uniformly_sampled.tsv").read_text(encoding="utf-8").split("\n")
    guesses = [f"{line.split(chr(9))[1]},en" for line in published if line]
    (folder / "guesses.csv").write_text("\n".join(["id,label", *guesses]) + "\n")
    people = [f"person{n:03},Invented,de:5 en:4" for n in range(50)]
    (folder / "people.csv").write_text("\n".join(["username,name,languages", *people]) + "\n")
    (folder / "mood.toml").write_text(MOOD)


MOOD = """
title = "How content is the reviewer?"
form = "grades"

[[layout]]
style = "passage"
fields = ["review"]

[[answers]]
code = "2"
name = "Content"
key = "a"

[[answers]]
code = "1"
name = "Annoyed"
key = "l"

[guidelines]
en = '''
Read the whole review before you answer.
'''
"""


def undisturbed(base: Place, words: str) -> Undisturbed:
    with copy_of(base) as place:
        before, room = _files(place.folder), _bytes(place.folder)
        begun, start = begin(place, words, with_meaning=True), time.monotonic()
        begun.wait_until_done()
        seconds, meaning = time.monotonic() - start, begun.meaning()
        if begun.end():
            raise BenchmarkFailed(f"{words} failed without any fault:\n{begun.output}")
        return Undisturbed(seconds, _bytes(place.folder) - room, before, _files(place.folder), meaning)


# A fault: the place to copy, the command, the part of its time or output after which the fault comes, the expected
# result, and the tally of results.
Fault = Callable[[Place, str, float, Undisturbed, Tally], None]


def killed(base: Place, words: str, part: float, expected: Undisturbed, tally: Tally) -> None:
    with copy_of(base) as place:
        begun, start = begin(place, words), time.monotonic()
        if begun.ends(part * expected.seconds):
            # The machine is less busy than when the command was timed.
            expected.seconds = min(expected.seconds, time.monotonic() - start)
        else:
            begun.kill()
        _look(place, words, begun, expected, tally)


def cut_off(base: Place, words: str, part: float, expected: Undisturbed, tally: Tally) -> None:
    """Let PostgreSQL end the command's current connection, or the next one that it opens."""
    with copy_of(base) as place:
        begun = begin(place, words)
        if not begun.ends(part * expected.seconds):
            with psycopg.connect(place.env["DATABASE_URL"], autocommit=True) as connection:
                while not connection.execute(CUT_OFF).fetchall() and not begun.ends(0.02):
                    pass
        _look(place, words, begun, expected, tally)


CUT_OFF = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
)


def without_room(base: Place, words: str, part: float, expected: Undisturbed, tally: Tally) -> None:
    """Give the disk space for a part of the command's output, and later for all of it."""
    with small_disk() as disk, copy_of(base, on=disk.folder) as place:
        disk.leave(int(part * expected.room))
        begun = begin(place, words)
        begun.ends(HANGS)
        disk.empty()
        _look(place, words, begun, expected, tally)


def befallen(base: Place, words: str, fault: Fault, times: int, seed: str, expected: Undisturbed) -> Tally:
    """Run a command until it has met the fault this many times. A run that ends before the fault does not count. Some
    commands always end before it, such as one that writes almost nothing to a full disk, so give up after a while."""
    tally, chance = Tally(), random.Random(f"{seed} {words}")
    while tally.faults < times and tally.too_late < PATIENCE * times:
        fault(base, words, chance.random(), expected, tally)
    return tally


PATIENCE = 3


def _look(place: Place, words: str, begun: Begun, expected: Undisturbed, tally: Tally) -> None:
    """Record the state after the fault, and after the command was run again."""
    status, output = begun.end(), begun.output
    if status == 0:
        tally.too_late += 1
        return
    tally.faults += 1
    if status > 0 and (status != 1 or "Traceback" in output or not output.strip()):
        tally.unexplained.append(f"{words} ended with {status}: {output}")
    tally.half_written += [f"{words}: {name}" for name in half_written(_files(place.folder), expected)]
    again = begin(place, words, with_meaning=True)
    again.wait_until_done()
    meaning, status = again.meaning(), again.end()
    if names := _differences(_files(place.folder), expected.after) + _differences(meaning, expected.meaning):
        tally.unrepeatable.append(f"{words}, run again ({status}), gave something else: {', '.join(names)}")
    elif status == 1:
        # It was killed when its work was done, so it refuses to do it again.
        tally.done_already += 1
    elif status:
        tally.unrepeatable.append(f"{words} ended with {status} when run again: {again.output}")


def _files(folder: Path) -> dict[str, str]:
    return digests.files(folder, [digests.SQLITE])


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _differences(actual: dict[str, str], expected: dict[str, str]) -> list[str]:
    return sorted(name for name in actual.keys() | expected.keys() if actual.get(name) != expected.get(name))


def half_written(actual: dict[str, str], expected: Undisturbed) -> list[str]:
    """Return the files and folders that are neither as before nor as after the command.

    A gold set is compared as a whole folder. A corpus consists of the files in its manifest; other files in its folder
    are never read, and do not count. Files outside of both are compared one by one.
    """
    before, after = expected.before, expected.after
    there = before.keys() | after.keys()
    folders = {str(Path(name).parent) for name in there if Path(name).name == "manifest.json"}
    faulty = []
    for folder in folders:
        manifest = f"{folder}/manifest.json"
        whole = [_within(folder, state) for state in (before, after) if state.get(manifest) == actual.get(manifest)]
        now, is_set = _within(folder, actual), not folder.startswith(f"{DATA}/")
        if not any(now == state if is_set else state.items() <= now.items() for state in whole):
            faulty.append(folder)
    alone = {name for name in there if not any(name.startswith(f"{folder}/") for folder in folders)}
    return faulty + [name for name in alone if actual.get(name) not in (before.get(name), after.get(name))]


def _within(folder: str, state: dict[str, str]) -> dict[str, str]:
    return {name: digest for name, digest in state.items() if name.startswith(f"{folder}/")}
