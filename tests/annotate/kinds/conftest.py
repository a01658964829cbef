"""Fixtures: each test writes files of kinds to its own folder."""

import pytest


@pytest.fixture
def write(tmp_path):
    def write(text, name="mood.toml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write
