"""Readers for the files of a gold set."""

import json
import re
from datetime import datetime

import pyarrow.parquet as pq
import yaml

from corpora.storage.layout import digest_of
from tests import latex

# The Responsible-AI fields that Croissant has (version 1.0), but for those that do not apply to annotated texts.
RESPONSIBLE = {
    *("dataCollection", "dataCollectionType", "dataPreprocessingProtocol"),
    *("dataAnnotationProtocol", "dataAnnotationPlatform", "annotationsPerItem", "annotatorDemographics"),
    *("dataLimitations", "personalSensitiveInformation", "dataUseCases", "dataBiases", "dataReleaseMaintenancePlan"),
}


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def contents(folder):
    """Return the bytes of the files in a folder and in the folders inside it, by path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def fill(folder, text):
    """Write a report and its manifest."""
    (folder / "report.md").write_text(text)
    manifest = {"evaluated": {"name": "mine"}, "files": {"report.md": digest_of(folder / "report.md")}}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def json_lines(path):
    """Return the objects in a file of JSON lines. A missing file counts as empty."""
    if not path.exists() and path.name.startswith("left_out"):
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def jsonlike(value):
    """Convert a value from Parquet to its form in JSON."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, dict):
        return {key: jsonlike(of) for key, of in value.items()}
    return [jsonlike(of) for of in value] if isinstance(value, list) else value


def everything_in(folder):
    """Return the contents of all files as one text, with Parquet files decoded."""
    # Compressed bytes may contain any three letters by chance.
    plain = (content for name, content in files(folder).items() if not name.endswith(".parquet"))
    texts = [content.decode("utf-8", "replace") for content in plain]
    for path in folder.glob("*.parquet"):
        texts.append(json.dumps(jsonlike(pq.read_table(path).to_pylist()), ensure_ascii=False))
        texts.append(str(pq.read_schema(path)))
    return "\n".join(texts)


def card_of(folder):
    _, header, text = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(header), text


def check_documents(folder, place):
    """Check the documents for venues of a set whose project states nothing.

    place: a folder for the paper, which is compiled if LaTeX is installed
    """
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    croissant = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    wanted = RESPONSIBLE | {"dataCollectionTimeFrame"}
    wanted |= {"machineAnnotationTools"} if manifest["detectors"] else set()
    wanted |= {"dataAnnotationAnalysis"} if manifest.get("agreement") else set()
    assert not {field for field in wanted if not croissant.get(f"rai:{field}")}, folder
    assert {"name", "description", "license", "version", "inLanguage", "datePublished"} <= croissant.keys()
    if manifest["people"]["tests"]["taken"]:
        assert "Tests taken: " in croissant["rai:annotatorDemographics"]
    statement = (folder / "DATA_STATEMENT.md").read_text(encoding="utf-8")
    left = {sentence for text in (statement, json.dumps(croissant)) for sentence in re.findall(r"\[To be [^]]*]", text)}
    assert 1 <= len(left) <= 5, left
    if latex.PDFLATEX:
        assert latex.pages(place, (folder / "METHODS.tex").read_text(encoding="utf-8")) <= 2
