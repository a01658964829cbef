"""A newcomer who follows a documentation page: its commands are run by a shell in an empty folder.

A fence `sh` is run, and its output must match the fence `text` after it (… matches anything). `sh server` is started in
the background, and fences marked `not-run` are skipped. A fence `toml` or `csv` is saved to the last file with this
suffix that the page has named in backquotes. Steps in a browser have separate headings, and are passed as `deeds`.
"""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from markdown_it import MarkdownIt

from benchmarks.place import ROOT, Place, free_port, wait_for_server

DOCS = ROOT / "annotate" / "docs"
FILES = ("toml", "csv")


def matches(shown: str, printed: str) -> bool:
    pattern = re.escape(shown.strip()).replace("…", ".*")
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def steps(page: Path) -> Iterator[tuple[str, str]]:
    """Yield (type, text) for each heading, paragraph and fence, from top to bottom."""
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    heading = False
    for token in tokens:
        if token.type == "heading_open":
            heading = True
        elif token.type == "inline":
            yield ("heading" if heading else "paragraph"), token.content
            heading = False
        elif token.type == "fence":
            yield token.info.strip(), token.content


class Newcomer:
    """A newcomer with `assay` and `python3` on the path, and a separate data folder."""

    def __init__(self, place: Place) -> None:
        self.folder = place.folder / "newcomer"
        self.folder.mkdir()
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        programs = place.folder / "programs"
        programs.mkdir()
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        module, function = project["scripts"]["assay"].split(":")
        start = f"import sys; sys.argv[0] = 'assay'; from {module} import {function}; sys.exit({function}())"
        (programs / "assay").write_text(f'#!/bin/sh\nexec {sys.executable} -c "{start}" "$@"\n')
        (programs / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        for program in programs.iterdir():
            program.chmod(0o755)
        self.env = place.env | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HF_HOME": str(place.folder / "hub"),
            "HF_HUB_OFFLINE": "1",
        }
        self.printed: list[str] = []

    def shell(self, code: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", code],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, f"{code}\n{done.stdout}"
        self.printed.append(done.stdout)
        return done.stdout

    def serve(self, code: str, stack: ExitStack) -> None:
        """Run a server command with a free port, until the stack is closed."""
        command = ["bash", "-c", f"exec {code.strip()} --port {self.port}"]
        with open(self.folder.parent / "server.log", "w") as log:
            server = subprocess.Popen(
                command, cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        stack.callback(server.wait)
        stack.callback(server.terminate)
        wait_for_server(server, self.port)

    def follow(self, page: Path, deeds: Mapping[str, Callable[["Newcomer"], None]]) -> None:
        """Follow all steps of a page. deeds: the functions for steps in a browser, by heading."""
        done, name = [], ""
        with ExitStack() as stack:
            for what, text in steps(page):
                if what == "heading" and text in deeds:
                    deeds[text](self)
                    done.append(text)
                elif what == "paragraph":
                    name = ([name, *re.findall(r"`([\w-]+\.(?:toml|csv))`", text)])[-1]
                elif what in FILES:
                    if name.endswith(what):
                        (self.folder / name).write_text(text, encoding="utf-8")
                        name = ""
                elif what == "sh server":
                    self.serve(text, stack)
                elif what == "sh":
                    self.shell(text)
                elif what == "text":
                    assert matches(text, self.printed[-1]), self.printed[-1]
                else:
                    assert what == "heading" or what.endswith(" not-run"), (
                        f"Nobody knows what to do with a fence {what!r}."
                    )
        assert done == list(deeds)
