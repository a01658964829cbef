"""Folders of data sets as on the Hugging Face Hub: what `import` makes of them."""

import csv
import json

import datasets
import pytest
from django.core.management.base import CommandError

from annotate.actions.registry import call_command
from annotate.models import Task
from corpora.predictions.predictor_labels import find_predictor, predicted_labels
from tests.annotate.exchange.conftest import EXPORTS

pytestmark = pytest.mark.django_db
TEXTS = ["It boils fast.", "It leaks again.", "The lid broke."]
CARD = """---
dataset_info:
  features:
  - name: text
    dtype: string
  - name: mood
    dtype:
      class_label:
        names:
          '0': bad
          '1': good
configs:
- config_name: default
  data_files:
  - split: train
    path: data/a.*
  - split: test
    path: [data/b.*]
---
# A data set
"""


@pytest.fixture
def imported(data_dir):
    """Return a function that imports files, and returns the answers that can be given and the label of each item."""

    def run(*files, **options):
        call_command("import", "mood", *files, licence="CC0-1.0", language="en", **options)
        task = Task.objects.get(name="mood")
        keys = list(task.units.order_by("pk").values_list("item__key", flat=True))
        return task.labels, predicted_labels("mood", find_predictor("mood", "gold@1"), sorted(keys))

    return run


def dataset(labels, feature):
    features = datasets.Features({"text": datasets.Value("string"), "mood": feature})
    return datasets.Dataset.from_dict({"text": TEXTS, "mood": labels}, features)


@pytest.mark.parametrize("form", ["parquet", "saved", "shards"])
def test_labels_of_a_data_set_have_the_names_of_its_type(imported, tmp_path, form):
    data = dataset([0, 1, 0], datasets.ClassLabel(names=["bad", "good"]))
    folder = tmp_path / "data"
    folder.mkdir()
    if form == "saved":
        datasets.DatasetDict({"train": data}).save_to_disk(folder)
    else:
        path = folder / ("a.parquet" if form == "parquet" else "train-00000-of-00001.parquet")
        data.to_parquet(path)
    labels, gold = imported(folder / "a.parquet" if form == "parquet" else folder)
    assert sorted(labels) == ["bad", "good"]
    assert list(gold.values()) == ["bad", "good", "bad"]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_the_card_names_files_splits_and_labels(imported, tmp_path, form):
    (tmp_path / "set" / "data").mkdir(parents=True)
    (tmp_path / "set" / "README.md").write_text(CARD, encoding="utf-8")
    for name, rows in (("a", [(TEXTS[0], 1), (TEXTS[1], 0)]), ("b", [(TEXTS[2], 0)])):
        with (tmp_path / "set" / "data" / f"{name}.{form}").open("w", encoding="utf-8", newline="") as file:
            if form == "csv":
                csv.writer(file).writerows([("text", "mood"), *rows])
            else:
                file.writelines(json.dumps({"text": text, "mood": label}) + "\n" for text, label in rows)
    (tmp_path / "set" / "notes.jsonl").write_text('{"text": "not of the set", "mood": 1}\n', encoding="utf-8")
    assert imported(tmp_path / "set") == (["bad", "good"], {"train-1": "good", "train-2": "bad", "test-1": "bad"})


def test_several_labels_of_an_item_are_kept(imported, tmp_path):
    data = dataset([[0], [0, 1], [1]], datasets.List(datasets.ClassLabel(names=["bad", "good"])))
    data.to_parquet(tmp_path / "a.parquet")
    assert list(imported(tmp_path / "a.parquet")[1].values()) == ["bad", "bad good", "good"]


def test_missing_labels_and_labels_of_words_are_reported(data_dir, tmp_path, capsys):
    data = dataset([0, -1, 1], datasets.ClassLabel(names=["bad", "good"]))
    data = data.add_column("tokens", [text.split() for text in TEXTS]).add_column("ner", [[0, 1, 0]] * 3)
    words = datasets.List(datasets.ClassLabel(names=["O", "PER"]))
    data.cast_column("ner", words).to_parquet(tmp_path / "a.parquet")
    call_command("import", "mood", tmp_path / "a.parquet", licence="CC0-1.0", language="en", question="mood")
    output = capsys.readouterr().out
    assert "rows without a label in 'mood' (1)" in output
    assert "labels of single words in 'ner' (3)" in output


def test_of_several_configs_one_must_be_chosen(tmp_path, data_dir):
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "README.md").write_text(CARD.replace("configs:\n", "configs:\n- config_name: other\n"), encoding="utf-8")
    with pytest.raises(CommandError, match=r"has the configs other, default\. Name the files of one of them"):
        call_command("import", "mood", folder, licence="CC0-1.0", language="en")


def test_an_exported_set_is_read_from_its_parquet_files_alone(data_dir, tmp_path, capsys):
    call_command("import", "mood", EXPORTS / "mechanical_turk_boxes.csv", licence="CC0-1.0", language="en")
    call_command("export_gold", "mood", out=tmp_path / "set")
    call_command("import", "again", tmp_path / "set", licence="CC0-1.0")
    assert "Assay: 2 items, 2 answers." in capsys.readouterr().out
