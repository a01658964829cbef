"""Import published gold files as gold sets, and join their texts (hydration).

Each row of such a file is `label<TAB>id` and describes one post. The file has no header and no texts. Published files
often contain invalid rows. `sift` rejects these rows, and rejects.jsonl lists them with their line numbers.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
from django.template.loader import render_to_string

from annotate.goldsets import set_folder
from annotate.goldsets.card import head_of
from annotate.goldsets.formats import benchmarks
from annotate.goldsets.gold_set import read_gold_set
from annotate.goldsets.set_folder import FORMAT, GoldSetError, write_digests, write_with_card
from annotate.kinds.designs import DESIGNS, Design
from annotate.kinds.interface_language import NOT, is_negative, negative
from annotate.reports.plots import bars_in_text
from annotate.reports.tables import many
from corpora.core import CorpusError, TooManyRejected
from corpora.core.languages import LANGUAGES, UND
from corpora.core.records import FIELDS, MAX_ID, RecordError, read_id
from corpora.core.values import is_missing, is_removed, is_respelled, tidy
from corpora.sources.compression import check_file, format_of
from corpora.sources.readers import Columns, Row, read_rows
from corpora.sources.text import Fault, text_of
from corpora.storage.intake import encoding_hint, text_lines, too_many
from corpora.storage.layout import digest_of
from corpora.system import VERSION

REJECTS = "rejects.jsonl"
# The designs whose sets are published in this format and can be used without another set.
IMPORTED = [name for name, design in DESIGNS.items() if design.sets.measures and not design.of_uniform]
DIGESTS = "gold.digests.txt"
# If the design has no negative labels but more rows than this have one, the file is a precision set that is being
# imported with the wrong design.
MOST_NEGATIVE = 0.01  # share of the rows
# No valid row is longer: it consists of a label and an id, which has at most MAX_ID characters of up to four bytes.
LONGEST = 1000  # bytes

NOT_UTF8 = "not UTF-8"
COLUMNS = "a number of columns other than two (a label and an id, separated by a tab)"
EMPTY_LABEL = "an empty label"
MISSING_LABEL = "a label such as NaN, which other programs write for a missing value"
EMPTY_ID = "an empty id"
NO_ID = "the id 0, which no post has"
ODD_ID = f"an id with more than {MAX_ID} characters, or with an invisible one"
SPOILT_ID = "an id that another program has rewritten, such as 4.8E+17, 1.0 or NaN"
NO_LABEL = "a label that is not a language code such as de or zh-CN, und, or a negative such as not-de"
NEGATIVE = "a label such as not-de, which only precision sets have"
TWO_LABELS = "an id with two labels; all rows with the id are refused"
REPEATED = "an id repeated with the same label; its first row is kept"

# The parts of a BCP 47 tag: language, script, region, variants. Labels have no private-use subtags or extensions.
_LANGUAGE = re.compile(
    r"(?P<language>[a-z]{2,3})(?:-(?P<script>[a-z]{4}))?(?:-(?P<region>[a-z]{2}|[0-9]{3}))?"
    r"(?P<variants>(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*)",
    re.ASCII,
)
_NEGATIVE = re.compile(r"not[-_](.+)", re.IGNORECASE)


@dataclass
class Sifted:
    """The valid and the refused rows of a file.

    rows: number of rows, including refused ones.
    labels: label by id, in file order.
    refused: (reason, text) of each refused row, by line number.
    rewritten: number of labels that were normalized, by label in the file and label in the set.
    """

    rows: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    refused: dict[int, tuple[str, str]] = field(default_factory=dict)
    rewritten: Counter[tuple[str, str]] = field(default_factory=Counter)


def import_gold(
    path: Path, out: Path, *, design: str, name: str, source: str = "", licence: str = "", max_rejects: float = 1.0
) -> dict[str, Any]:
    """Write a published file as a gold set and return its manifest. An earlier import with the same name is replaced.

    out: folder of the set.
    design: design of the set, one of IMPORTED.
    source, licence: source and licence to state in the manifest and on the card.
    max_rejects: maximum share of refused rows, not counting repeated rows.

    Raise GoldSetError if an argument is invalid, if the file cannot be read or has no valid row, or if the folder
    contains anything but an earlier import with this name. Raise TooManyRejected if too many rows are refused.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise GoldSetError(
            f"{name!r} is not a valid name of a gold set. Use 1 to 64 letters, digits, hyphens or underscores."
        )
    if design not in IMPORTED:
        raise GoldSetError(f"Sets with the design {design!r} cannot be imported. Choose one of {', '.join(IMPORTED)}.")
    try:
        check_file(path, "tsv")
        sifted = sift(_lines(path), DESIGNS[design])
        sha256 = digest_of(path)
    except CorpusError as error:
        raise GoldSetError(str(error)) from error
    except (OSError, pa.ArrowException) as error:
        if getattr(error, "errno", None) is not None:  # a system error, such as missing permissions
            raise GoldSetError(f"{path} cannot be read: {error.strerror}.") from error
        raise GoldSetError(f"{path} is truncated or damaged, so nothing was imported. Download it again.") from error
    _check(path, sifted, max_rejects)
    imported = {"name": name, "file": path.name, "source": source, "licence": licence, "sha256": sha256}
    try:
        with set_folder.replacing(out.resolve(), "import", name) as folder:
            return _write(folder, sifted, DESIGNS[design], imported)
    except set_folder.ExportError as error:
        raise GoldSetError(str(error)) from error


def _check(path: Path, sifted: Sifted, most: float) -> None:
    """Check whether a file can be imported.

    most: maximum share of refused rows.

    Raise GoldSetError if the file has no valid rows or has negative labels that its design does not allow. Raise
    TooManyRejected if too many rows are refused.
    """
    reasons = Counter(reason for reason, _ in sifted.refused.values())
    if reasons[NEGATIVE] > MOST_NEGATIVE * sifted.rows:
        raise GoldSetError(
            f"{path} has labels such as not-de in {reasons[NEGATIVE]:,} of {sifted.rows:,} rows. Only precision sets "
            "have such labels, so import it with --design precision. Nothing was written."
        )
    first = {reason: line for line, (reason, _) in sorted(sifted.refused.items(), reverse=True)}
    words = {reason: "bytes that are not UTF-8" if reason == NOT_UTF8 else reason for reason in reasons}
    if not sifted.labels:
        why = "it is empty."
        if sifted.refused:
            line, (reason, _) = min(sifted.refused.items())
            why = f"line {line:,}, for example, has {words[reason]}. Rows must be label<TAB>id, without a header."
        raise GoldSetError(f"{path} has no valid row: {why} {encoding_hint(path, 'tsv')}Nothing was written.")
    del reasons[REPEATED]
    if not too_many(reasons.total(), sifted.rows, most):
        return
    counts = "; ".join(
        f"{rows:,} with {words[reason]} (line {first[reason]:,})" for reason, rows in reasons.most_common()
    )
    raise TooManyRejected(
        f"{reasons.total():,} of {sifted.rows:,} rows in {path} are invalid, more than --max-rejects {most:.4g} "
        f"allows: {counts}. Nothing was written. {encoding_hint(path, 'tsv')}Correct the file, or import only the "
        "valid rows with a higher --max-rejects; the invalid ones are then listed."
    )


# --- Validation of rows


def sift(lines: Iterable[tuple[int, bytes]], design: Design) -> Sifted:
    """Separate a file's valid rows from the rows to refuse.

    lines: number and content of each line.
    """
    sifted = Sifted()
    valid: list[tuple[int, str, str, str]] = []
    labels: dict[str, set[str]] = {}
    for number, line in lines:
        sifted.rows += 1
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        raw_label, _, key = text.partition("\t")
        raw_label, key = tidy(raw_label), unicodedata.normalize("NFC", key.strip())
        label = canonical(raw_label)
        if reason := _fault(line, text, raw_label, key, label, design):
            sifted.refused[number] = (reason, text)
        else:
            valid.append((number, raw_label, key, label))
            labels.setdefault(key, set()).add(label)
    for number, raw_label, key, label in valid:
        if len(labels[key]) > 1:
            sifted.refused[number] = (TWO_LABELS, f"{raw_label}\t{key}")
        elif key in sifted.labels:
            sifted.refused[number] = (REPEATED, f"{raw_label}\t{key}")
        else:
            sifted.labels[key] = label
            if raw_label != label:
                sifted.rewritten[raw_label, label] += 1
    return sifted


def _fault(line: bytes, text: str, raw_label: str, key: str, label: str, design: Design) -> str:
    """Return the reason to refuse a row, or an empty string if it is valid. Other rows are not considered.

    line, text: the row as bytes, and as decoded text.
    raw_label, label: the row's label before and after normalization.
    """
    rules = (
        # Invalid UTF-8 was decoded with replacement characters.
        (NOT_UTF8, text.encode() != line.rstrip(b"\r\n")),
        (COLUMNS, text.count("\t") != 1),
        (EMPTY_LABEL, not raw_label),
        (EMPTY_ID, not key),
        (NO_ID, key.strip("0") == ""),
        (ODD_ID, len(key) > MAX_ID or not key.isprintable()),
        (SPOILT_ID, is_respelled(key) or is_missing(key)),
        (MISSING_LABEL, is_missing(raw_label) and label not in LANGUAGES),
        (NO_LABEL, not label),
        (NEGATIVE, is_negative(label) and not design.sets.has_negatives),
    )
    return next((reason for reason, broken in rules if broken), "")


def canonical(raw_label: str) -> str:
    """Normalize a label, such as `ar_LATN` to `ar-Latn` or `not_no` to `not-no`. Return "" if it is not valid."""
    if match := _NEGATIVE.fullmatch(raw_label):
        language = canonical(match[1])
        return negative(language) if language and not is_negative(language) else ""
    tag = _LANGUAGE.fullmatch(raw_label.replace("_", "-").lower()) if raw_label.isascii() else None
    if tag is None:
        return ""
    parts = (tag["language"], (tag["script"] or "").title(), (tag["region"] or "").upper())
    return "-".join(filter(None, parts)) + tag["variants"]


def asked_language(label: str, design: Design) -> str | None:
    """Return the language X if the label implies the question "Is this X?", otherwise None.

    The labels `X` and `not-X` imply this question. The labels `und` and `not-und` do not.
    """
    language = label.removeprefix(NOT)
    return language if design.asks_each and language != UND else None


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the number and content of each line that is not blank. Lines too long to be valid are truncated."""
    with text_of(path) as (file, _):
        for number in count(1):
            line = file.readline(LONGEST)
            if not line:
                return
            start = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if not start.isspace():
                yield number, start
            while len(line) == LONGEST and not line.endswith(b"\n"):
                line = file.readline(LONGEST)


# --- The folder


def _write(folder: Path, sifted: Sifted, design: Design, imported: dict[str, str]) -> dict[str, Any]:
    tsv, labels, refused = f"{design.sets.stem}.tsv", sifted.labels, sifted.refused
    columns = [pa.array(values, pa.string()) for values in (labels.values(), labels)]
    benchmarks.write_pairs(folder / tsv, [pa.record_batch(columns, ["label", "id"])])
    unknown: dict[str, Any] = {"stratum": None, "agreed": None, "chance": None, "audit_chance": 1}
    rows = (
        {"id": key, "label": label, "asked": asked_language(label, design), **unknown} for key, label in labels.items()
    )
    rejects = (
        {"file": imported["file"], "line": line, "reason": reason, "row": row}
        for line, (reason, row) in sorted(refused.items())
    )
    for name, entries in (("gold.jsonl", rows), (REJECTS, rejects)):
        with (folder / name).open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in entries)
    write_digests(folder / "gold.jsonl")
    counts = {
        "rows": sifted.rows,
        "labelled": len(labels),
        "ids_with_two_labels": len({row.partition("\t")[2] for why, row in refused.values() if why == TWO_LABELS}),
        "refused": dict(Counter(reason for reason, _ in refused.values()).most_common()),
        "rewritten": {f"{raw} -> {label}": posts for (raw, label), posts in sorted(sifted.rewritten.items())},
        "by_label": dict(sorted(Counter(labels.values()).items())),
    }
    manifest: dict[str, Any] = {
        **{"format": FORMAT, "design": design.name, "finished": True, "imported": imported, "draws": []},
        **{"corpus": None, "detectors": [], "audit": None, "decoys": None, "counts": counts},
        **{"versions": {"assay": VERSION}, "files": {}},
    }

    def card() -> str:
        digests = [manifest["files"]["gold.jsonl"]]
        head = head_of(imported["name"], imported["licence"], (), len(labels), digests)
        names = {"tsv": tsv, "rejects": REJECTS, "digests": DIGESTS, "refused": sifted.rows - len(labels)}
        plot = "\n".join(bars_in_text(Counter(labels.values()).items()))
        sentence = f"{many(len(labels), 'post')} with {many(len(set(labels.values())), 'different label')}."
        context = {**head, **names, "sentence": sentence, "plot": plot, "manifest": manifest}
        return render_to_string("annotate/imported.md", context)

    write_with_card(folder, manifest, lambda: {"README.md": card()})
    return manifest


def unknown_languages(by_label: dict[str, int]) -> dict[str, int]:
    """Return the number of posts by label, for labels with unknown languages.

    The label `und` and the negatives of known languages are not included.
    """
    return {
        label: posts
        for label, posts in by_label.items()
        if (code := label.removeprefix(NOT)) not in LANGUAGES and code != UND
    }


# --- The texts of a set of ids (hydration)


IDS, POSTS, VANISHED = FILES = ("ids.txt", "posts.jsonl", "vanished.txt")


@dataclass
class Hydrated:
    """The result of joining texts with a gold set.

    posts: number of posts in the set, by label.
    found: number of these posts with a text, by label.
    outside: number of rows for posts that are not in the set, or that already have a text.
    faulty: number of invalid rows.
    first_fault: location and fault of the first invalid row.
    """

    posts: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    outside: int = 0
    faulty: int = 0
    first_fault: str = ""


def hydrate(gold: Path, texts: Sequence[Path], out: Path, *, columns: dict[str, str], format: str | None) -> Hydrated:
    """Write a gold set's ids to a folder. If there are texts, also write the posts, and the ids without a text.

    gold: folder of the gold set.
    texts: files with the columns FIELDS; only `id` and `text` are required.
    columns: column names by field, for fields whose column in these files has a different name.
    format: format of the files; by default, derived from their names.

    Raise GoldSetError if the set cannot be read or the folder contains other files, and CorpusError if a file of texts
    cannot be read.
    """
    labels = {row.id: row.label for row in read_gold_set(gold).rows}
    for path in texts:
        check_file(path, format)
    if out.exists() and (other := next((path for path in sorted(out.iterdir()) if path.name not in FILES), None)):
        raise GoldSetError(f"{out} contains {other.name}, which hydrate did not write. Choose another folder.")
    hydrated, posts = Hydrated(Counter(labels.values())), dict[str, dict[str, Any]]()
    for path in texts:
        for row in _rows_with_text(path, format or format_of(path) or "", columns, hydrated):
            if row["id"] in labels and row["id"] not in posts:
                posts[row["id"]] = {"id": row["id"], "label": labels[row["id"]]} | row
            else:
                hydrated.outside += 1
    hydrated.found = Counter(post["label"] for post in posts.values())
    out.mkdir(parents=True, exist_ok=True)
    _write_ids(out / IDS, labels)
    if texts:
        with (out / POSTS).open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(posts[key], ensure_ascii=False) + "\n" for key in labels if key in posts)
        _write_ids(out / VANISHED, [key for key in labels if key not in posts])
    return hydrated


def _write_ids(path: Path, ids: Sequence[str] | dict[str, str]) -> None:
    path.write_text("".join(f"{key}\n" for key in ids), encoding="utf-8", newline="\n")


def _rows_with_text(path: Path, format: str, columns: dict[str, str], hydrated: Hydrated) -> Iterator[dict[str, Any]]:
    """Yield the rows that have a text, and drop their empty values. Skip removed posts, and count invalid rows."""
    for line, raw in _read_texts(path, format, columns):
        try:
            if isinstance(raw, Fault):
                raise RecordError(raw.reason)
            key, text = read_id(raw.get("id")), raw.get("text")
        except RecordError as error:
            hydrated.faulty += 1
            hydrated.first_fault = hydrated.first_fault or f"{path}, line {line:,}: {error}"
            continue
        if isinstance(text, str) and not is_missing(text) and not is_removed(text):
            yield {name: value for name, value in raw.items() if not is_missing(value)} | {"id": key}


def _read_texts(path: Path, format: str, columns: dict[str, str]) -> Iterator[Row]:
    """Yield the rows of a file. Lines of JSONL may also be arrays such as ["1", "text"], as twurl and jq print them."""
    _, first = next(text_lines(path, format), (0, "")) if format == "jsonl" else (0, "")
    if not first.lstrip().startswith('["'):
        wanted = Columns({name: columns.get(name, name) for name in FIELDS}, ("id", "text"), bare=True)
        yield from read_rows(path, format, wanted)
        return
    for number, line in text_lines(path, format):
        try:
            key, text = json.loads(line)
            yield number, {"id": key, "text": text}
        except (ValueError, TypeError):
            yield number, Fault("The line is not an array of an id and a text.")
