"""The documents that venues ask for, beside every exported set."""

import json
import subprocess
import sys

import pytest

from annotate.actions.commands import call_command
from annotate.goldsets import set_documents
from annotate.goldsets.set_documents import PERSONAL
from annotate.reports.table_formats import in_tex
from tests import latex
from tests.annotate.exchange.test_import_project import EXPORTS
from tests.annotate.goldsets.set_contents import RESPONSIBLE

pytestmark = pytest.mark.django_db


@pytest.fixture
def exported(data_dir, tmp_path):
    """Return a function that exports a small set and returns its folder."""

    def export(**stated):
        if stated:
            call_command("project", **stated)
        call_command("import", "mood", EXPORTS / "mechanical_turk_boxes.csv", licence="CC0-1.0", language="en")
        call_command("export_gold", "mood", out=tmp_path / "set")
        return tmp_path / "set"

    return export


# A process of its own, because absl, which the validator imports, closes the stream of errors that it finds first.
VALIDATION = """
import json, sys, mlcroissant
dataset = mlcroissant.Dataset(jsonld=sys.argv[1])
rows = [row for records in dataset.metadata.record_sets for row in dataset.records(records.id)]
labels = sorted(value.decode() for row in rows for name, value in row.items() if name.endswith("/label"))
print(json.dumps([dataset.metadata.issues.report(), labels]))
"""


def test_the_validator_of_croissant_accepts_a_set_and_reads_its_rows(exported):
    program = [sys.executable, "-c", VALIDATION, exported() / "croissant.json"]
    report = subprocess.run(program, capture_output=True, check=True).stdout
    assert json.loads(report.splitlines()[-1]) == ["", ["bad", "good"]]


def test_no_responsible_ai_field_is_missing_and_five_are_left_to_the_authors(exported):
    folder = exported()
    croissant = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    assert {name.removeprefix("rai:") for name in croissant if name.startswith("rai:")} >= RESPONSIBLE
    assert len(PERSONAL) == 5
    assert not croissant.keys() & {"url", "creator"}  # not a sentence in the place of an address
    for question in PERSONAL.values():
        assert f"[To be written by the authors: {question}.]" in (folder / "DATA_STATEMENT.md").read_text("utf-8")


def test_what_a_project_states_stands_in_its_sets(exported):
    folder = exported(creators="Ann Lee; Bea Ray", uses="Measuring, not training.")
    croissant = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    assert [creator["name"] for creator in croissant["creator"]] == ["Ann Lee", "Bea Ray"]
    assert croissant["rai:dataUseCases"] == "Measuring, not training."
    assert "Published by Ann Lee; Bea Ray" in (folder / "DATA_STATEMENT.md").read_text(encoding="utf-8")


def test_figures_of_the_paragraph_for_a_paper_are_those_of_the_manifest(exported):
    folder = exported()
    people = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["people"]
    paper = (folder / "METHODS.tex").read_text(encoding="utf-8")
    assert f"{people['annotators']} annotator gave {people['answers']} answers that count." in paper
    assert r"good & 1 \\" in paper
    assert "was asked of one person about each record that people read." in paper
    assert "1 annotator answered in another tool" in paper
    assert "{%" not in paper


# Characters that mean something to LaTeX, and letters that its fonts lack.
AWKWARD = r"100 % of A & B_c #1 {x} \y ~ ^ $3 <b> | \"q\" `z -5 قاهرة يوسف Ąžuolas Łódź 中文 😀 “curly” «x» é a​b"


@pytest.mark.slow
@pytest.mark.parametrize("file", ["mechanical_turk_boxes.csv", "label_studio_spans.json", "doccano_classes.jsonl"])
def test_the_paragraph_for_a_paper_compiles_whatever_its_texts_contain(data_dir, tmp_path, file):
    terms = {"licence": f"mine {AWKWARD}", "source": AWKWARD, "text_may_leave": True, "language": "en"}
    call_command("import", "mood", EXPORTS / file, **terms)
    call_command("export_gold", "mood", out=tmp_path / "set")
    paper = (tmp_path / "set" / "METHODS.tex").read_text(encoding="utf-8")
    assert r"100 \% of A \& B\_c \#1 \{x\}" in paper
    assert latex.pages(tmp_path / "paper", paper) == 1


@pytest.mark.slow
def test_each_text_is_compiled_as_a_row_of_a_table_and_in_its_caption(tmp_path):
    rows = "".join(f"{in_tex(text)} & 1 \\\\\n" for text in ("[optional]", "*starred", "a\n\nb", *AWKWARD.split()))
    caption = f"\\caption{{{in_tex(AWKWARD)}}}"
    table = f"\\begin{{table}}\\begin{{tabular}}{{lr}}\n{rows}\\end{{tabular}}{caption}\\end{{table}}"
    assert latex.pages(tmp_path / "paper", table) == 1


def test_a_table_for_a_paper_has_one_row_for_all_but_the_most_frequent_labels():
    rows = set_documents._label_rows({f"label {number:02}": number for number in range(1, 51)})
    assert rows[:2] == [("label 50", 50), ("label 49", 49)]
    assert rows[-1] == ("21 other labels", sum(range(1, 22)))
    assert len(rows) == set_documents.ROWS
