"""The speed of langid.py in batches compared with its own loop, and of prelabel compared with fastText and CLD2.

All measurements run in this process on one core. The methods alternate on the same posts, and the fastest run of each
counts. The floor is the time of the public calls of fastText and CLD2, without any other work.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import fasttext
import pyarrow as pa
import pycld2
from langid.langid import LanguageIdentifier, model

from benchmarks.material import some_posts
from benchmarks.place import BenchmarkFailed
from benchmarks.sampling import sampled, show_profile
from benchmarks.tables import show
from corpora.core.detectors import _fasttext_model, detect_langid
from corpora.core.languages import normalise
from corpora.core.masking import clean_for_detectors
from corpora.votes.vote_worker import vote_on

K = 3
CHUNK = 2_000


def add_options(parser) -> None:
    parser.add_argument("--detector-posts", type=int, default=4_000, help="posts to label (default %(default)s)")
    parser.add_argument("--detector-runs", type=int, default=3, help="runs per method (default %(default)s)")


def run(folder: Path, options) -> None:
    posts = some_posts(folder, options.detector_posts, options.seed)
    raw = [post.text for post in posts]
    texts = [clean_for_detectors(text) for text in raw]
    package = LanguageIdentifier.from_modelstring(model, norm_probs=True)
    fast = fasttext.load_model(str(_fasttext_model()))
    batches = pa.table({"id": [post.id for post in posts], "text": raw}).to_batches(max_chunksize=CHUNK)

    def floor() -> None:
        for text in texts:
            fast.predict(text, k=K)
            pycld2.detect(text)

    def plain() -> None:
        floor()
        for text in texts:
            package.rank(text)

    unbatched, ours = "langid.py, its own loop", "langid.py, in batches"
    least, whole, loop = "fastText and CLD2 alone", "votes of prelabel", "three packages, a loop"
    ways: dict[str, Callable[[], object]] = {
        unbatched: lambda: [package.classify(text) for text in texts],
        ours: lambda: [detect_langid(texts[at : at + CHUNK], K) for at in range(0, len(texts), CHUNK)],
        least: floor,
        whole: lambda: [*map(partial(vote_on, K), batches)],
        loop: plain,
    }
    took = quickest(ways, options.detector_runs)
    show(
        f"{len(texts):,} posts of {sum(len(text.encode()) for text in texts) / len(texts):.0f} bytes on one core",
        ["", "s", "texts/s"],
        [[name, seconds, f"{len(texts) / seconds:,.0f}"] for name, seconds in took.items()],
    )
    print(f"Batches of langid.py take 1/{took[unbatched] / took[ours]:.0f} of what its own loop takes.")
    print(f"Prelabel reaches {took[least] / took[whole]:.2f} of the pace of fastText and CLD2 alone, and takes")
    print(f"1/{took[loop] / took[whole]:.0f} of what a loop over the public calls of all three takes.")
    with sampled() as where:
        ways[whole]()
    show_profile("Time per step of these votes", where)
    other, equal = differences(package, texts)
    print(f"In {other} texts the best {K} languages differ from what langid.py's own loop gives;")
    print(f"in {equal} of these, scores are equal to the last digit of float32.\n")
    if other > equal:
        raise BenchmarkFailed("the batches return other languages than langid.py's loop")


def quickest(ways: dict[str, Callable[[], object]], runs: int) -> dict[str, float]:
    for work in ways.values():
        work()  # loads the models
    took = dict.fromkeys(ways, float("inf"))
    for _ in range(runs):
        for name, work in ways.items():
            start = time.perf_counter()
            work()
            took[name] = min(took[name], time.perf_counter() - start)
    return took


def differences(package: LanguageIdentifier, texts: list[str]) -> tuple[int, int]:
    """Return how many texts get other best languages than from the package, and how many of these have ties."""
    other = equal = 0
    for text, ranking in zip(texts, detect_langid(texts, K), strict=True):
        logs = package.nb_classprobs(package.instance2fv(text))
        best = sorted(range(len(logs)), key=lambda place: -logs[place])
        codes = [*dict.fromkeys(normalise("langid", package.nb_classes[place]) for place in best)][:K]
        if ranking and codes != [code for code, _ in ranking]:
            other += 1
            near = logs[best[: K + 3]].astype("float32")
            equal += len(set(near.tolist())) < len(near)
    return other, equal
