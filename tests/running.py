"""Functions that run the program in a separate process, as a shell does, with SQLite and a folder of the test."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = "data"  # subfolder of the folder
DATABASE = "assay.sqlite3"  # file in the data folder


def install(data: Path, migrated: Path) -> None:
    """Create an installation with a copy of the database from the fixture `migrated`."""
    data.mkdir(mode=0o700)
    shutil.copyfile(migrated, data / DATABASE)
    (data / DATABASE).chmod(0o600)


def environment(data: Path) -> dict[str, str]:
    """Return the caller's environment without settings of an installation, but with this data folder."""
    ours = {name: value for name, value in os.environ.items() if name != "DATABASE_URL" and name[:6] != "ASSAY_"}
    return {**ours, "ASSAY_DATA_DIR": str(data)}


def _call(folder: Path, words: tuple[object, ...], env: dict[str, str]) -> dict[str, Any]:
    command = [sys.executable, str(ROOT / "manage.py"), *map(str, words)]
    return {"args": command, "cwd": folder, "env": environment(folder / DATA) | env, "text": True}


def assay(folder: Path, *words: object, stdin: int = subprocess.DEVNULL, **env: str) -> subprocess.CompletedProcess:
    """Run a command until it ends with any status. env: additional environment variables."""
    return subprocess.run(**_call(folder, words, env), stdin=stdin, capture_output=True)


def begin(folder: Path, *words: object, env: dict[str, str] | None = None, **options: Any) -> subprocess.Popen:
    """Start a command in a separate process group, as a terminal does.

    env: additional environment variables
    options: options of Popen
    """
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.Popen(**_call(folder, words, env or {}), **streams, start_new_session=True)
