"""A real corpus for the tests that draw: fixtures/demo_posts.jsonl, imported and read by the real detectors.

The detectors take seconds, so they read it once in a run; each test that asks for `demo_corpus` has a copy.
"""

import shutil

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.test import override_settings

from annotate.management.commands.demo import LICENCE, SOURCE
from corpora.models import Corpus

NAME = "demo"
POSTS = django_settings.BASE_DIR / "fixtures" / "demo_posts.jsonl"


def import_posts(name=NAME):
    call_command("import_corpus", name, str(POSTS), licence=LICENCE, text_may_leave=True, source=SOURCE, verbosity=0)


@pytest.fixture(scope="session")
def prelabelled(django_db_setup, django_db_blocker, tmp_path_factory):
    """The data folder of an installation with the demo's corpus and its votes; not to be written to."""
    folder = tmp_path_factory.mktemp("prelabelled")
    with override_settings(DATA_DIR=folder), django_db_blocker.unblock():
        import_posts()
        call_command("prelabel", NAME, processes=1)
        Corpus.objects.all().delete()
    return folder


@pytest.fixture
def demo_corpus(prelabelled, data_dir, db):
    shutil.copytree(prelabelled, data_dir, dirs_exist_ok=True)
    return Corpus.objects.create(name=NAME)
