"""Frames of posts, imported and prelabelled, in which a program measures some seeds. There is one process per core."""

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from benchmarks.material import Post, write_jsonl
from benchmarks.place import new_place
from benchmarks.whole_run import LICENCE, NAME


def on_frames(
    drawn: Callable[[str], list[Post]], seeds: list[str], program: str, *arguments: object
) -> list[list[dict]]:
    """Divide the seeds between one frame per core, and return the rows of each frame."""
    workers = max(1, min(os.cpu_count() or 1, len(seeds)))

    def measure(batch: list[str]) -> list[dict]:
        stream = drawn(batch[0])
        with new_place(sqlite=True) as place:
            truth = place.folder / "truth.json"
            write_jsonl(stream, place.folder / "posts.jsonl")
            truth.write_text(json.dumps({post.id: post.language for post in stream}))
            place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
            place.manage("django", "migrate", "--verbosity=0")
            place.manage("import_corpus", NAME, place.folder / "posts.jsonl", "--licence", LICENCE)
            place.manage("prelabel", NAME, "--processes", "1")
            output = place.run("-m", program, truth, *map(str, arguments), *batch)
        return [json.loads(line) for line in output.splitlines()]

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(measure, [seeds[number::workers] for number in range(workers)]))
