"""Fixtures: a package with entry points that appears to be installed."""

import sys

import pytest


@pytest.fixture
def installed_package(tmp_path, monkeypatch):
    def install(group, name, what):
        folder = tmp_path / "packages" / f"{name}-1.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[assay.{group}]\n{name} = {what}\n")
        monkeypatch.setattr(sys, "path", [str(folder.parent), *sys.path])
        return folder.parent

    return install
