"""The configuration of a project's labels, which exports do not contain.

It is Label Studio's XML, doccano's label_config.json or Argilla's settings.json. It adds the labels that nobody has
chosen yet, their names and order, and the guidelines.
"""

import codecs
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from annotate.exchange.items import ProjectError
from annotate.exchange.project import LabelConfig
from corpora.sources.documents import XmlError, check_xml

FILES = ("label_config.json", "settings.json")  # in the folder of an export, which are no rows of it
# Tags of Label Studio that ask a question -> the tag of their labels.
_QUESTIONS = {"Choices": "Choice", "Labels": "Label", "HyperTextLabels": "Label", "Rating": ""}


def read_config(path: Path) -> list[LabelConfig]:
    """Return the questions in a configuration. Raise ProjectError if the file is not one of the known ones."""
    try:
        content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
        if content.lstrip().startswith(b"<"):
            check_xml(content)
            return _of_label_studio(ElementTree.fromstring(content))  # noqa: S314 - checked above
        value = json.loads(content)
    except OSError as error:
        raise ProjectError(f"Cannot read {path}: {error.strerror}.") from error
    except XmlError as error:
        raise ProjectError(f"{path}, line {error.line}: {error}.") from error
    except ValueError as error:
        raise ProjectError(f"{path} is neither XML nor JSON: {error}.") from error
    try:
        return _of_json(path, value)
    except (AttributeError, KeyError, TypeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise ProjectError(f"{path} is not structured like settings.json of Argilla ({why}). Correct it.") from error


def _of_json(path: Path, value: Any) -> list[LabelConfig]:
    if isinstance(value, list) and all(isinstance(label, dict) and "text" in label for label in value):
        return [LabelConfig("", {str(label["text"]): str(label["text"]) for label in value})]
    if isinstance(value, dict) and isinstance(value.get("questions"), list):
        return [_of_argilla(question, str(value.get("guidelines") or "")) for question in value["questions"]]
    raise ProjectError(
        f"{path} is not a known configuration. Use the labeling interface of Label Studio as XML, label_config.json of "
        "doccano, or settings.json of Argilla."
    )


def _of_label_studio(view: ElementTree.Element) -> list[LabelConfig]:
    header = next((each.get("value", "") for each in view.iter("Header")), "")
    configs = []
    for tag, label in _QUESTIONS.items():
        for element in view.iter(tag):
            labels = {each.get("value", ""): each.get("value", "") for each in element.iter(label or "none")}
            if tag == "Rating":
                highest = element.get("maxRating", "5")
                labels = {str(grade): str(grade) for grade in range(1, int(highest) + 1 if highest.isdecimal() else 1)}
            is_multiple = element.get("choice", "").startswith("multiple")
            configs.append(LabelConfig(element.get("name", ""), labels, header, is_multiple))
    return configs


def _of_argilla(question: dict[str, Any], guidelines: str) -> LabelConfig:
    settings = question.get("settings") or {}
    options = settings.get("options") or []
    labels = {str(option["value"]): str(option.get("text") or option["value"]) for option in options}
    title = str(question.get("title") or "")
    kind = str(settings.get("type", ""))
    return LabelConfig(str(question["name"]), labels, title, kind.startswith("multi"), guidelines)
