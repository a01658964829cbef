"""A real corpus for the tests that draw: fixtures/demo_posts.jsonl, imported and read by the real detectors.

The detectors take seconds, so they run only once. Each test that uses `demo_corpus` gets a copy of the result.
"""

import json
import shutil

import pytest
from django.conf import settings as django_settings
from django.test import override_settings

from annotate.actions.registry import call_command
from corpora.models import Corpus

NAME, LICENCE = "demo", "CC-BY-4.0"
SOURCE = "lingua-py, Leipzig Corpora Collection, AfriSenti and CLD2; see fixtures/README.md"
POSTS = django_settings.BASE_DIR / "fixtures" / "demo_posts.jsonl"


def import_posts(name=NAME):
    call_command("import_corpus", name, str(POSTS), licence=LICENCE, text_may_leave=True, source=SOURCE, verbosity=0)


@pytest.fixture(scope="session")
def prelabelled(django_db_setup, django_db_blocker, tmp_path_factory):
    """The data folder of an installation with the demo corpus and its votes. Tests must not change it."""
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


# --- A small corpus for exports

SMALL = "small"
SMALL_SOURCE = "lingua-py; “quoted”, and 'so'"
# Texts that are difficult for file formats. The first one occurs twice, and people judge it.
HARD = [
    ("twice-1", "haha ok\tlol\nsecond line"),
    ("twice-2", "haha ok\tlol\nsecond line"),
    ("rtl", "שלום עולם, \u202eזה טקסט עם כיוון הפוך"),
    ("emoji", "👩‍👩‍👧 \u2028 \u0085 \x0b ünï"),
    ("=cmd()", '"quoted", \\backslash\\, {{ template }}, <b>&amp;'),
]


@pytest.fixture(scope="session")
def small(django_db_setup, django_db_blocker, tmp_path_factory):
    """A data folder with a corpus of about sixty posts and the votes of the real detectors."""
    folder = tmp_path_factory.mktemp("small")
    posts = folder / "posts.jsonl"
    with open(POSTS, encoding="utf-8") as source:
        lines = [next(source) for _ in range(60)]
    hard = [
        {"id": key, "text": text, "author": "somebody_q", "url": f"https://example.org/{n}"}
        for n, (key, text) in enumerate(HARD)
    ]
    posts.write_text("".join(lines) + "".join(json.dumps(post) + "\n" for post in hard), encoding="utf-8")
    data = folder / "var"
    with override_settings(DATA_DIR=data), django_db_blocker.unblock():
        call_command("import_corpus", SMALL, str(posts), licence="CC BY 4.0", source=SMALL_SOURCE)
        call_command("prelabel", SMALL, processes=1)
        Corpus.objects.all().delete()
    return data
