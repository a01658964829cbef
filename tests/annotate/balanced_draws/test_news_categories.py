"""News articles with declared categories: people review a share of them, and XGLUE's readers load the set."""

import json

import pytest

from annotate.models import Task
from tests.annotate.balanced_draws.acts import exported, import_documents, manifest_of, opened, read_all

CATEGORIES = "sports finance travel"


@pytest.fixture
def articles(db, tmp_path):
    file = tmp_path / "articles.jsonl"
    rows = [
        {
            "id": f"{language}{number}",
            "language": language,
            "title": f"Title\t{number}",
            "body": f"The first line.\nThe second line of {number} in {language}.",
            "category": CATEGORIES.split()[number % 3],
        }
        for language in ("en", "ru")
        for number in range(60)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    import_documents("news", file, fields="title body", labels="category", licence="CC0-1.0")


@pytest.mark.on_sqlite
@pytest.mark.usefixtures("articles")
def test_reviewed_categories_are_written_as_xglues_files(person, tmp_path):
    sets = {"test": 12, "dev": 6, "train": "24", "seed": "3"}
    opened("news", "news_category", "news", CATEGORIES, audit_share=0.2, languages="en ru", **sets)
    task = Task.objects.get()
    readers = [person(f"reader{number}", "en ru") for number in range(3)]
    assert read_all(task, readers, lambda reader, unit: "finance") == 3 * task.units.filter(audited=True).count() > 0
    rows = exported("news", tmp_path / "gold")
    audited = task.units.filter(audited=True).values_list("item__key", flat=True)
    assert {row["label"] for row in rows if row["id"] in set(audited)} == {"finance"}
    files = manifest_of(tmp_path / "gold")["published"]["files"]
    assert {file for file in files if file.startswith("xglue.nc.ru.")} == {
        "xglue.nc.ru.train",
        "xglue.nc.ru.dev",
        "xglue.nc.ru.test",
        "xglue.nc.ru.test.labels",
    }
    lines = (tmp_path / "gold" / "xglue.nc.ru.dev").read_text(encoding="utf-8").splitlines()
    dev = [row for row in rows if (row["language"], row["split"]) == ("ru", "dev")]
    assert [line.split("\t")[0] for line in lines] == [row["title"].replace("\t", " ") for row in dev]
    assert {line.split("\t")[2] for line in lines} <= set(CATEGORIES.split())
    assert lines[0].split("\t")[1].startswith("The first line. The second line of ")
