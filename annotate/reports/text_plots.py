"""Plots made of characters, for Markdown and for a terminal."""

from collections.abc import Iterable, Sequence

from annotate.reports.numbers import count, percent, shortened, span
from annotate.reports.plots import Axis, Mark
from annotate.reports.table_formats import printable

WIDE, ROOM = 40, 34  # width of a plot and of the names before it, in characters
LONGEST = 12  # maximum number of bars


def intervals(lines: Sequence[tuple[str, Mark]], axis: Axis) -> list[str]:
    """Draw a dot and an interval for each mark, with the numbers on the right and the axis below."""
    start, end = axis
    names = [_head(name) for name, _ in lines]
    room = max(map(len, names), default=0)
    drawn = [
        f"{name:<{room}}  {_interval(mark, axis)}  {_numbers(mark)}"
        for name, (_, mark) in zip(names, lines, strict=True)
    ]
    below = f"{start}%{'':{WIDE - len(f'{start}%{end}%')}}{end}%"
    return [*drawn, f"{'':{room}}  {below}"] if drawn else []


def bars(rows: Iterable[tuple[str, int]]) -> list[str]:
    """Draw a bar for each count, the largest first. Rows beyond LONGEST are added up."""
    ordered = sorted(((_head(name), number) for name, number in rows if number), key=lambda row: -row[1])
    if len(ordered) > LONGEST:
        others = ordered[LONGEST - 1 :]
        ordered = [*ordered[: LONGEST - 1], (f"{len(others)} others", sum(number for _, number in others))]
    room = max((len(name) for name, _ in ordered), default=0)
    most = max((number for _, number in ordered), default=0)
    return [
        f"{name:<{room}}  {'█' * max(1, round(WIDE * number / most)):<{WIDE}}  {count(number)}"
        for name, number in ordered
    ]


def _head(name: str) -> str:
    """Return the name of a line, cut to its room. It cannot end the block of code that holds the plot."""
    return shortened(printable(name).replace("`", "'"), ROOM, ROOM // 3)


def _interval(mark: Mark, axis: Axis) -> str:
    start, end = axis

    def place(share: float) -> int:
        return min(WIDE - 1, max(0, round((100 * share - start) / (end - start) * (WIDE - 1))))

    assert mark.value is not None
    low, high = place(mark.low), place(mark.high)
    line = [" "] * low + ["─"] * (high - low + 1) + [" "] * (WIDE - 1 - high)
    line[low], line[high] = "├", "┤"
    line[place(mark.value)] = "●"
    return "".join(line)


def _numbers(mark: Mark) -> str:
    return percent(mark.value) + ("" if mark.alone else f" {span(mark.low, mark.high)}")
