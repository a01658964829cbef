"""Bulk reads and writes, and prepared statements, give the same results as Django's own."""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from django.core.signals import request_started
from django.db import IntegrityError, connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.forms.models import model_to_dict
from django.test.utils import CaptureQueriesContext

from corpora.database import statements
from corpora.database.bulk_rows import TIME, fetch_all, fetch_batches, insert, insert_columns, listed, update
from corpora.database.statements import Json, insert_one, prepared, update_one
from corpora.models import Concept, Corpus, Draw, Item, Scheme, Vocabulary

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

WHEN = datetime(2014, 7, 1, 12, 30, 0, 123456, tzinfo=UTC)
TEXTS = ["plain", "tab\there, line\nthere, \\N and \\ and \r", "हिन्दी 😀 ' \" %s", "", "\\."]
TEXT = pa.string()
COLUMNS = {
    **{"pk": pa.int64(), "corpus__name": TEXT, "corpus__created_at": TIME, "key": TEXT, "text": TEXT},
    **{"posted_at": TIME, "declared": TEXT, "letters": pa.int32()},
}


@pytest.fixture
def corpus():
    return Corpus.objects.create(name="c")


def items(corpus, prefix):
    return [
        Item(
            corpus=corpus,
            key=f"{prefix}{number}",
            text=text,
            posted_at=WHEN.replace(microsecond=number) if number % 2 else None,
            fields={"title": text, "n": [1, None, 2.5]},
            declared=[text] * (number % 2),
            votes={"langid": [["de", 0.1]], "cld2": []},
            letters=number,
        )
        for number, text in enumerate(TEXTS)
    ]


def values(item):
    return {name: value for name, value in model_to_dict(item).items() if name not in ("id", "key")}


# --- into it


def test_rows_are_inserted_as_django_inserts_them(corpus):
    ours = insert(items(corpus, "a"))
    theirs = Item.objects.bulk_create(items(corpus, "b"))
    for one, other in zip(ours, theirs, strict=True):
        one, other = Item.objects.get(pk=one.pk), Item.objects.get(pk=other.pk)
        assert (one.key[1:], values(one)) == (other.key[1:], values(other))
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            for column in ("posted_at", "fields", "votes", "declared"):
                cursor.execute(f"SELECT {column}, typeof({column}) FROM corpora_item ORDER BY substr(key, 2), key")
                rows = cursor.fetchall()
                assert rows[::2] == rows[1::2]
    # Values that are already JSON are stored unchanged.
    insert([Item(corpus=corpus, key="json", text="", votes=Json('{"langid": [["de", 1e-8]]}'), letters=0)])
    assert Item.objects.get(key="json").votes == {"langid": [["de", 1e-8]]}


def test_columns_are_inserted_and_changed_as_rows_are(corpus):
    rows = [row for n in range(300) for row in items(corpus, f"a{n}-")]
    names = ("text", "posted_at", "fields", "declared", "letters")
    columns = {name: [getattr(row, name) for row in rows] for name in names}
    keys = insert_columns(Item, columns | {"key": [f"b{row.key[1:]}" for row in rows]}, corpus_id=corpus.pk, votes={})
    assert list(keys) == list(Item.objects.order_by("pk").values_list("pk", flat=True))
    insert(rows)
    for row in rows:
        row.votes = {}
    update(rows, ["votes"])
    made = Item.objects.order_by("pk").values_list("key", "author", "url", "votes", *names)
    ours, theirs = ([(key[1:], *row) for key, *row in made.filter(key__startswith=start)] for start in "ba")
    assert len(ours) == 1_500
    assert ours == theirs


def test_rows_keep_their_order_and_each_gets_a_key_of_its_own(corpus):
    first = insert(items(corpus, "a"))
    Item.objects.filter(pk=first[-1].pk).delete()
    (between,) = Item.objects.bulk_create(items(corpus, "b")[:1])
    last = insert(Item(corpus=corpus, key=str(n), text=f"{n}", votes={}, letters=n) for n in range(1_203))
    rows = Item.objects.filter(pk__gt=between.pk).order_by("pk").values_list("key", "text", "letters")
    assert list(rows) == [(str(number), str(number), number) for number in range(1_203)]
    after = Item.objects.create(corpus=corpus, key="d", text="", votes={}, letters=0)
    keys = [*(item.pk for item in first), between.pk, *(item.pk for item in last), after.pk]
    assert keys == sorted(set(keys))
    assert not any(item._state.adding for item in last)


def test_rows_may_refer_to_rows_inserted_with_them_and_times_of_creation_are_filled(django_assert_num_queries):
    vocabulary = Vocabulary.objects.create(name="v", version=1, source="s", sha256="0")
    domain = Scheme(vocabulary=vocabulary, key="domain")
    insert([Scheme(vocabulary=vocabulary, key="part", domain=domain), domain])
    assert Scheme.objects.get(key="part").domain == domain
    assert Scheme.objects.get(key="domain").domain is None
    (made,) = insert([Corpus(name="c")])
    assert Corpus.objects.get().created_at == made.created_at is not None
    with django_assert_num_queries(0):
        assert insert(Concept(key=key) for key in ()) == []


def test_what_the_database_refuses_leaves_nothing(corpus):
    with pytest.raises(IntegrityError), transaction.atomic():
        insert([*items(corpus, "a"), *items(corpus, "a")[:1]])
    assert not Item.objects.exists()


# --- out of it


def test_columns_have_the_values_that_django_gives_row_by_row(corpus):
    insert(items(corpus, "a"))
    query = Item.objects.order_by("-letters")
    rows = [row | {"declared": json.dumps(row["declared"])} for row in query.values(*COLUMNS)]
    for size in (1, 2, 5, 100):
        tables = list(fetch_batches(query, COLUMNS, size))
        assert [table.num_rows for table in tables] == ([size] * (5 // size) + [5 % size] * bool(5 % size))
        read = [row for table in tables for row in table.to_pylist()]
        assert [row | {"declared": json.dumps(json.loads(row["declared"]))} for row in read] == rows
    assert fetch_all(query, COLUMNS, 2).num_rows == 5
    none = Item.objects.filter(letters__gt=9)
    assert list(fetch_batches(none, COLUMNS, 10)) == []
    assert fetch_all(none, COLUMNS, 10).schema == pa.schema(COLUMNS.items())


def test_rows_are_found_by_many_keys_that_are_one_parameter(corpus, django_assert_num_queries):
    made = insert(items(corpus, "a"))
    keys = [made[3].pk, made[0].pk, made[0].pk, 10**9]
    with django_assert_num_queries(1) as captured:
        assert sorted(Item.objects.filter(pk__in=listed(keys)).values_list("letters", flat=True)) == [0, 3]
    assert "json_each" in captured[0]["sql"] or "unnest" in captured[0]["sql"]
    assert not Draw.objects.filter(corpus__in=listed([])).exists()


# --- prepared statements


@prepared
def items_of(corpus, letters) -> QuerySet[Item]:
    drawn = Exists(Draw.objects.filter(corpus=OuterRef("corpus")))
    query = Item.objects.filter(Q(corpus=corpus), letters__gte=letters).select_related("corpus")
    return query.annotate(is_drawn=drawn).order_by("key")


@prepared
def keys(*letters) -> QuerySet[Item]:
    return Item.objects.filter(letters__in=letters).order_by("key").values_list("key", "posted_at")


@prepared
def posted_after(time) -> QuerySet[Item]:
    return Item.objects.filter(posted_at__gt=time)


@pytest.fixture
def corpora():
    made = [Corpus.objects.create(name=name) for name in ("a", "b")]
    for corpus in made:
        insert(items(corpus, corpus.name)[:3])
    return made


def test_each_run_of_a_prepared_query_finds_the_rows_of_its_arguments(corpora, monkeypatch):
    a, b = corpora
    rows = items_of(a.pk, 0)
    with CaptureQueriesContext(connection) as captured:
        read = [(item.corpus.name, item.is_drawn, item.votes, item.posted_at) for item in rows]
    assert len(captured.captured_queries) == 0
    assert rows == list(items_of.__wrapped__(a.pk, 0))
    assert read == [("a", False, item.votes, item.posted_at) for item in items_of.__wrapped__(a.pk, 0)]
    assert keys(1) == [("a1", WHEN.replace(microsecond=1)), ("b1", WHEN.replace(microsecond=1))]
    assert [key for key, _ in keys(1, 2)] == ["a1", "a2", "b1", "b2"]
    assert {item.key for item in posted_after(WHEN.replace(microsecond=0))} == {"a1", "b1"}

    def build(queryset):
        raise AssertionError("It was built again.")

    monkeypatch.setattr(statements, "_CompiledQuery", build)
    assert [item.key for item in items_of(b.pk, 1)] == ["b1", "b2"]
    # A number that cannot be a key finds nothing.
    assert [items_of(number, 0) for number in (a.pk + 10**6, 10**30, -(10**30))] == [[], [], []]


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_a_connection_that_the_server_has_ended_is_made_anew_for_the_next_request(corpora):
    assert len(keys(0)) == 2
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [connection.connection.info.backend_pid])
    other.close()
    request_started.send(sender=None)
    assert len(keys(0)) == 2


def test_a_row_is_inserted_and_changed_as_by_django(corpus):
    item = Item(corpus=corpus, key="new", text="x" * 300, letters=7, votes={"cld2": []})
    insert_one(item, keep=False)
    assert (item.pk, Item.objects.count()) == (None, 0)
    insert_one(item)
    stored = Item.objects.get(key="new")
    assert (stored.pk, item._state.adding) == (item.pk, False)
    assert (stored.text, stored.votes, stored.posted_at) == ("x" * 300, {"cld2": []}, None)
    item.votes, item.posted_at = {"langid": []}, WHEN
    update_one(item, "votes", "posted_at", keep=False)
    stored.refresh_from_db()
    assert stored.votes == {"cld2": []}
    update_one(item, "votes", "posted_at")
    stored.refresh_from_db()
    assert (stored.votes, stored.posted_at) == (item.votes, item.posted_at)
