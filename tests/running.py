"""The program in a process of its own, as somebody at a shell starts it, on SQLite and in a folder of the test's."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = "data"  # in the folder
DATABASE = "assay.sqlite3"  # in the data


def install(data: Path, migrated: Path) -> None:
    """Begin an installation with a copy of the database that the fixture of that name gives."""
    data.mkdir(mode=0o700)
    shutil.copyfile(migrated, data / DATABASE)
    (data / DATABASE).chmod(0o600)


def environment(data: Path) -> dict[str, str]:
    """The caller's, but for what it says of an installation; the data are here."""
    ours = {name: value for name, value in os.environ.items() if name != "DATABASE_URL" and name[:6] != "ASSAY_"}
    return {**ours, "ASSAY_DATA_DIR": str(data)}


def _call(folder: Path, words: tuple[object, ...], env: dict[str, str]) -> dict[str, Any]:
    command = [sys.executable, str(ROOT / "manage.py"), *map(str, words)]
    return {"args": command, "cwd": folder, "env": environment(folder / DATA) | env, "text": True}


def assay(folder: Path, *words: object, stdin: int = subprocess.DEVNULL, **env: str) -> subprocess.CompletedProcess:
    """Run it to its end, with whatever status. env: other variables of its environment."""
    return subprocess.run(**_call(folder, words, env), stdin=stdin, capture_output=True)


def begin(folder: Path, *words: object, **options: Any) -> subprocess.Popen:
    """The command, at work in a group of its own, as a terminal gives it one. options: of Popen."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.Popen(**_call(folder, words, {}), **streams, start_new_session=True)
