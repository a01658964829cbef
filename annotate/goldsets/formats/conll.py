"""The published format for spans: CoNLL files with a token and its IOB2 tag per line, as in XGLUE's NER and POS.

    <KIND>/<language>.<split>      NER/en.train; a blank line follows each record

The kind can name a field with the tokens. Otherwise, tokens are words and other characters; in scripts without spaces,
each character is a token. The first token of a span is tagged B, the others I. Of overlapping spans, the longest is
kept. A span that begins or ends within a token is widened to the whole token, and counted.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotate.goldsets.formats import Format, register
from annotate.kinds.forms.spans import Span, spans_in
from corpora.core.graphemes import words_in
from corpora.core.languages import published_code

if TYPE_CHECKING:
    from annotate.goldsets.export import Export

CONLL = "CoNLL"
OUTSIDE = "O"
Tagged = list[tuple[str, str]]  # the tokens of a record with their tags


class ConllError(ValueError):
    """Raised if a text or a file has no usable tokens. The message states the reason in a sentence."""


def tokens_in(text: str, tokens: str | None = None) -> list[tuple[int, int]]:
    """Return the start and end of each token in a text.

    tokens: the tokens, separated by white space; None to split the text into words and other characters

    Raise ConllError if the text does not contain the tokens in this order.
    """
    if tokens is None:
        return words_in(text)
    places, end = [], 0
    for token in tokens.split():
        start = text.find(token, end)
        if start < 0:
            raise ConllError(f"The token {token!r} is not in the text after its character {end:,}.")
        end = start + len(token)
        places.append((start, end))
    return places


def tags(places: Sequence[tuple[int, int]], spans: Iterable[Span]) -> list[str]:
    """Return the IOB2 tag of each token. A span that shares a token with a longer span is dropped."""
    tagged = [OUTSIDE] * len(places)
    for span in sorted(spans, key=lambda span: (span.start - span.end, span)):
        touched = [number for number, (start, end) in enumerate(places) if start < span.end and span.start < end]
        if all(tagged[number] == OUTSIDE for number in touched):
            for number in touched:
                tagged[number] = f"{'B' if number == touched[0] else 'I'}-{span.label}"
    return tagged


def count_widened(places: Sequence[tuple[int, int]], spans: Iterable[Span]) -> int:
    """Return the number of spans that begin or end within a token."""
    starts, ends = ({place[side] for place in places} for side in (0, 1))
    return sum(span.start not in starts or span.end not in ends for span in spans)


def spans_of(tags: Iterable[str]) -> list[Span]:
    """Return the spans marked by IOB2 tags, in tokens. As in seqeval's strict mode, an I without a B is ignored."""
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

    refused: reason why no files are written; empty if they are.
    note: number of spans that begin or end within a token, as a sentence; empty if there are none.
    """
    marking = export.kind.publication.constants["marking"]
    field, tokens = marking["field"], marking["tokens"]
    tokens_are = f"those of the field {tokens}" if tokens else WORDS_ARE
    entry: dict[str, Any] = {"format": CONLL, "files": {}, "refused": "", "about": ABOUT.format(tokens_are=tokens_are)}
    if not export.with_text:
        return entry | {"refused": "The texts must not be published, so CoNLL files are not written."}
    columns = ("id", "language", "split", "label", *export.kind.exported_fields)
    rows = list(export.written_rows(folder, columns))
    languages = {row["language"] for row in rows}
    files: dict[str, list[Tagged]] = {}
    number = 0
    for row in rows:
        text, spans = row[field], spans_in(row["label"])
        try:
            places = tokens_in(text, row[tokens] if tokens else None)
        except ConllError as error:
            return entry | {"refused": f"CoNLL files are not written, because of the record {row['id']}: {error}"}
        number += count_widened(places, spans)
        tagged = [(text[start:end], tag) for (start, end), tag in zip(places, tags(places, spans), strict=True)]
        code = published_code(row["language"], languages)
        files.setdefault(file_name(export.kind.slug, code, row["split"], export.mark), []).append(tagged)
    for name, items in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("".join(map(_block, items)), encoding="utf-8", newline="\n")
    note = _note(number, sum(len(spans_in(row["label"])) for row in rows))
    about = f"{entry['about']} {note}".rstrip()
    return entry | {"files": {name: len(files[name]) for name in sorted(files)}, "note": note, "about": about}


WORDS_ARE = (
    "runs of letters and digits, and single other characters; in scripts without spaces, each character is a token"
)
ABOUT = (
    "CoNLL files: each line has a token, a space and its IOB2 tag, and a blank line ends each record. The tokens are "
    "{tokens_are}. A span that begins or ends within a token includes the whole token."
)


def _note(number: int, of: int) -> str:
    begin = "begins or ends" if number == 1 else "begin or end"
    return f"{number:,} of {of:,} spans {begin} within a token; {CONLL} has the whole token." if number else ""


def _block(tagged: Tagged) -> str:
    return "".join(f"{token} {tag}\n" for token, tag in tagged) + "\n"


def read_conll(path: Path) -> list[Tagged]:
    """Read the tokens and tags of each record. The tag is the last column. Raise ConllError if the file is invalid."""
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
