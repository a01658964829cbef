"""Many rows at once out of the database: they say what Django's own reading says."""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from corpora.database.bulk_rows import TIME, all_fetched, fetched, insert, listed
from corpora.models import Corpus, Draw, Item

pytestmark = pytest.mark.django_db

WHEN = datetime(2014, 7, 1, 12, 30, 0, 123456, tzinfo=UTC)
TEXT = pa.string()
FIELDS = {
    **{"pk": pa.int64(), "corpus__name": TEXT, "corpus__created_at": TIME, "key": TEXT, "text": TEXT},
    **{"posted_at": TIME, "declared": TEXT, "letters": pa.int32()},
}


@pytest.fixture
def items():
    corpus = Corpus.objects.create(name="c")
    texts = ["plain", "", "हिन्दी 😀", "plain", "last"]
    return insert(
        Item(
            corpus=corpus,
            key=str(n),
            text=text,
            posted_at=WHEN.replace(microsecond=n % 2 * 5) if n % 3 else None,
            fields={"title": text},
            declared=[text] * (n % 2),
            votes={"cld2": [["de", 0.1]]},
            letters=n,
        )
        for n, text in enumerate(texts)
    )


def test_columns_have_the_values_that_django_gives_row_by_row(items):
    query = Item.objects.order_by("-letters")
    rows = [row | {"declared": json.dumps(row["declared"])} for row in query.values(*FIELDS)]
    for size in (1, 2, 5, 100):
        some = list(fetched(query, FIELDS, size))
        assert [columns.num_rows for columns in some] == ([size] * (5 // size) + [5 % size] * bool(5 % size))
        assert [row for columns in some for row in columns.to_pylist()] == rows
    assert all_fetched(query, FIELDS, 2).to_pylist() == rows


def test_of_no_rows_there_are_the_columns(items):
    none = Item.objects.filter(letters__gt=9)
    assert list(fetched(none, FIELDS, 10)) == []
    assert all_fetched(none, FIELDS, 10).schema == pa.schema(FIELDS.items())
    assert all_fetched(none, FIELDS, 10).num_rows == 0


def test_rows_are_found_by_many_keys_that_are_one_parameter(items, django_assert_num_queries):
    keys = [items[3].pk, items[0].pk, items[0].pk, 10**9]
    with django_assert_num_queries(1) as asked:
        found = Item.objects.filter(pk__in=listed(keys)).values_list("letters", flat=True)
        assert sorted(found) == [0, 3]
    assert "json_each" in asked[0]["sql"] or "unnest" in asked[0]["sql"]
    assert not Draw.objects.filter(corpus__in=listed([])).exists()
