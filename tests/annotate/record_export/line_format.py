"""A format plug-in: for each language and split, a file with label, question and passage."""

from pathlib import Path

from annotate.core.estimation.proportions import proportion
from annotate.core.measures.figure_rows import row
from annotate.evaluation.prediction_files import described, system_names
from annotate.goldsets.formats import Format
from annotate.kinds.file_sections import Layout

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
        truth, given = labels_of(gold.folder / name), labels_of(predictions / f"{language}.txt")
        right = sum(one == other for one, other in zip(truth, given, strict=True))
        rows.append(row("accuracy", {"language": language}, proportion(right, len(truth)), len(truth)))
    [name] = system_names([predictions])
    head = [{"measure": "accuracy", "of": rows[0]["of"]}]
    return {"unit": "pair", "head": head, "predictor": described(name), "rows": rows, "warnings": [], "reading": []}


FORMAT = Format("lines", TITLE, write, {"pairs": Layout(("question", "passage"))}, measured_by=__name__)
