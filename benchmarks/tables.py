"""Small tables for a terminal."""

from collections.abc import Iterable, Sequence


def share(part: int, whole: int) -> str:
    return f"{part / whole:.2%}" if whole else "-"


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if isinstance(value, float) else str(value)


def show(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table. The first column is aligned to the left, and the others, which are numbers, to the right."""
    lines = [list(head), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    print(title)
    for number, line in enumerate(lines):
        cells = [
            line[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)),
        ]
        print("  " + "  ".join(cells).rstrip())
        if number == 0:
            print("  " + "  ".join("-" * width for width in widths))
    print(flush=True)
