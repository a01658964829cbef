"""Each row of a fuzzed file is accepted, refused or recognized as a duplicate, and reported. The long run is the
benchmark benchmarks/rows.py.
"""

import itertools

import hypothesis
import pytest
from django.db import transaction
from hypothesis import strategies as st

from tests.inputs import fuzzing

pytestmark = pytest.mark.slow


OFFERED = [(name, format) for name, importer in fuzzing.IMPORTERS.items() for format in importer.formats]


@pytest.fixture(scope="module")
def begin_world(make_world, tmp_path_factory):
    return make_world(fuzzing.make_installation, tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize(("name", "format"), OFFERED, ids=map("-".join, OFFERED))
def test_no_row_is_lost_without_a_word(begin_world, data_dir, db, tmp_path, name, format):
    begin_world(data_dir)
    names = (f"new{number}" for number in itertools.count())

    @hypothesis.settings(max_examples=5, suppress_health_check=[*hypothesis.HealthCheck])
    @hypothesis.given(st.randoms(use_true_random=False))
    def offer(chance):
        with transaction.atomic():
            fuzzing.offer(fuzzing.IMPORTERS[name], format, chance, tmp_path, next(names), fuzzing.ABOUT)
            transaction.set_rollback(True)

    offer()
