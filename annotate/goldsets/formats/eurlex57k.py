"""The files of EURLEX57K (Chalkidis et al. 2019; github.com/iliaschalkidis/lmtc-eurlex57k).

    EURLEX57K/<split>/<celex_id>.json   an act; split: train, dev, test
    EURLEX57K/EURLEX57K.json            the descriptors of all concepts of the vocabulary, by id
    EURLEX57K/SHA256SUMS                the digest of each act, as sha256sum writes and checks it

JSON is written in ASCII, since the published reader opens it in whatever encoding the machine has.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotate.controls import concept_suggestions
from annotate.goldsets import form_extras
from annotate.goldsets.formats import Format, register
from annotate.goldsets.set_folder import SUMS
from corpora.sources.eurlex import published

if TYPE_CHECKING:
    from annotate.goldsets.export import Export
    from annotate.goldsets.exporter import Written

FOLDER = "EURLEX57K"
DESCRIPTORS = f"{FOLDER}/EURLEX57K.json"
MOST_BYTES = 255  # in the name of a file


def write(folder: Path, written: "Written", export: "Export") -> dict:
    """Write the files of a set, and return their names and what is in them: concepts and acts. splits: split -> its
    documents; buckets: bucket -> its labels, by the documents of train. refused: why there are no acts, if so.
    """
    (folder / FOLDER).mkdir()
    files = {DESCRIPTORS: concept_suggestions.write_descriptors(folder / DESCRIPTORS, export.task.vocabulary)}
    splits = {split: len(documents) for split, documents in export.label_sets.items() if documents}
    if not (refused := _refused(splits, export)):
        rows = written.each(("id", "url", "split", "concepts", *export.kind.exported_fields))
        _write_acts(folder / FOLDER, rows, export.mark)
        files[f"{FOLDER}/{SUMS}"] = sum(splits.values())
    return {
        "format": FOLDER,
        "files": files,
        "splits": splits,
        "frequent_over": export.frequent_over,
        "buckets": concept_suggestions.buckets(export),
        "vocabulary": form_extras.described(export.task.vocabulary),
        "refused": refused,
    }


def _refused(splits: Mapping[str, int], export: "Export") -> str:
    if not export.with_text:
        return "The files of EURLEX57K hold the texts of the acts, which the licence keeps here; there are descriptors."
    for key in export.splits:
        # The name of a file, which must not lead out of its folder, and in any system means one file.
        if not key.isprintable() or set('/\\:*?"<>|').intersection(key) or key.startswith("."):
            return f"The files of EURLEX57K are named by ids, and {key!r} cannot be a file's name; no acts are written."
        if len(f"{key}.json".encode()) > MOST_BYTES:
            return f"The files of EURLEX57K are named by ids, and {key[:40]!r}… is too long; no acts are written."
    return ""


def _write_acts(folder: Path, rows: Iterable[Mapping[str, Any]], mark: str) -> None:
    """Write each act, and the list of their digests."""
    with (folder / SUMS).open("w", encoding="utf-8", newline="\n") as sums:
        for row in rows:
            act = published(row | {"url": row["url"] or "", "declared": row["concepts"]})
            name = f"{row['split']}{mark}/{row['id']}.json"
            content = json.dumps(act, indent=1).encode("ascii")
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
            sums.write(f"{hashlib.sha256(content).hexdigest()}  {name}\n")


register(Format("eurlex57k", FOLDER, write))
