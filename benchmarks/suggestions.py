"""Suggestions on EURLEX57K: how well label match and nearest documents rank its concepts, and how long they take.

The acts of eurlex57k/ are one corpus, and EuroVoc is in eurovoc/concepts.json and schemes.json. Rankers learn from the
acts of train, and are measured on those of dev and test. The constants of concept_rankers.py were chosen on train and
dev. The time is measured with generated acts. Each consists of pieces of 40 words from real acts, is about as long as
an act of EURLEX57K, and has five random concepts. Rankers learn from 45 of 57.
"""

import json
import random
import resource
from collections.abc import Iterator
from pathlib import Path

from benchmarks.material import MissingData
from benchmarks.place import BenchmarkFailed, Place, new_place
from benchmarks.tables import show

SPLITS = ("train", "dev", "test")
# Minimum RP@5 on test.
LEAST = {"label-match": 0.31, "nearest": 0.31, "joined": 0.39}
WORDS, PIECE = 727, 40


def add_options(parser) -> None:
    parser.add_argument(
        "--suggested-acts",
        type=int,
        default=5_700,
        help="made acts that are timed; 57000, as EURLEX57K has, take most of an hour (default %(default)s)",
    )


def run(folder: Path, options) -> None:
    acts = [folder / "eurlex57k" / f"{split}.jsonl" for split in SPLITS]
    concepts, schemes = (folder / "eurovoc" / name for name in ("concepts.json", "schemes.json"))
    if missing := [file for file in (*acts, concepts, schemes) if not file.is_file()]:
        raise MissingData(f"There is no {missing[0]}.")
    with new_place() as place:
        place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
        place.manage("django", "migrate", "-v0")
        place.manage("import_vocabulary", "eurovoc", concepts, "--schemes", schemes)
        suggest(place, "acts", acts)
        measured = json.loads(place.run("-m", "benchmarks.suggestions_work", "acts", *acts[1:]))
        made = place.folder / "made.jsonl"
        with made.open("w", encoding="utf-8") as file:
            file.writelines(made_acts(acts, list(json.loads(concepts.read_bytes())), options))
        with place.timed("suggest"):
            suggest(place, "made", [made])
    show(
        "Concepts of EuroVoc, learned from the train acts",
        ["system", *(f"{split}: {name}" for split in SPLITS[1:] for name in ("RP@5", "R@20"))],
        [[system, *(f"{figure:.4f}" for figure in figures)] for system, figures in measured.items()],
    )
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024  # Linux reports KiB
    show(
        "Made acts",
        ["acts", "import and suggest s", "memory of the largest process MiB"],
        [[options.suggested_acts, f"{place.took['suggest']:.0f}", f"{memory:,.0f}"]],
    )
    for system, least in LEAST.items():
        if measured[system][2] < least:
            raise BenchmarkFailed(
                f"RP@5 of {system} on test is {measured[system][2]:.4f}; it should be {least} or more."
            )


def suggest(place: Place, corpus: str, files: list[Path]) -> None:
    place.manage("import_corpus", corpus, *files, "--format", "eurlex", "--licence", "CC-BY-SA-4.0")
    place.manage("suggest", corpus, "--vocabulary", "eurovoc", "--learn-from", "split=train")


def made_acts(files: list[Path], concepts: list[str], options) -> Iterator[str]:
    lots = random.Random(options.seed)
    acts = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    texts = [" ".join([act["header"], act["recitals"], *act["main_body"], act["attachments"]]).split() for act in acts]
    titles = [act["title"] for act in acts]
    for number in range(options.suggested_acts):
        words: list[str] = []
        while len(words) < WORDS:
            text = lots.choice(texts)
            start = lots.randrange(max(1, len(text) - PIECE))
            words += text[start : start + PIECE]
        act = acts[0] | {
            "celex_id": f"made{number}",
            "title": lots.choice(titles),
            "main_body": [" ".join(words)],
            "header": "",
            "recitals": "",
            "attachments": "",
            "eurovoc_concepts": lots.sample(concepts, 5),
            "split": "train" if number * 57 < options.suggested_acts * 45 else "test",
        }
        yield json.dumps(act) + "\n"
