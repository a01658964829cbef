"""Balanced sets are drawn alike on SQLite and on PostgreSQL, where this runs too."""

import hashlib

import pytest

from tests.annotate.balanced_draws.acts import SIZES, exported, lists, opened

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def test_the_same_seed_gives_the_same_bytes_on_every_database(sentences, kind, tmp_path):
    opened("topics", kind, apart="sentence", **SIZES)
    exported("topics", tmp_path / "gold")
    indices = b"".join(path.read_bytes() for path in sorted((tmp_path / "gold/mldoc-indices").iterdir()))
    assert hashlib.sha256(indices).hexdigest()[:16] == "f0578c1538a4c5e0"
    opened("others", kind, seed="2", apart="sentence", **SIZES)
    exported("others", tmp_path / "others")
    first, second = (lists(folder, "german")["test"] for folder in (tmp_path / "gold", tmp_path / "others"))
    assert set(first) != set(second)
