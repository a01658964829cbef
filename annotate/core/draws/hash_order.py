"""Random draws in the order of a hash of purpose and id, so that anybody can repeat them.

Draws from a corpus use a public seed. Draws that affect people or trust use a secret, so that nobody can predict them;
once the secret is published, those draws can be repeated too.
"""

import hashlib
import hmac
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from heapq import nsmallest

# From purpose and id to hex digits. The purpose separates draws that use the same seed or secret.
Lots = Callable[[str, str], str]


def lot(seed: str, purpose: str, key: str) -> str:
    """Return the hash of an id for a seed, 32 hex digits."""
    return hashlib.md5(f"{seed}:{purpose}:{key}".encode(), usedforsecurity=False).hexdigest()


def secret_lot(secret: str, purpose: str, key: str) -> str:
    """Return the keyed hash of an id, 64 hex digits: HMAC-SHA256 (RFC 2104), unpredictable without the secret."""
    return hmac.digest(secret.encode(), f"{purpose}:{key}".encode(), "sha256").hex()


def by_seed(seed: str) -> Lots:
    return partial(lot, seed)


def by_secret(secret: str) -> Lots:
    return partial(secret_lot, secret)


def _number(lot: str) -> tuple[int, float]:
    """Return a hash as an integer, and the number of possible values."""
    return int(lot, 16), 16.0 ** len(lot)


def drawn(keys: Iterable[str], count: int, *, lots: Lots, purpose: str) -> list[str]:
    """Return a simple random sample of `count` ids, or all ids if there are fewer."""
    return nsmallest(count, keys, key=lambda key: (lots(purpose, key), key))


def place(lots: Lots, purpose: str, key: str) -> float:
    """Return a uniform random number in [0, 1) for an id."""
    number, of = _number(lots(purpose, key))
    return number / of


def hit(share: float, *, lots: Lots, purpose: str, key: str) -> bool:
    """Return whether an id belongs to a random share (0 to 1) of all ids, decided for each id independently."""
    number, of = _number(lots(purpose, key))
    return number < share * of


def part_of(share: float, whole: int) -> int:
    """Return a share of an integer, rounded up. The share is decimal: 0.07 is exactly 7/100."""
    return math.ceil(Fraction(str(share)) * whole)
