"""Choices by lot: in the order of a hash of purpose and id, so that anybody can draw them again.

What is drawn of a corpus goes by a seed, which is known from the start. What decides about people or trust goes by a
secret, so that nobody can foresee it; whoever is told the secret at the end can draw that again too.
"""

import hashlib
import hmac
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from heapq import nsmallest

# Purpose and id -> the lot in hex digits; purpose keeps choices apart that use one seed or secret.
Lots = Callable[[str, str], str]


def lot(seed: str, purpose: str, key: str) -> str:
    """The lot of one id by a seed, 32 hex digits."""
    return hashlib.md5(f"{seed}:{purpose}:{key}".encode(), usedforsecurity=False).hexdigest()


def secret_lot(secret: str, purpose: str, key: str) -> str:
    """The lot of one id, 64 hex digits, which nobody foresees without the secret: HMAC-SHA256 (RFC 2104)."""
    return hmac.digest(secret.encode(), f"{purpose}:{key}".encode(), "sha256").hex()


def by_seed(seed: str) -> Lots:
    return partial(lot, seed)


def by_secret(secret: str) -> Lots:
    return partial(secret_lot, secret)


def _number(lot: str) -> tuple[int, float]:
    """A lot as a whole number, and the first number that it cannot be."""
    return int(lot, 16), 16.0 ** len(lot)


def drawn(keys: Iterable[str], count: int, *, lots: Lots, purpose: str) -> list[str]:
    """`count` of the ids, each with the same chance; all of them where there are fewer."""
    return nsmallest(count, keys, key=lambda key: (lots(purpose, key), key))


def place(lots: Lots, purpose: str, key: str) -> float:
    """A number from 0 to 1 for an id, each as likely as any other."""
    number, of = _number(lots(purpose, key))
    return number / of


def hit(share: float, *, lots: Lots, purpose: str, key: str) -> bool:
    """Whether this id is among a share (0 to 1) of all ids, each for itself."""
    number, of = _number(lots(purpose, key))
    return number < share * of


def part_of(share: float, whole: int) -> int:
    """A share of a whole number, rounded up; 0.07 means 7/100 and not the nearest binary number."""
    return math.ceil(Fraction(str(share)) * whole)
