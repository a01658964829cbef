"""Prepared statements do what Django's own do, with their SQL built once."""

from datetime import UTC, datetime

import pytest
from django.core.signals import request_started
from django.db import connection
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.test.utils import CaptureQueriesContext

from corpora.database import statements as preparing
from corpora.database.statements import insert_one, prepared, update_one
from corpora.models import Corpus, Draw, Item

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@prepared
def items_of(corpus, letters) -> QuerySet[Item]:
    drawn = Exists(Draw.objects.filter(corpus=OuterRef("corpus")))
    found = Item.objects.filter(Q(corpus=corpus), letters__gte=letters).select_related("corpus")
    return found.annotate(is_drawn=drawn).order_by("key")


@prepared
def keys(*letters) -> QuerySet[Item]:
    return Item.objects.filter(letters__in=letters).order_by("key").values_list("key", "posted_at", "votes")


@prepared
def posted_after(time) -> QuerySet[Item]:
    return Item.objects.filter(posted_at__gt=time)


@pytest.fixture
def corpora():
    made = [Corpus.objects.create(name=name) for name in ("a", "b")]
    for corpus in made:
        for letters in range(3):
            Item.objects.create(
                corpus=corpus,
                key=f"{corpus.name}{letters}",
                text="Ein Text.",
                letters=letters,
                votes={"langid": [["de", 0.5]]},
                posted_at=datetime(2026, 1, 1 + letters, tzinfo=UTC),
            )
    return made


def test_each_run_finds_the_rows_of_what_it_was_given(corpora):
    a, b = corpora
    assert [item.key for item in items_of(a.pk, 1)] == ["a1", "a2"]
    assert [item.key for item in items_of(b.pk, 2)] == ["b2"]
    assert [item.key for item in items_of(a.pk, 3)] == []


def test_rows_are_those_of_the_query_with_what_is_related_and_annotated(corpora):
    own = items_of.__wrapped__(corpora[0].pk, 0)
    found = items_of(corpora[0].pk, 0)
    assert found == list(own)
    with CaptureQueriesContext(connection) as asked:
        said = [(item.corpus.name, item.is_drawn, item.votes, item.posted_at) for item in found]
    assert said == [(item.corpus.name, item.is_drawn, item.votes, item.posted_at) for item in own]
    assert len(asked.captured_queries) == 0


def test_its_sql_is_built_once(corpora, monkeypatch):
    items_of(corpora[0].pk, 0)

    def built(queryset):
        raise AssertionError("It was built again.")

    monkeypatch.setattr(preparing, "_Built", built)
    assert len(items_of(corpora[1].pk, 0)) == 3


def test_it_may_be_given_any_number_of_values_and_gives_tuples_where_the_query_does(corpora):
    time = datetime(2026, 1, 1, tzinfo=UTC)
    assert keys(0) == [("a0", time, {"langid": [["de", 0.5]]}), ("b0", time, {"langid": [["de", 0.5]]})]
    assert [key for key, *_ in keys(1, 2)] == ["a1", "a2", "b1", "b2"]


def test_a_time_is_given_as_the_database_takes_it(corpora):
    assert {item.key for item in posted_after(datetime(2026, 1, 2, tzinfo=UTC))} == {"a2", "b2"}


def test_a_number_that_no_key_can_be_finds_nothing(corpora):
    assert [items_of(number, 0) for number in (10**30, -(10**30))] == [[], []]


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


def test_a_row_is_inserted_and_changed_as_by_django(corpora):
    item = Item(corpus=corpora[0], key="new", text="x" * 300, letters=7, votes={"cld2": []})
    insert_one(item)
    stored = Item.objects.get(key="new")
    assert stored.pk == item.pk
    assert not item._state.adding
    assert (stored.text, stored.votes, stored.posted_at) == ("x" * 300, {"cld2": []}, None)
    item.votes, item.posted_at = {"langid": []}, datetime(2026, 2, 3, tzinfo=UTC)
    update_one(item, "votes", "posted_at")
    stored.refresh_from_db()
    assert (stored.votes, stored.posted_at) == (item.votes, item.posted_at)


def test_what_is_not_to_be_kept_changes_nothing(corpora):
    before = dict(Item.objects.values_list("key").annotate(Count("pk")))
    item = Item(corpus=corpora[0], key="new", text="x", letters=7, votes={})
    insert_one(item, keep=False)
    assert item.pk is None
    assert dict(Item.objects.values_list("key").annotate(Count("pk"))) == before
    old = Item.objects.get(key="a1")
    old.text = "another"
    update_one(old, "text", keep=False)
    old.refresh_from_db()
    assert old.text == "Ein Text."
