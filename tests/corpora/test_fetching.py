"""Many rows at once out of the database: they say what Django's own reading says."""

from datetime import UTC, datetime

import pytest
from django.db.models import TextField
from django.db.models.functions import Cast

from corpora.fetching import fetched, listed
from corpora.inserting import insert
from corpora.models import Corpus, Draw, Item

pytestmark = pytest.mark.django_db

WHEN = datetime(2014, 7, 1, 12, 30, 0, 123456, tzinfo=UTC)
FIELDS = ("pk", "corpus__name", "corpus__created_at", "key", "text", "posted_at", "fields", "declared", "letters")


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
    query = Item.objects.order_by("-letters").values_list(*FIELDS)
    for size in (1, 2, 5, 100):
        some = list(fetched(query, size))
        assert [len(columns[0]) for columns in some] == ([size] * (5 // size) + [5 % size] * bool(5 % size))
        assert [row for columns in some for row in zip(*columns, strict=True)] == list(query)


def test_nothing_is_fetched_of_no_rows(items):
    assert list(fetched(Item.objects.filter(letters__gt=9).values_list("pk", "posted_at"), 10)) == []


def test_json_that_is_asked_for_as_text_stays_text(items):
    ((votes,),) = fetched(Item.objects.filter(letters=1).values_list(Cast("votes", TextField())), 10)
    assert list(votes) == ['{"cld2": [["de", 0.1]]}']


def test_rows_are_found_by_many_keys_that_are_one_parameter(items, django_assert_num_queries):
    keys = [items[3].pk, items[0].pk, items[0].pk, 10**9]
    with django_assert_num_queries(1) as asked:
        found = Item.objects.filter(pk__in=listed(keys)).values_list("letters", flat=True)
        assert sorted(found) == [0, 3]
    assert "json_each" in asked[0]["sql"] or "unnest" in asked[0]["sql"]
    assert not Draw.objects.filter(corpus__in=listed([])).exists()
