"""Published formats of labelled texts: Twitter 2015, MLDoc and EURLEX57K."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from annotate.controls import chosen_concepts
from annotate.goldsets import form_extras
from annotate.goldsets.formats import Format, register
from annotate.goldsets.set_folder import SUMS
from annotate.goldsets.unit_rows import content
from annotate.kinds.balanced_draw import JOINT, SPECIAL_LIST_NAMES, list_name
from annotate.kinds.concept_kind import version_of
from corpora.core.arrow import pc, pq
from corpora.core.languages import published_code
from corpora.sources import eurlex

if TYPE_CHECKING:
    from annotate.goldsets.export import Export

# --- Twitter 2015: label<TAB>id, sorted, without a header. The file name states how the posts were drawn.

TWITTER = "Twitter 2015"
PAIRS_AT_ONCE = 10_000
_PAIRS = pa.schema([("label", pa.string()), ("length", pa.int32()), ("id", pa.string())])


def write_twitter(folder: Path, export: "Export") -> dict[str, Any]:
    """Write a set's Twitter 2015 file and return its manifest entry.

    No file is written if the posts were drawn with unequal probabilities, because the format cannot store these.
    """
    if not export.design.sets.stem:
        return {"format": TWITTER, "files": {}}
    name = f"{export.design.sets.stem}{export.mark}.tsv"
    with pq.ParquetFile(folder / f"gold{export.mark}.parquet") as rows:
        number = write_pairs(folder / name, rows.iter_batches(columns=["label", "id"]))
    return {"format": TWITTER, "files": {name: number}}


def write_pairs(path: Path, pairs: Iterable[pa.RecordBatch]) -> int:
    """Write the label and id of each row and return the number of rows.

    As in the published files, rows are sorted by label and then by id. Numeric ids are in numeric order.
    """
    # There can be millions of pairs. Arrow stores them compactly, and sorts strings in the same order as Python.
    tables = [_PAIRS.empty_table()]
    for batch in pairs:
        length = pa.array([len(key) if key.isdigit() else 0 for key in batch["id"].to_pylist()], pa.int32())
        tables.append(pa.table([batch["label"], length, batch["id"]], schema=_PAIRS))
    table = pa.concat_tables(tables)
    ordered = table.take(pc.sort_indices(table, [(name, "ascending") for name in table.column_names]))
    with path.open("wb") as file:
        for batch in ordered.to_batches(PAIRS_AT_ONCE):
            file.write(content(pc.binary_join_element_wise(batch["label"], "\t", batch["id"], "\n", "")))
    return int(table.num_rows)


register(Format("twitter2015", TWITTER, write_twitter))


# --- MLDoc (Schwenk and Li 2018; github.com/facebookresearch/MLDoc): lists of ids, and documents
#
#     mldoc-indices/<language>.<set>      one id per line; <set> is dev, test, or train with its size, as in train.1000
#     mldoc-documents/<language>.<set>    LABEL<TAB>text, one document per line, in the order of the list
#     MLDoc/mldoc.<set>.<code>            the same for LASER, where <set> is written as train1000
#     mldoc-sampling/<language>           each document in a language once, as input for sampling_rcv2.py
#
# Language names are written in full, as in the published lists. The files named `joint` contain the joint sets of all
# languages. A text consists of the record's fields, joined with spaces and without tabs or line breaks. LASER and
# sampling_rcv2.py accept MLDoc's four classes only as letters.

MLDOC = "MLDoc"
INDICES, DOCUMENTS, LASER, SAMPLING = "mldoc-indices", "mldoc-documents", "MLDoc", "mldoc-sampling"
# The letters of the classes in LASER and sampling_rcv2.py. Full labels don't work: LASER's `sed s/C/0/` would turn CCAT
# into 0CAT.
LETTERS = {"CCAT": "C", "ECAT": "E", "GCAT": "G", "MCAT": "M"}
_BREAKS = re.compile(r"\s+")


def write_mldoc(folder: Path, export: "Export") -> dict[str, Any]:
    """Write a set's MLDoc files and return their manifest entry.

    letters: letter of each class in LASER's files; empty if these files have the full labels.
    refused: reason why no documents are written; empty if they are.
    """
    columns = ("id", "label", *(export.kind.fields if export.with_text else ()))
    by_id = {row["id"]: row for row in export.written_rows(folder, columns)}
    letters = letters_of(export.task.labels)
    files: dict[str, int] = {}
    for file, lines in _mldoc_files(by_id, letters, export):
        path = folder / file
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        files[file] = len(lines)
    refused = (
        "" if export.with_text else "The texts must not be published, so lists of ids are written but no documents."
    )
    return {"format": MLDOC, "files": files, "letters": letters, "refused": refused}


def letters_of(classes: Iterable[str]) -> dict[str, str]:
    """Return the letter of each class, or an empty mapping if a class is not one of MLDoc's."""
    labels = set(classes)
    return {label: letter for label, letter in LETTERS.items() if label in labels} if labels <= LETTERS.keys() else {}


def _mldoc_files(
    by_id: Mapping[str, Mapping[str, str]], letters: Mapping[str, str], export: "Export"
) -> Iterator[tuple[str, list[str]]]:
    """Yield each file with its lines."""
    mark, fields = export.mark, export.kind.fields

    def lines(rows: list[Mapping[str, str]], letters: Mapping[str, str]) -> list[str]:
        """Return each row's label (or its letter), a tab, and the text."""
        return [f"{letters.get(row['label'], row['label'])}\t{text_of(row, fields)}" for row in rows]

    for language, sets in [*export.sets.items(), (JOINT, export.joint)]:
        spelled_name, code = (JOINT, JOINT) if language == JOINT else published_name(language, export.sets)
        # Omit documents that are no longer in the set, because annotators rejected them or because they were erased.
        present = {name: [key for key in ids if key in by_id] for name, ids in sets.items()}
        for name, ids in present.items():
            yield f"{INDICES}/{spelled_name}{mark}.{name}", ids
            if export.with_text:
                documents = [by_id[key] for key in ids]
                yield f"{DOCUMENTS}/{spelled_name}{mark}.{name}", lines(documents, {})
                yield f"{LASER}/mldoc{mark}.{name.replace('.', '')}.{code}", lines(documents, letters)
        if export.with_text and letters and language != JOINT:
            once = dict.fromkeys(key for ids in present.values() for key in ids)
            yield f"{SAMPLING}/{spelled_name}{mark}", lines([by_id[key] for key in once], letters)


def published_name(language: str, languages: Iterable[str]) -> tuple[str, str]:
    """Return a language's name in the lists and its code in LASER's files, such as `chinese` and `zh`.

    languages: all languages of the set. If it has another variety of Chinese too, for example, the result is
        `simplified-chinese` and `zh-CN`.
    """
    code = published_code(language, languages)
    published_names = {code: name for name, code in SPECIAL_LIST_NAMES.items()}
    return (published_names.get(language) if code != language else None) or list_name(language), code


def text_of(row: Mapping[str, str], fields: Iterable[str]) -> str:
    return _BREAKS.sub(" ", " ".join(row[field] for field in fields)).strip()


register(Format("mldoc", MLDOC, write_mldoc, measured_by="annotate.evaluation.language_pairs"))


# --- EURLEX57K (Chalkidis et al. 2019; github.com/iliaschalkidis/lmtc-eurlex57k)
#
#     EURLEX57K/<split>/<celex_id>.json   one act; <split> is train, dev or test
#     EURLEX57K/EURLEX57K.json            the descriptors of all concepts in the vocabulary, by id
#     EURLEX57K/SHA256SUMS                the digest of each act, in the format of sha256sum
#
# The JSON is ASCII, because the published reader opens it in the machine's default encoding.

EURLEX = "EURLEX57K"
DESCRIPTORS = f"{EURLEX}/EURLEX57K.json"
MOST_BYTES = 255  # bytes in a file name


def write_eurlex(folder: Path, export: "Export") -> dict[str, Any]:
    """Write a set's EURLEX57K files and return their manifest entry.

    files: number of concepts or acts by file.
    splits: number of documents by split.
    buckets: labels by bucket; a label's bucket depends on how many train documents have the label.
    refused: reason why no acts are written; empty if they are.
    """
    (folder / EURLEX).mkdir()
    files = {DESCRIPTORS: chosen_concepts.write_descriptors(folder / DESCRIPTORS, version_of(export.task))}
    splits = {split: len(documents) for split, documents in export.label_sets.items() if documents}
    if not (refused := _no_acts(export)):
        rows = export.written_rows(folder, ("id", "url", "split", "concepts", *export.kind.exported_fields))
        _write_acts(folder / EURLEX, rows, export.mark)
        files[f"{EURLEX}/{SUMS}"] = sum(splits.values())
    return {
        "format": EURLEX,
        "files": files,
        "splits": splits,
        "frequent_over": export.frequent_over,
        "buckets": chosen_concepts.buckets(export),
        "vocabulary": form_extras.describe_vocabulary(version_of(export.task)),
        "refused": refused,
    }


def _no_acts(export: "Export") -> str:
    if not export.with_text:
        return "EURLEX57K's acts contain texts that must not be published, so only the descriptors are written."
    for key in export.splits:
        # The id becomes a file name, which must be valid on any system and must not point outside the folder.
        if not key.isprintable() or set('/\\:*?"<>|').intersection(key) or key.startswith("."):
            return f"EURLEX57K's files are named after ids, but {key!r} cannot be a file name, so no acts are written."
        if len(f"{key}.json".encode()) > MOST_BYTES:
            return f"EURLEX57K's files are named after ids, but {key[:40]!r}… is too long, so no acts are written."
    return ""


def _write_acts(folder: Path, rows: Iterable[Mapping[str, Any]], mark: str) -> None:
    """Write each act to a file, and a list of the files' digests."""
    with (folder / SUMS).open("w", encoding="utf-8", newline="\n") as sums:
        for row in rows:
            act = eurlex.published_act({**row, "url": row["url"] or "", "declared": row["concepts"]})
            name = f"{row['split']}{mark}/{row['id']}.json"
            content = json.dumps(act, indent=1).encode("ascii")
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
            sums.write(f"{hashlib.sha256(content).hexdigest()}  {name}\n")


register(Format("eurlex57k", EURLEX, write_eurlex))
