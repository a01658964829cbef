"""Reproducible random draws, which order items by a hash of the draw's purpose and the item's id.

Draws from a corpus use a public seed, so anybody can repeat them. Draws that affect people or trust use a secret, so
nobody can predict them. Once the secret is published, anybody can repeat those draws too.
"""

import hashlib
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache, partial
from heapq import nsmallest

# A function from purpose and id to hex digits. Two draws that use the same seed or secret have different purposes, so
# they are independent.
Lots = Callable[[str, str], str]


def lot(seed: str, purpose: str, key: str) -> str:
    """Return the hash of an id for a public seed (32 hex digits)."""
    return hashlib.md5(f"{seed}:{purpose}:{key}".encode(), usedforsecurity=False).hexdigest()


def secret_lot(secret: str, purpose: str, key: str) -> str:
    """Return the keyed hash of an id for a secret (64 hex digits).

    This is HMAC-SHA256 (RFC 2104), which nobody can predict without the secret.
    """
    return by_secret(secret)(purpose, key)


def by_seed(seed: str) -> Lots:
    return partial(lot, seed)


@lru_cache
def by_secret(secret: str) -> Lots:
    """Return the function `secret_lot` for one secret.

    Both hashes of an HMAC begin with the secret, so this part is hashed only once. hmac.digest takes twice as long.
    """
    block = secret.encode()
    if len(block) > 64:
        block = hashlib.sha256(block).digest()
    inner, outer = (hashlib.sha256(bytes(byte ^ pad for byte in block.ljust(64, b"\0"))) for pad in (0x36, 0x5C))

    def lots(purpose: str, key: str) -> str:
        message, result = inner.copy(), outer.copy()
        message.update(f"{purpose}:{key}".encode())
        result.update(message.digest())
        return result.hexdigest()

    return lots


def _number(lot: str) -> tuple[int, float]:
    """Return a hash as an integer, and the number of values that it could have."""
    return int(lot, 16), 16.0 ** len(lot)


def drawn(keys: Iterable[str], count: int, *, lots: Lots, purpose: str) -> list[str]:
    """Return a simple random sample of `count` ids, or all ids if there are fewer."""
    return nsmallest(count, keys, key=lambda key: (lots(purpose, key), key))


def place(lots: Lots, purpose: str, key: str) -> float:
    """Return a uniform random number in [0, 1) for an id."""
    number, of = _number(lots(purpose, key))
    return number / of


def hit(share: float, *, lots: Lots, purpose: str, key: str) -> bool:
    """Return whether an id is drawn. Each id is drawn independently, with probability `share`."""
    number, of = _number(lots(purpose, key))
    return number < share * of


def part_of(share: float, whole: int) -> int:
    """Return `share` times `whole`, rounded up. The share is read as a decimal, so 0.07 is exactly 7/100."""
    return math.ceil(Fraction(str(share)) * whole)
