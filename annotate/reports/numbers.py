"""Format numbers and shorten text for pages, dataset cards and reports.

Shares are between 0 and 1. A number that was not measured is None, and is formatted as a dash.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

NOT_MEASURED = "–"


def shorten(label: str, limit: int, end: int) -> str:
    """Shorten text to `limit` characters by omitting the middle. The last `end` characters are kept."""
    return label if len(label) <= limit else f"{label[: limit - 1 - end].rstrip()}…{label[len(label) - end :].lstrip()}"


def distinct_ending(among: Collection[str], limit: int, usual: int) -> int:
    """Return how many final characters to keep in `shorten`, so that as many labels as possible remain distinct.

    limit: maximum length of a shortened label.
    usual: preferred number. Of several equally good numbers, the closest to it is returned.
    """
    ends = sorted(range(limit), key=lambda end: abs(end - usual))
    return max(ends, key=lambda end: len({shorten(label, limit, end) for label in among}), default=0)


def percent(share: float | None) -> str:
    """Format a share, such as 97.1%. Only an exact 0 or 1 is shown as 0.0% or 100.0%."""
    if share is None:
        return NOT_MEASURED
    written = f"{share:.1%}"
    if written == "100.0%" and share < 1:
        return ">99.9%"
    if written == "0.0%" and share > 0:
        return "<0.1%"
    return written


def span(low: float, high: float) -> str:
    """Format an interval as percentages, such as [95.8, 98.2]."""
    return f"[{100 * low:.1f}, {100 * high:.1f}]"


def coefficient(figure: Mapping[str, Any] | None, digits: int = 3) -> str:
    """Format a coefficient with its interval, if any, such as 0.158 [0.140, 0.173]. Zero has no minus sign."""
    return _with_ends(figure, lambda value: f"{value:z.{digits}f}")


def coefficient_difference(figure: Mapping[str, Any] | None) -> str:
    """Format the difference of two coefficients, such as +0.158 [−0.140, +0.173]."""
    return _with_ends(figure, lambda value: _minus(f"{value:+.3f}"))


def _with_ends(figure: Mapping[str, Any] | None, written: Callable[[float], str], without: str = "") -> str:
    """Format a figure with its interval, or with the text `without` if it has no interval."""
    if figure is None or figure["value"] is None:
        return NOT_MEASURED
    interval = without if figure["low"] is None else f" [{written(figure['low'])}, {written(figure['high'])}]"
    return f"{written(figure['value'])}{interval}"


def estimate(figure: Mapping[str, Any] | None) -> str:
    """Format an estimate in a report, such as 97.1% [95.8, 98.2].

    figure: mapping with `value`, `low` and `high`; None if not measured.
    """
    if figure is None or figure["value"] is None:
        return NOT_MEASURED
    interval = ", no interval" if figure["low"] is None else f" {span(figure['low'], figure['high'])}"
    return f"{percent(figure['value'])}{interval}"


def points(figure: Mapping[str, Any] | None) -> str:
    """Format the difference of two shares in percentage points, such as +1.4 [−0.2, +3.0] or +1.4, no interval."""
    return _with_ends(figure, _signed, ", no interval")


def amount(difference: Mapping[str, Any], *, is_share: bool) -> tuple[str, str]:
    """Format a difference in words with its interval, such as ("2.4 points more", "[0.4, 5.2]").

    A negative difference is reversed: the word is "less", and the interval has the opposite signs.

    difference: mapping with `value`, `low` and `high`, all measured.
    is_share: whether to use percentage points.
    """
    sign = -1 if difference["value"] < 0 else 1
    value, *ends = (sign * difference[name] for name in ("value", *(("low", "high")[::sign])))
    scale, digits = (100, 1) if is_share else (1, 3)
    size, low, high = (f"{scale * number:z.{digits}f}".replace("-", "−") for number in (value, *ends))
    return f"{size}{' points' if is_share else ''} {'less' if sign < 0 else 'more'}", f"[{low}, {high}]"


def _signed(share: float) -> str:
    return _minus(f"{100 * share:+.1f}")


def _minus(number: str) -> str:
    """Replace the hyphen with a minus sign, and remove the sign of zero."""
    return number.replace("-", "−") if float(number) else number[1:]


def count(number: float | None) -> str:
    """Format a count as 1,234, or a fractional effective count as ≈1,234."""
    if number is None:
        return NOT_MEASURED
    # Treat values close to an integer as integers, because sums of weights have rounding errors.
    if abs(number - round(number)) < 1e-9 * max(1.0, abs(number)):
        return f"{round(number):,}"
    return f"≈{number:,.1f}" if number < 10 else f"≈{number:,.0f}"


def rounded(number: float | None) -> str:
    """Format an expected number of posts or hours. Only numbers below ten have a decimal place."""
    if number is None:
        return NOT_MEASURED
    if 0 < number < 0.05:
        return "<0.1"
    return f"{number:,.1f}" if 0 < number < 9.95 else f"{number:,.0f}"


def hours_words(number: float) -> str:
    """Format a number of hours, such as "0.7 hours" or "1 hour"."""
    return f"{rounded(number)} {'hour' if number == 1 else 'hours'}"


def p_value(p: float | None) -> str:
    if p is None:
        return NOT_MEASURED
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def in_points(wished: float) -> str:
    points = f"{100 * wished:g}"
    return f"{points} point{'' if points == '1' else 's'}"
