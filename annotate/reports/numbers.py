"""How numbers are written, and words shortened, wherever people read them: pages, cards, reports.

Nothing is computed here. Shares are between 0 and 1; a number that was not measured is None and is written as a dash.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

NOT_MEASURED = "–"


def shortened(words: str, most: int, end: int) -> str:
    """At most so many letters, of which so many from the end."""
    return words if len(words) <= most else f"{words[: most - 1 - end].rstrip()}…{words[len(words) - end :].lstrip()}"


def end_apart(among: Collection[str], most: int, usual: int) -> int:
    """How many letters to keep from the end, so that most of these words differ when shortened; the nearest to the
    usual number."""
    ends = sorted(range(most), key=lambda end: abs(end - usual))
    return max(ends, key=lambda end: len({shortened(words, most, end) for words in among}), default=0)


def percent(share: float | None) -> str:
    """97.1%. A share that is not quite all or nothing is never rounded to all or nothing."""
    if share is None:
        return NOT_MEASURED
    written = f"{share:.1%}"
    if written == "100.0%" and share < 1:
        return ">99.9%"
    if written == "0.0%" and share > 0:
        return "<0.1%"
    return written


def span(low: float, high: float) -> str:
    """[95.8, 98.2], in percent."""
    return f"[{100 * low:.1f}, {100 * high:.1f}]"


def coefficient(made: Mapping[str, Any] | None, digits: int = 3) -> str:
    """0.158 [0.140, 0.173], and never -0.000, of a measure as coefficients.py makes it; there may be no interval, or
    no value."""
    return _with_ends(made, lambda value: f"{value:z.{digits}f}")


def coefficients_apart(made: Mapping[str, Any] | None) -> str:
    """+0.158 [−0.140, +0.173], a difference of two such measures."""
    return _with_ends(made, lambda value: _minus(f"{value:+.3f}"))


def _with_ends(made: Mapping[str, Any] | None, shown: Callable[[float], str]) -> str:
    if made is None or made["value"] is None:
        return NOT_MEASURED
    interval = "" if made["low"] is None else f" [{shown(made['low'])}, {shown(made['high'])}]"
    return f"{shown(made['value'])}{interval}"


def estimate(made: Mapping[str, Any] | None) -> str:
    """97.1% [95.8, 98.2], of an estimate as a report holds it: {"value", "low", "high", ...}, or None."""
    if made is None or made["value"] is None:
        return NOT_MEASURED
    interval = ", no interval" if made["low"] is None else f" {span(made['low'], made['high'])}"
    return f"{percent(made['value'])}{interval}"


def points(made: Mapping[str, Any] | None) -> str:
    """+1.4 [−0.2, +3.0], a difference of two shares with its interval, if it has one, in percentage points."""
    if made is None or made["value"] is None:
        return NOT_MEASURED
    if made["low"] is None:
        return f"{_signed(made['value'])}, no interval"
    return f"{_signed(made['value'])} [{_signed(made['low'])}, {_signed(made['high'])}]"


def _signed(share: float) -> str:
    return _minus(f"{100 * share:+.1f}")


def _minus(number: str) -> str:
    """With a minus sign for a hyphen; zero without a sign."""
    return number.replace("-", "−") if float(number) else number[1:]


def count(number: float | None) -> str:
    """1,234 for a count, ≈1,234 for an effective count, which need not be whole."""
    if number is None:
        return NOT_MEASURED
    # Sums of weights miss whole numbers by the last bits of a float.
    if abs(number - round(number)) < 1e-9 * max(1.0, abs(number)):
        return f"{round(number):,}"
    return f"≈{number:,.1f}" if number < 10 else f"≈{number:,.0f}"


def rounded(number: float | None) -> str:
    """Of what is expected, such as posts or hours: one decimal below ten, then whole numbers."""
    if number is None:
        return NOT_MEASURED
    if 0 < number < 0.05:
        return "<0.1"
    return f"{number:,.1f}" if 0 < number < 9.95 else f"{number:,.0f}"


def p_value(p: float | None) -> str:
    if p is None:
        return NOT_MEASURED
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def in_points(wished: float) -> str:
    points = f"{100 * wished:g}"
    return f"{points} point{'' if points == '1' else 's'}"
