"""PostgreSQL's statistics follow a table that grows, without waiting for autovacuum."""

import pytest
from django.db import connection, transaction

from annotate.kinds import Answer
from annotate.work.judgments import judge
from annotate.work.queue import take
from corpora.database import bulk_rows
from corpora.database.bulk_rows import insert
from corpora.models import Corpus, Item
from tests.annotate.conftest import DISPUTED

pytestmark = [pytest.mark.postgres_only, pytest.mark.django_db(transaction=True)]


def rows_of(table):
    """Return the number of rows that PostgreSQL's planner assumes."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples FROM pg_class WHERE oid = %s::regclass", [table])
        return cursor.fetchone()[0]


def items(corpus, prefix, number):
    return [Item(corpus=corpus, key=f"{prefix}{n}", text="a few words", votes={}, letters=9) for n in range(number)]


@pytest.fixture
def corpus(transactional_db):
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE corpora_item")
    return Corpus.objects.create(name="many")


def test_many_new_rows_are_known_once_they_are_committed(corpus):
    with transaction.atomic():
        insert(items(corpus, "a", 2_000))
        assert rows_of("corpora_item") == 0
    assert rows_of("corpora_item") == 2_000


def test_rows_that_are_taken_back_change_nothing(corpus):
    with transaction.atomic():
        insert(items(corpus, "a", 2_000))
        transaction.set_rollback(True)
    assert rows_of("corpora_item") == 0


def test_answers_have_it_look_at_what_grew_by_and_by(corpus, make_task, person, monkeypatch):
    monkeypatch.setattr(bulk_rows, "ANSWERS", 1)
    task, ann = make_task([DISPUTED]), person("ann", "de en")
    for part in range(4):
        insert(items(corpus, f"{part}-", 500))
    assert rows_of("corpora_item") < 100
    judge(ann, take(ann, task).pk, Answer(label="de"))
    assert rows_of("corpora_item") == 2_001


def test_a_table_that_has_not_grown_is_left_alone(corpus):
    insert(items(corpus, "a", 2_000))
    Item.objects.filter(key__in=["a1", "a2"]).delete()
    bulk_rows.update_statistics()
    assert rows_of("corpora_item") == 2_000
