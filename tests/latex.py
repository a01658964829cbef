"""Compiling LaTeX as an author does who has no packages beyond those of Debian's texlive-latex-base."""

import re
import shutil
import subprocess

import pytest

PDFLATEX = shutil.which("pdflatex")
ARTICLE = "\\documentclass{article}\n\\begin{document}\n%s\n\\end{document}\n"


def pages(folder, text):
    """Compile a text inside an article and return its number of pages, or skip the test if there is no LaTeX."""
    if PDFLATEX is None:
        pytest.skip("no pdflatex was found; install the Debian package texlive-latex-base")
    folder.mkdir(exist_ok=True)
    (folder / "paper.tex").write_text(ARTICLE % text, encoding="utf-8")
    command = [PDFLATEX, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex"]
    result = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    printed = result.stdout.decode("utf-8", "replace")
    assert result.returncode == 0, printed[-1500:]
    return int(re.search(r"Output written on paper\.pdf \((\d+) page", printed)[1])
