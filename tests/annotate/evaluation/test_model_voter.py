"""A language model's votes, from the prompt to the report on a gold set."""

import pytest

from annotate.actions.commands import call_command
from annotate.models import Task
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


def test_a_models_votes_on_records_are_measured_like_any_predictor_and_its_rejects_are_refusals(reviews, tmp_path, run):
    gold = reviews(90, lambda name, key: truth_of(key), size=30)
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("How content is the writer in language {language}?\n\n{review}\n\nOnly write one of {labels}.")
    with serving(answer) as server:
        options = {"model": MODEL, "prompt": str(prompt), "endpoint": server.url, "labels_of": "mood"}
        call_command("vote", "reviews", **options, max_rejects="10%", verbosity=0)
        assert len(server.asked) == 90
        assert server.asked[0].endswith("Only write one of 3, 2, 1.")
    [predictions] = manifest_of("reviews").predictions
    report = run(str(predictions), "--gold", gold)
    said = {f"r{n}": answer(f"Review {n} of it.", 1) for n in range(90)}
    keys = [row["id"] for row in rows_of(gold)]
    assert figures(report, "accuracy")["value"] == pytest.approx(sum(said[k] == truth_of(k) for k in keys) / 60)
    assert len(keys) == 60
    refusals = sum(said[key] == PROSE for key in keys)
    assert 0 < refusals < 9
    # The same labels in a file, with empty ones for refusals, are measured equally.
    labels = [(key, "" if label == PROSE else label) for key, label in said.items()]
    file = written(tmp_path / "same.tsv", labels)
    assert run(file, "--gold", gold)["rows"] == report["rows"]
    assert Task.objects.get().labels == ["3", "2", "1"]
