"""Choices by lot: in the order of a hash of seed, purpose and id, so that anybody can draw them again."""

import hashlib
import hmac
import math
from collections.abc import Collection, Iterable
from fractions import Fraction


def lot(seed: str, purpose: str, key: str) -> str:
    """The lot of one id, 32 hex digits; purpose keeps choices that use one seed apart."""
    return hashlib.md5(f"{seed}:{purpose}:{key}".encode(), usedforsecurity=False).hexdigest()


def secret_lot(secret: str, purpose: str, key: str) -> str:
    """The lot of one id, 64 hex digits, which nobody foresees without the secret: HMAC-SHA256. It is for what would
    tell people something of their work if they could draw it themselves.
    """
    return hmac.digest(secret.encode(), f"{purpose}:{key}".encode(), "sha256").hex()


def drawn(keys: Iterable[str], count: int, *, seed: str, purpose: str) -> list[str]:
    """`count` of the ids, each with the same chance; all of them where there are fewer."""
    return sorted(keys, key=lambda key: (lot(seed, purpose, key), key))[:count]


def hit(share: float, *, seed: str, purpose: str, key: str) -> bool:
    """Whether this id is among a share (0 to 1) of all ids, each for itself."""
    return int(lot(seed, purpose, key), 16) < share * 16**32


def topped_up(
    keys: Collection[str], *, before: tuple[int, int], share: float, least: int, seed: str, purpose: str
) -> list[str]:
    """The ids to choose among `keys`, which join others, so that a share of all is chosen, and `least` of them at
    least, if there are so many. before: how many others there are, and how many of these were chosen, who stay.
    """
    others, chosen = before
    total = others + len(keys)
    return drawn(keys, max(0, wanted(total, share, least) - chosen), seed=seed, purpose=purpose)


def wanted(whole: int, share: float, least: int) -> int:
    """How many are a share of a whole number, and `least` at least, if there are so many."""
    return max(part_of(share, whole), min(least, whole))


def part_of(share: float, whole: int) -> int:
    """A share of a whole number, rounded up; 0.07 means 7/100 and not the nearest binary number."""
    return math.ceil(Fraction(str(share)) * whole)
