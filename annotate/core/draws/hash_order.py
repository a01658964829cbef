"""Reproducible random draws, which order items by a hash of the draw's purpose and the item's id.

Draws from a corpus use a public seed, so anybody can repeat them. Draws that annotators or managers must not be able to
predict use a secret. Once the secret is published, anybody can repeat those draws too.
"""

import hashlib
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache, partial
from heapq import nsmallest

# Hashes a purpose and an id to hex digits. Draws with the same seed or secret have different purposes, so they are
# independent.
Lots = Callable[[str, str], str]


def lot(seed: str, purpose: str, key: str) -> str:
    """Hash an id with a public seed (32 hex digits)."""
    return hashlib.md5(f"{seed}:{purpose}:{key}".encode(), usedforsecurity=False).hexdigest()


def secret_lot(secret: str, purpose: str, key: str) -> str:
    """Hash an id with a secret (64 hex digits).

    The hash is HMAC-SHA256 (RFC 2104). It is unpredictable without the secret.
    """
    return by_secret(secret)(purpose, key)


def by_seed(seed: str) -> Lots:
    return partial(lot, seed)


@lru_cache
def by_secret(secret: str) -> Lots:
    """Return `secret_lot` for a fixed secret.

    Both hashes of an HMAC begin with the padded secret, so we hash it only once and copy the state for each id.
    hmac.digest takes twice as long.
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
    """Return a hash as an integer, and the number of possible hashes."""
    return int(lot, 16), 16.0 ** len(lot)


def draw_sample(keys: Iterable[str], count: int, *, lots: Lots, purpose: str) -> list[str]:
    """Return a simple random sample of `count` ids, or all ids if there are fewer."""
    return nsmallest(count, keys, key=lambda key: (lots(purpose, key), key))


def uniform_number(lots: Lots, purpose: str, key: str) -> float:
    """Return a uniform random number in [0, 1) for an id."""
    number, total = _number(lots(purpose, key))
    return number / total


def is_drawn(share: float, *, lots: Lots, purpose: str, key: str) -> bool:
    """Return whether an id is drawn. Each id is drawn independently, with probability `share`."""
    number, total = _number(lots(purpose, key))
    return number < share * total


def part_of(share: float, whole: int) -> int:
    """Return `share` times `whole`, rounded up. The share counts as a decimal, so 0.07 is exactly 7/100."""
    return math.ceil(Fraction(str(share)) * whole)
