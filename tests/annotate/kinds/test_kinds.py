"""A kind of question is one file: this adds one in its own folder, and touches nothing else."""

import json

import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from annotate.kinds import KINDS
from annotate.models import Task
from annotate.work.routes import Routes


@pytest.mark.usefixtures("ads")
def test_later_edits_of_the_file_change_nothing_in_a_task(tmp_path):
    (tmp_path / "ad_fit.toml").write_text(AD_FIT.replace('"It fits"', '"Yes"'), encoding="utf-8")
    task = Task.objects.get()
    assert task.kind.name("fits") == "It fits"
    assert task.kind_file == AD_FIT


def test_labels_are_called_by_their_names():
    for slug, names in (
        ("web_ranking", {"4": "Perfect", "3": "Excellent", "2": "Good", "1": "Fair", "0": "Bad"}),
        ("qa_match", {"1": "Yes", "0": "No"}),
        ("ad_relevance", {"Good": "Good", "Bad": "Bad"}),
        ("language", {"de": "German", "und": "Undefined"}),
        ("verify", {"de": "German", "not-de": "Not German", "und": "Undefined"}),
        # as they came, though they may look like languages
        ("imported", {"de": "de", "und": "und", "7": "7"}),
    ):
        assert {label: KINDS[slug].name(label) for label in names} == names


AD_FIT = """
title = "Would they click?"
form = "choice"

[[layout]]
style = "typed"
fields = ["query"]

[[answers]]
code = "fits"
name = "It fits"

[[answers]]
code = "not"
name = "It does not"

[options]
test_items = 0
gold_share = 0

[guidelines]
en = '''
Read the **query** first.
'''
"""


@pytest.fixture
def ads(db, tmp_path):
    """A task opened with a file that nothing else knows."""
    kind, rows = tmp_path / "ad_fit.toml", tmp_path / "ads.jsonl"
    kind.write_text(AD_FIT, encoding="utf-8")
    rows.write_text(json.dumps({"id": "1", "language": "en", "query": "cheap flights"}), encoding="utf-8")
    call_command("import_corpus", "ads", str(rows), fields="query", licence="CC0-1.0", verbosity=0)
    call_command("open_task", "fit", "--kind", str(kind), "--corpus", "ads", "--seed", "1", verbosity=0)


def test_a_wrong_file_opens_no_task_and_is_told_in_one_sentence(tmp_path, db):
    path = tmp_path / "ad_fit.toml"
    for text, sentence in (
        (AD_FIT.replace("style", "stile", 1), f"{path}, line 6: 'stile' is not a key of [[layout]]. Did you mean s"),
        (
            'title = "Made elsewhere"\nform = "choice"\n',
            f"The kind {path} has no [[layout]], so it cannot be annotated",
        ),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(CommandError) as refused:
            call_command("open_task", "t", "--kind", path, "--corpus", "ads", "--seed", "1")
        assert str(refused.value).startswith(sentence)
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    ("kind", "share", "applies"), [("topic", 0.0, False), ("topic", 0.1, True), ("language", 0.0, True)]
)
def test_an_audit_of_declared_labels_applies_where_some_are_chosen_and_that_of_agreement_always(kind, share, applies):
    task = Task(kind_slug=kind, options={"audit_share": share, "audit_least": 0})
    assert any(control.look_at == "audit" for control in task.hooks["panel"]) is applies


def test_records_of_mixed_languages_wait_in_the_queue_of_und(db, tmp_path, person):
    kind, rows = tmp_path / "ad_fit.toml", tmp_path / "ads.csv"
    kind.write_text(AD_FIT, encoding="utf-8")
    rows.write_text("id,query\n1,cheap flights\n2,billige Flüge\n", encoding="utf-8")
    call_command("import_corpus", "ads", str(rows), fields="query", language="und", licence="CC0-1.0", verbosity=0)
    call_command("open_task", "fit", "--kind", str(kind), "--corpus", "ads", "--seed", "1", verbosity=0)
    task, emma = Task.objects.get(), person("emma", "en")
    assert set(task.units.values_list("language", flat=True)) == {"und"}
    assert Routes.load(task).readers() == {"und": {emma.pk}}
