"""A format from outside is exported and measured, although no file of the product names it."""

import json
import shutil
from pathlib import Path

import pytest

from annotate.actions.registry import call_command
from annotate.core.estimation.proportions import proportion
from annotate.core.measures.figure_rows import row
from annotate.evaluation.measurement import evaluate
from annotate.evaluation.prediction_files import describe_system, system_names
from annotate.goldsets.exporter import export
from annotate.goldsets.formats import FORMATS, Format, register
from annotate.kinds.file_sections import FORMATS as LAYOUTS
from annotate.kinds.file_sections import Layout
from annotate.models import Task

KINDS_FOLDER = Path(__file__).parents[3] / "annotate/kinds"
TITLE = "Lines"


def write(folder, export):
    files = {}
    for pair in export.written_rows(folder, ("language", "split", "label", "question", "passage")):
        name = f"lines.{pair['language']}.{pair['split']}.txt"
        cells = (pair[field].replace("\t", " ").replace("\n", " ") for field in ("label", "question", "passage"))
        with (folder / name).open("a", encoding="utf-8", newline="\n") as file:
            file.write("\t".join(cells) + "\n")
        files[name] = files.get(name, 0) + 1
    return {"format": TITLE, "files": files, "refused": ""}


def labels_of(path):
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return [line.partition("\t")[0] for line in lines]


def grade(predictions: Path, sets, against=None):
    """Return the accuracy by language. predictions: files LANGUAGE.txt with a label for each line of the test file."""
    [gold] = sets
    rows = []
    for name in (name for name in gold.files if name.endswith(".test.txt")):
        language = name.split(".")[1]
        truth, predicted = labels_of(gold.folder / name), labels_of(predictions / f"{language}.txt")
        right = sum(one == other for one, other in zip(truth, predicted, strict=True))
        rows.append(row("accuracy", {"language": language}, proportion(right, len(truth)), len(truth)))
    [name] = system_names([predictions])
    head = [{"measure": "accuracy", "of": rows[0]["of"]}]
    return {
        "unit": "pair",
        "head": head,
        "predictor": describe_system(name),
        "rows": rows,
        "warnings": [],
        "reading": [],
    }


FORMAT = Format("lines", TITLE, write, {"pairs": Layout(("question", "passage"))}, measured_by=__name__)


@pytest.fixture
def registered():
    register(FORMAT)
    yield
    del FORMATS[FORMAT.name], LAYOUTS[FORMAT.name]


@pytest.fixture
def task(registered, corpus_of, answered, tmp_path):
    """A task of a kind whose file names the format."""
    for path in KINDS_FOLDER.glob("qa_match.*"):
        shutil.copy(path, tmp_path)
    kind = tmp_path / "own_pairs.toml"
    text = (KINDS_FOLDER / "qa_match.toml").read_text(encoding="utf-8")
    kind.write_text(text.replace('xglue = "qam"', 'lines = "pairs"'), encoding="utf-8")
    corpus_of("qa_match")
    options = {"kind": str(kind), "seed": "7", "test_items": 0, "gold_share": 0, "verbosity": 0}
    call_command("open_task", "own", corpus="qa_match", languages=["en", "de"], **options)
    return answered(Task.objects.get(name="own"))


def test_a_format_from_outside_is_exported_and_measured(task, out, tmp_path):
    manifest = export(task, out, splits="train=0.5,dev=0.2,test=0.3")
    published = manifest["published"]
    assert published["format"] == "Lines"
    assert sum(published["files"].values()) == manifest["counts"]["labelled"]
    assert published["files"].keys() <= manifest["files"].keys()
    mine = tmp_path / "mine"
    mine.mkdir()
    for language in ("en", "de"):
        labels = labels_of(out / f"lines.{language}.test.txt")
        wrong = "0" if labels[0] == "1" else "1"
        (mine / f"{language}.txt").write_text("".join(f"{label}\n" for label in [wrong, *labels[1:]]))
    report = evaluate(str(mine), [out])
    sizes = {name: len(labels_of(out / f"lines.{name}.test.txt")) for name in ("de", "en")}
    assert {row["of"]["language"]: row["value"] for row in report["rows"]} == {
        name: (size - 1) / size for name, size in sizes.items()
    }
    assert json.dumps(report)


def test_a_kind_that_lacks_a_field_of_the_format_is_refused(registered, tmp_path):
    text = (KINDS_FOLDER / "ad_relevance.toml").read_text(encoding="utf-8")
    for path in KINDS_FOLDER.glob("ad_relevance.*"):
        shutil.copy(path, tmp_path)
    kind = tmp_path / "own_ads.toml"
    kind.write_text(text.replace('xglue = "qadsm"', 'lines = "pairs"'), encoding="utf-8")
    with pytest.raises(Exception, match=r"the lines layout pairs requires the fields question, passage \(missing"):
        call_command("check_kind", str(kind))


def test_two_formats_cannot_have_one_name(registered):
    with pytest.raises(ValueError, match=r"There is already a format named 'lines'\. Choose another name"):
        register(Format("lines", "Other lines", FORMAT.write))
