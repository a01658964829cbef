"""Many new rows at once: what is kept is what Django's own insertion keeps."""

from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, connection, transaction
from django.forms.models import model_to_dict

from corpora.database.bulk_rows import insert
from corpora.database.statements import Json
from corpora.models import Concept, Corpus, Item, Scheme, Vocabulary

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

WHEN = datetime(2014, 7, 1, 12, 30, 0, 123456, tzinfo=UTC)
TEXTS = ["plain", "tab\there, line\nthere, \\N and \\ and \r", "हिन्दी 😀 ' \" %s", "", "\\."]


@pytest.fixture
def corpus():
    return Corpus.objects.create(name="c")


def items(corpus, prefix):
    return [
        Item(
            corpus=corpus,
            key=f"{prefix}{number}",
            text=text,
            posted_at=WHEN if number % 2 else None,
            fields={"title": text, "n": [1, None, 2.5]},
            votes={"langid": [["de", 0.1]], "cld2": []},
            letters=number,
        )
        for number, text in enumerate(TEXTS)
    ]


def kept(item):
    return {name: value for name, value in model_to_dict(item).items() if name not in ("id", "key")}


def test_rows_are_kept_as_django_keeps_them(corpus):
    ours = insert(items(corpus, "a"))
    theirs = Item.objects.bulk_create(items(corpus, "b"))
    for one, other in zip(ours, theirs, strict=True):
        one, other = Item.objects.get(pk=one.pk), Item.objects.get(pk=other.pk)
        assert (one.key[1:], kept(one)) == (other.key[1:], kept(other))
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            for column in ("posted_at", "fields", "votes", "declared"):
                cursor.execute(f"SELECT {column}, typeof({column}) FROM corpora_item ORDER BY substr(key, 2), key")
                rows = cursor.fetchall()
                assert rows[::2] == rows[1::2]


def test_rows_are_kept_in_order_however_many_there_are(corpus):
    insert(Item(corpus=corpus, key=str(number), text=f"{number}", votes={}, letters=number) for number in range(1_203))
    rows = Item.objects.order_by("pk").values_list("key", "text", "letters")
    assert list(rows) == [(str(number), str(number), number) for number in range(1_203)]


def test_what_is_written_as_json_already_is_kept_as_it_stands(corpus):
    insert([Item(corpus=corpus, key="a", text="", votes=Json('{"langid": [["de", 1e-8]]}'), letters=0)])
    assert Item.objects.get().votes == {"langid": [["de", 1e-8]]}


def test_each_row_gets_a_key_that_nobody_else_has(corpus):
    first = insert(items(corpus, "a"))
    Item.objects.filter(pk=first[-1].pk).delete()
    (between,) = Item.objects.bulk_create(items(corpus, "b")[:1])
    last = insert(items(corpus, "c"))
    after = Item.objects.create(corpus=corpus, key="d", text="", votes={}, letters=0)
    keys = [*(item.pk for item in first), between.pk, *(item.pk for item in last), after.pk]
    assert keys == sorted(set(keys))
    assert not any(item._state.adding for item in last)


def test_rows_may_refer_to_rows_that_are_kept_with_them():
    vocabulary = Vocabulary.objects.create(name="v", version=1, source="s", sha256="0")
    domain = Scheme(vocabulary=vocabulary, key="domain")
    part = Scheme(vocabulary=vocabulary, key="part", domain=domain)
    insert([part, domain])
    assert Scheme.objects.get(key="part").domain == domain
    assert Scheme.objects.get(key="domain").domain is None


def test_fields_that_the_moment_fills_are_filled():
    (made,) = insert([Corpus(name="c")])
    assert Corpus.objects.get().created_at == made.created_at is not None


def test_what_the_database_refuses_leaves_nothing(corpus):
    twice = [*items(corpus, "a"), *items(corpus, "a")[:1]]
    with pytest.raises(IntegrityError), transaction.atomic():
        insert(twice)
    assert not Item.objects.exists()


def test_nothing_to_keep_asks_the_database_nothing(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert insert(Concept(key=key) for key in ()) == []
