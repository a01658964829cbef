"""The published format of spans: CoNLL files with a token and its IOB2 tag per line, as in XGLUE's NER and POS.

    <KIND>/<language>.<split>      NER/en.train; a blank line follows each record, and nothing else is in the file

The tokens are those of the record if its kind names a field with them; otherwise they are separated by white space. The
first token that a span touches is B, the others are I. If spans overlap, a token keeps the tag of the longest one.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotate.goldsets.formats import Format, register
from annotate.kinds.forms.spans import Span, spans_in
from corpora.core.languages import published_code

if TYPE_CHECKING:
    from annotate.goldsets.export import Export

CONLL = "CoNLL"
OUTSIDE = "O"
Tagged = list[tuple[str, str]]  # the tokens of a record with their tags


class ConllError(ValueError):
    """The error for texts or files without usable tokens. The message states the reason in a sentence."""


def tokens_in(text: str, tokens: str | None = None) -> list[tuple[int, int]]:
    """Return the start and end of each token.

    tokens: the tokens of the text, separated by white space; None if those of the text are separated so

    Raise ConllError if a token is not in the text after the one before it.
    """
    places, end = [], 0
    for token in (text if tokens is None else tokens).split():
        start = text.find(token, end)
        if start < 0:
            raise ConllError(f"The token {token!r} is not in the text after its character {end:,}.")
        end = start + len(token)
        places.append((start, end))
    return places


def tags(places: Sequence[tuple[int, int]], spans: Iterable[Span]) -> list[str]:
    """Return the IOB2 tag of each token."""
    tagged = [OUTSIDE] * len(places)
    for span in sorted(spans, key=lambda span: (span.start - span.end, span)):
        touched = [number for number, (start, end) in enumerate(places) if start < span.end and span.start < end]
        if all(tagged[number] == OUTSIDE for number in touched):
            for number in touched:
                tagged[number] = f"{'B' if number == touched[0] else 'I'}-{span.label}"
    return tagged


def spans_of(tags: Iterable[str]) -> list[Span]:
    """Return the spans of IOB2 tags, counted in tokens. As in seqeval's strict mode, an I without its B begins none."""
    spans: list[Span] = []
    for number, tag in enumerate(tags):
        prefix, _, label = tag.partition("-")
        last = spans[-1] if spans else None
        if prefix == "B":
            spans.append(Span(number, number + 1, label))
        elif prefix == "I" and last and last[1:] == (number, label):
            spans[-1] = last._replace(end=number + 1)
    return spans


def file_name(kind: str, language: str, split: str, mark: str = "") -> str:
    return f"{kind.upper()}/{language}{mark}.{split}"


def write_conll(folder: Path, export: "Export") -> dict[str, Any]:
    """Write a set's CoNLL files and return their manifest entry.

    refused: why the files are not written; empty if they are.
    """
    marking = export.kind.publication.constants["marking"]
    separated = f"the field {marking['tokens']}" if marking["tokens"] else "white space"
    entry: dict[str, Any] = {"format": CONLL, "files": {}, "refused": "", "about": ABOUT.format(separated=separated)}
    if not export.with_text:
        return entry | {"refused": "The texts must not be published, so CoNLL files are not written."}
    columns = ("id", "language", "split", "label", *export.kind.exported_fields)
    rows = list(export.written_rows(folder, columns))
    languages = {row["language"] for row in rows}
    files: dict[str, list[Tagged]] = {}
    for row in rows:
        place = published_code(row["language"], languages), row["split"]
        try:
            tagged = _tagged(row[marking["field"]], row[marking["tokens"]] if marking["tokens"] else None, row["label"])
        except ConllError as error:
            return entry | {"refused": f"CoNLL files are not written, because of the record {row['id']}: {error}"}
        files.setdefault(file_name(export.kind.slug, *place, export.mark), []).append(tagged)
    for name, items in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("".join(map(_block, items)), encoding="utf-8", newline="\n")
    return entry | {"files": {name: len(files[name]) for name in sorted(files)}}


ABOUT = (
    "CoNLL files: each line has a token, a space and its IOB2 tag, and a blank line ends each record. "
    "Tokens are separated by {separated}. A span that begins or ends within a token includes the whole token."
)


def _tagged(text: str, tokens: str | None, label: str) -> Tagged:
    places = tokens_in(text, tokens)
    return [(text[start:end], tag) for (start, end), tag in zip(places, tags(places, spans_in(label)), strict=True)]


def _block(tagged: Tagged) -> str:
    return "".join(f"{token} {tag}\n" for token, tag in tagged) + "\n"


def read_conll(path: Path) -> list[Tagged]:
    """Read a file: the last column of a line is the tag. Raise ConllError if it cannot be read."""
    try:
        blocks = path.read_text(encoding="utf-8-sig").split("\n\n")
        return [list(_lines(block)) for block in blocks if block.strip()]
    except OSError as error:
        raise ConllError(f"{path} cannot be read: {error.strerror}.") from error
    except (UnicodeDecodeError, IndexError) as error:
        raise ConllError(f"{path} is not a UTF-8 file with a token and a tag per line. Correct it.") from error


def _lines(block: str) -> Iterator[tuple[str, str]]:
    for line in block.strip("\n").split("\n"):
        cells = line.split()
        yield cells[0], cells[1:][-1]


register(Format("conll", CONLL, write_conll))
