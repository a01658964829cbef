"""A language model's votes, from the prompt to the report on a gold set."""

import pytest

from annotate.actions.registry import call_command
from annotate.controls.suggestions import suggested
from annotate.models import Task
from corpora.predictions.panels import first_votes, panel_named
from corpora.storage.layout import manifest_of
from tests.annotate.evaluation.figures import figures, rows_of, written
from tests.chat_server import MODEL, PROSE, serving

pytestmark = pytest.mark.django_db(transaction=True)


def truth_of(key):
    return "123"[int(key[1:]) % 3]


def answer(prompt, attempt):
    number = int(prompt.split("Review ")[1].split()[0])
    if number % 10 == 0:
        return PROSE
    return "1" if number % 7 == 0 else truth_of(f"r{number}")


def vote(tmp_path, server, model=MODEL):
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("How content is the writer in language {language}?\n\n{review}\n\nOnly write one of {labels}.")
    options = {"model": model, "prompt": str(prompt), "endpoint": server.url, "labels_of": "mood"}
    call_command("vote", "reviews", **options, max_rejects="10%", verbosity=0)
    return str(manifest_of("reviews").predictions[-1])


def test_a_models_votes_on_records_are_measured_like_any_predictor_and_its_rejects_are_refusals(reviews, tmp_path, run):
    gold = reviews(90, lambda name, key: truth_of(key), size=30)
    with serving(answer) as server:
        predictor = vote(tmp_path, server)
        assert len(server.asked) == 90
        assert server.asked[0].endswith("Only write one of 3, 2, 1.")
    report = run(predictor, "--gold", gold)
    answers = {f"r{n}": answer(f"Review {n} of it.", 1) for n in range(90)}
    keys = [row["id"] for row in rows_of(gold)]
    assert figures(report, "accuracy")["value"] == pytest.approx(sum(answers[k] == truth_of(k) for k in keys) / 60)
    assert len(keys) == 60
    refusals = sum(answers[key] == PROSE for key in keys)
    assert 0 < refusals < 9
    # The same labels in a file, with empty ones for refusals, are measured equally.
    labels = [(key, "" if label == PROSE else label) for key, label in answers.items()]
    file = written(tmp_path / "same.tsv", labels)
    assert run(file, "--gold", gold)["rows"] == report["rows"]
    assert Task.objects.get().labels == ["3", "2", "1"]


def test_a_rejected_answer_is_neither_a_vote_nor_a_suggestion(reviews, tmp_path):
    reviews(30, lambda name, key: truth_of(key))
    with serving(answer) as server:
        voters = [vote(tmp_path, server, model) for model in (MODEL, "other")]
    panel = panel_named("reviews", voters)
    votes = [([*voted.votes.values()], voted.posts) for voted in first_votes("reviews", 0, panel)]
    assert sum(posts for voted, posts in votes if voted == [[], []]) == 3
    assert sum(posts for voted, posts in votes if voted[0] and voted[0] == voted[1]) == 27
    how = {"kind": str(tmp_path / "mood.toml"), "corpus": "reviews", "languages": "en de", "seed": "2"}
    call_command("open_task", "helped", **how, suggest=voters[:1], test_items="0", gold_share="0", verbosity=0)
    units = Task.objects.get(name="helped").units.select_related("item", "task")
    assert {unit.item.key: suggested(unit) for unit in units} == {
        f"r{n}": [] if n % 10 == 0 else [answer(f"Review {n} of it.", 1)] for n in range(30)
    }
