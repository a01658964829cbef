"""Loads files by the code of other annotation tools: `PYTHON tool_readers.py TOOL FOLDER FORM`.

It is run by the Python of requirements-tools.txt. For each item and answer it prints [text, person, labels] as JSON, as
the tool has it after loading. A label of a span is [start, end, label].
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

Answer = tuple[str, str, list[Any]]


def label_studio(folder: Path, form: str) -> Iterator[Answer]:
    """Validate the interface, tasks and annotations, and convert them like the tool's own export."""
    from label_studio_sdk.converter import Converter
    from label_studio_sdk.label_interface import LabelInterface

    config = (folder / "label_config.xml").read_text(encoding="utf-8")
    interface = LabelInterface(config)
    interface.validate()
    tasks = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    converter = Converter(config, project_dir=None)
    for number, task in enumerate(tasks):
        assert interface.validate_task({"data": task["data"]}), task
        for annotation in task["annotations"]:
            assert interface.validate_annotation(annotation), annotation
        # Fields that the server adds.
        stored = [{"id": n, "completed_by": 1} | annotation for n, annotation in enumerate(task["annotations"])]
        for result in converter.annotation_result_from_task(
            {"id": number, "annotations": stored, "data": task["data"]}
        ):
            [values] = result["output"].values()
            [person] = task["annotations"][result["annotation_id"]]["result"][0]["meta"]["annotator"]
            labels = [label for value in values for label in value.get("choices", [])]
            spans = [[value["start"], value["end"], value["labels"][0]] for value in values if "labels" in value]
            yield result["input"]["body"], person, spans if form == "spans" else labels


def doccano(folder: Path, form: str) -> Iterator[Answer]:
    """Import each file into a project in a database in memory, like an upload."""
    import backend

    sys.path.insert(0, backend.__path__[0])
    import django
    from django.conf import settings

    ours = ["roles", "projects", "users", "data_import", "labels", "label_types", "examples", "metrics"]
    apps = ["contenttypes", "auth", "sessions"]
    settings.configure(
        INSTALLED_APPS=[*(f"django.contrib.{app}" for app in apps), "polymorphic", "django_drf_filepond", *ours],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        MIGRATION_MODULES=dict.fromkeys([*apps, "django_drf_filepond", *ours]),
        DJANGO_DRF_FILEPOND_FILE_STORE_PATH=str(folder),
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        ROLE_PROJECT_ADMIN="project_admin",
        ROLE_ANNOTATOR="annotator",
        ROLE_ANNOTATION_APPROVER="annotation_approver",
    )
    django.setup()
    from django.core.management import call_command

    call_command("migrate", run_syncdb=True, verbosity=0)
    from data_import.datasets import load_dataset
    from data_import.pipeline.catalog import create_file_format
    from data_import.pipeline.readers import FileName
    from django.contrib.auth.models import User
    from projects.models import Project
    from roles.models import Role

    Role.objects.create(name="project_admin")
    kind = "SequenceLabeling" if form == "spans" else "DocumentClassification"
    for file in sorted(folder.glob("*.jsonl")):
        user = User.objects.create(username=file.stem)
        project = Project.objects.create(name=file.stem, project_type=kind, created_by=user)
        files = [FileName(str(file), file.name, file.name)]
        dataset = load_dataset(kind, create_file_format("JSONL"), files, project)
        dataset.save(user)
        assert not dataset.errors, dataset.errors
        for example in project.examples.order_by("pk"):
            if form == "spans":
                spans = example.spans.order_by("start_offset")
                labels = [[span.start_offset, span.end_offset, span.label.text] for span in spans]
            else:
                labels = [category.label.text for category in example.categories.order_by("pk")]
            yield example.text, file.stem, labels


def argilla(folder: Path, form: str) -> Iterator[Answer]:
    """Read the settings, and the records with their suggestions and responses."""
    from argilla import Argilla, Dataset, Record, Settings

    Argilla._default_client = MagicMock()  # Questions keep a client, which would log in to a server.
    settings = Settings.from_json(folder / "settings.json")
    [question] = settings.questions
    dataset = Dataset("gold", settings=settings)
    allowed = {option["value"] for option in question.api_model().settings.model_dump()["options"]}
    for row in json.loads((folder / "records.json").read_text(encoding="utf-8")):
        record = Record.from_dict(row, dataset)
        record.api_model()
        answers = [("gold", record.suggestions[question.name].value)]
        answers += [(str(response.user_id), response.value) for response in record.responses]
        for person, value in answers:
            if form == "spans":
                labels = [[span["start"], span["end"], span["label"]] for span in value]
            else:
                labels = value if isinstance(value, list) else [value]
            assert {label[-1] if form == "spans" else label for label in labels} <= allowed
            yield record.fields["body"], person, labels


def potato(folder: Path, form: str) -> Iterator[Answer]:
    """Load the states of users, which are the lines of a file with the items."""
    from potato.user_state_management import InMemoryUserState

    lines = [json.loads(line) for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    texts = {line["id"]: line["text"] for line in lines if "text" in line}
    for line in lines:
        if "user_id" in line:
            (folder / "user_state.json").write_text(json.dumps(line))
            state = InMemoryUserState.load(str(folder))
            for item, labels in state.instance_id_to_label_to_value.items():
                yield texts[item], state.user_id, [label.get_name() for label in labels]


def inception(folder: Path, form: str) -> Iterator[Answer]:
    """Load a document with its types, and check all of its features against them."""
    from cassis import load_cas_from_json

    for file in sorted(folder.glob("*.json")):
        for document in json.loads(file.read_text(encoding="utf-8")):
            cas = load_cas_from_json(json.dumps(document))
            entities = [
                annotation
                for annotation in cas.select_all_annotations()
                if annotation.type.name.endswith("NamedEntity")
            ]
            yield cas.sofa_string, "", [[entity.begin, entity.end, entity.value] for entity in entities if entity.value]


TOOLS: dict[str, Callable[[Path, str], Iterator[Answer]]] = {
    "label-studio": label_studio,
    "doccano": doccano,
    "argilla": argilla,
    "potato": potato,
    "inception": inception,
}

if __name__ == "__main__":
    print(json.dumps(list(TOOLS[sys.argv[1]](Path(sys.argv[2]), sys.argv[3]))))
