"""Fixtures: a task, the people who work on it, and the folder of its gold set."""

import shutil

import pytest

from corpora.models import Corpus
from tests.annotate.corpus import SMALL
from tests.annotate.goldsets.acts import make_people, open_small


@pytest.fixture
def corpus(small, data_dir, db):
    shutil.copytree(small, data_dir, dirs_exist_ok=True)
    return Corpus.objects.create(name=SMALL)


@pytest.fixture
def people(db):
    return make_people()


@pytest.fixture
def task(corpus):
    return open_small(corpus)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "exports" / "gold"
