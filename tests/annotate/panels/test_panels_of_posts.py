"""Language tasks with another panel than the default: detectors and imported classifiers vote together."""

import json

import pytest
from django.conf import settings
from django.core.management.base import CommandError

from annotate.actions.commands import call_command
from annotate.core import stages
from annotate.kinds.language import LEAST_LETTERS
from annotate.models import Task
from corpora.core.voters import DEFAULT, VOTERS, agreed_vote, ballots, rank_candidates
from corpora.predictions.predictor_labels import find_predictor, triggers

TRUTH = settings.BASE_DIR / "fixtures" / "demo_truth.tsv"
pytestmark = [pytest.mark.django_db, pytest.mark.on_sqlite]


@pytest.fixture
def mine(demo_corpus, tmp_path):
    """A classifier that says Dutch where the truth is German, and otherwise the truth."""
    truth = dict(line.split("\t") for line in TRUTH.read_text(encoding="utf-8").splitlines())
    lines = (f"{key}\t{'nl' if label == 'de' else label}\n" for key, label in truth.items())
    (tmp_path / "mine.tsv").write_text("id\tlabel\n" + "".join(lines), encoding="utf-8")
    call_command("import_predictions", "demo", str(tmp_path / "mine.tsv"), name="mine", version="2", verbosity=0)
    return demo_corpus


def opened(name="lang", **options):
    usual = {"kind": "language", "corpus": "demo", "size": "300", "seed": "1"}
    call_command("open_task", name, **usual | options, verbosity=0)
    return Task.objects.get(name=name)


def test_two_of_three_settle_a_language_that_all_of_them_know(mine, tmp_path):
    task = opened(voters="langid cld2 mine", agree="2", audit_share="0", audit_least="0")
    known = {*triggers("demo", find_predictor("demo", "mine"))}
    assert "de" not in known
    seen = set()
    for unit in task.units.select_related("item"):
        votes = ballots(unit.item.votes, task.panel)
        label = agreed_vote(votes, task.panel)
        stands = (
            label in known.intersection(task.labels)
            and unit.item.letters >= LEAST_LETTERS
            and label not in task.never_agree
            and all(label in VOTERS[name].languages for name in ("langid", "cld2"))
        )
        assert unit.agreed_label == (label if stands else "")
        seen.add((stands, bool(label)))
        if unit.stage == stages.QUEUED:
            ranked = rank_candidates(votes)
            assert unit.candidates[0] in (*ranked, "und")
    assert seen == {(True, True), (False, True), (False, False)}
    call_command("export_gold", "lang", out=tmp_path / "gold", verbosity=0)
    manifest = json.loads((tmp_path / "gold" / "manifest.json").read_text())
    assert manifest["detectors"][0].keys() == {"langid", "cld2", "mine@2"}
    card = (tmp_path / "gold" / "README.md").read_text()
    assert "If at least 2 of them agree on a language that all of them know" in card
    assert "(langid.py, CLD2, mine@2)" in card


def test_the_default_panel_is_not_stored_and_a_larger_draw_keeps_the_panel_of_its_task(mine):
    plain = opened("plain", voters=" ".join(DEFAULT.voters), size="50")
    assert not plain.options.keys() & {"voters", "agree"}
    task = opened(voters="cld2 mine", size="50")
    call_command("extend_task", "lang", size="80", verbosity=0)
    assert {frozenset(votes) for votes in task.units.values_list("item__votes", flat=True)} >= {
        frozenset({"cld2", "mine@2"})
    }
    assert {*task.draw.detectors[0]} == {"cld2", "mine@2"}
    assert all(
        unit.agreed_label in ("", agreed_vote(unit.item.votes, task.panel) or "")
        for unit in task.units.select_related("item")
    )


def test_a_voter_is_measured_only_on_what_people_read(mine, tmp_path):
    opened(voters="langid mine", audit_share="0", audit_least="0")
    call_command("close", "lang", leave_out=True, verbosity=0)
    call_command("export_gold", "lang", out=tmp_path / "gold", verbosity=0)
    with pytest.raises(CommandError, match="mine@2 voted in the gold set lang"):
        call_command("evaluate", "mine@2", gold=[str(tmp_path / "gold")], out=tmp_path / "report", verbosity=0)


def test_a_panel_of_a_verification_is_refused(mine):
    how = {"kind": "verify", "design": "precision", "predictor": "cld2", "languages": "de", "size": "10"}
    with pytest.raises(CommandError, match="--voters is not an option of verify tasks"):
        opened(**how, voters="langid mine")


def test_an_imported_voter_has_no_triggers_in_the_task_in_which_it_voted(mine):
    opened(voters="cld2 mine", audit_share="0", audit_least="0")
    how = {"kind": "verify", "design": "triggers", "of": "lang", "languages": "de nl", "size": None}
    with pytest.raises(CommandError, match="mine@2 voted in the task lang, so it has the same label as the other"):
        opened("triggers", predictor="mine", **how)
    opened("triggers", predictor="fasttext", **how | {"languages": "all"})
