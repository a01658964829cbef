"""vote: labels by a language model, from a test endpoint that answers well, badly, late or not at all."""

import json
import os
import signal
from collections import Counter

import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from corpora.core import TooManyRejected
from corpora.predictions import model_votes
from corpora.predictions.chat_endpoint import endpoint_at
from corpora.predictions.model_answers import label_in, log_probability, open_ledger
from corpora.predictions.predictor_labels import find_predictor, open_predictions
from corpora.storage.layout import corpora_dir, corpus_dir, manifest_of
from tests.chat_server import MALFORMED, MODEL, PROSE, Status, serving, slow
from tests.running import DATA, assay, begin, install
from tests.together import until

pytestmark = pytest.mark.django_db

KEY = "sk-made-up-4711"
PROMPT = "Which language is this: {text}\nAnswer with one of {labels}."
CODES = ("de", "en", "fr", "ru")


def text_of(n):
    return f"Text number {n:03} of the corpus."


def place_of(prompt):
    return int(prompt.split("number ")[1][:3])


def truth(prompt, attempt=1):
    return CODES[place_of(prompt) % 4]


def posts(first, count):
    return [{"id": f"p{n:03}", "text": text_of(n)} for n in range(first, first + count)]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(model_votes, "BACKOFF", 0.02)


@pytest.fixture
def corpus(write, import_corpus):
    import_corpus("c", write("posts.jsonl", posts(0, 40)))
    return "c"


@pytest.fixture
def vote(printed, write):
    def run(server, *words, prompt=PROMPT, corpus="c", labels="de en fr ru", **options):
        path = write("prompt.txt", prompt)
        options = {"model": MODEL, "endpoint": server.url, "labels": labels, **options}
        return printed("vote", corpus, *words, prompt=str(path), **options)

    return run


def stored(corpus="c"):
    [predictions] = manifest_of(corpus).predictions
    with open_predictions(corpus, find_predictor(corpus, str(predictions))) as opened:
        rows = opened.connection.table("predicted").to_arrow_table().to_pylist()
    return {row["id"]: (row["label"], row["score"]) for row in rows}


def labels(corpus="c"):
    return {key: label for key, (label, _) in stored(corpus).items()}


def right(first, count):
    return {row["id"]: truth(row["text"]) for row in posts(first, count)}


def rejected(corpus="c"):
    [path] = (corpus_dir(corpus) / "answers").glob("*-rejects.jsonl")
    return {row["id"]: row for row in map(json.loads, path.read_text().splitlines())}


def refusal(run, *words, **options):
    with pytest.raises(CommandError) as error:
        run(*words, **options)
    return str(error.value)


def test_answers_become_a_predictor_with_the_log_probability_as_score_and_its_manifest_says_how(corpus, vote):
    def answer(prompt, attempt):
        return [("<think>de? </think>", -3.0), ("\n", -0.5), (truth(prompt)[:1], -0.25), (truth(prompt)[1:], -0.5)]

    with serving(answer) as server:
        output = vote(server, at_once=3)
        assert Counter(server.asked).most_common(1)[0][1] == 1
        assert 1 < server.most_at_once <= 3
    [predictions] = manifest_of("c").predictions
    assert output.startswith(f"Predictor {predictions} of corpus c: labels for 40 of 40 posts; 40 new answers, ")
    assert stored() == {key: (label, pytest.approx(-0.75)) for key, label in right(0, 40).items()}
    assert {body["temperature"] for body in server.bodies} == {0}
    run = predictions.asked
    assert (predictions.name, run.model, run.reported) == (MODEL, MODEL, (f"{MODEL}-0613",))
    assert (run.prompt, run.labels, run.hosts) == (PROMPT, CODES, (server.url.split("/")[2],))
    assert (run.answers, run.rejected, run.tokens) == (40, 0, server.used)
    assert run.began <= run.ended
    assert "which language is this" not in (corpus_dir("c") / "answers").iterdir().__next__().read_text().lower()


def test_a_corpus_that_grew_is_asked_only_about_new_items_and_equal_texts_are_asked_once(
    corpus, vote, write, import_corpus
):
    with serving(truth) as server:
        vote(server)
        first = manifest_of("c").predictions
        assert "already registered; labels for 40 of 40 posts; 0 new answers" in vote(server)
        assert manifest_of("c").predictions == first
        twin = {"id": "twin", "text": text_of(41)}
        import_corpus("c", write("more.jsonl", [*posts(40, 5), twin]))
        assert "labels for 46 of 46 posts; 5 new answers" in vote(server)
        assert len(server.asked) == 45
    assert labels() == right(0, 45) | {"twin": truth(text_of(41))}


def test_bad_answers_are_rejects_without_a_vote_and_few_are_accepted_only_if_asked_for(corpus, vote):
    bad = {5 * n: MALFORMED[n % 4] for n in range(8)}

    with serving(lambda prompt, attempt: bad.get(place_of(prompt)) or truth(prompt)) as server:
        with pytest.raises(CommandError, match=r"8 of 40 answers were rejected\. The first: The reply is not") as error:
            vote(server)
        assert error.value.returncode == TooManyRejected.status
        assert manifest_of("c").predictions == ()
        output = vote(server, max_rejects="20%")
        assert len(server.asked) == 40
    assert "8 items without a valid answer, listed in " in output
    assert labels() == right(0, 40) | dict.fromkeys((f"p{n:03}" for n in bad), "und")
    reasons = {"The reply is not JSON.": 2, "The reply has no choices.": 2, "The answer is not one of the labels.": 4}
    assert Counter(row["reason"] for row in rejected().values()) == reasons
    assert rejected()["p010"] == {"id": "p010", "reason": "The answer is not one of the labels.", "answer": "Klingon"}
    assert manifest_of("c").predictions[0].asked.rejected == 8


def test_a_model_that_answers_hardly_anything_well_is_not_asked_to_the_end(corpus, vote):
    with serving(lambda prompt, attempt: PROSE) as server:
        assert "of 20 answers were rejected" in refusal(vote, server, at_once=1, max_rejects="20%")
        assert len(server.asked) == 20


def test_late_and_busy_endpoints_are_asked_again_and_a_pause_that_they_ask_for_is_kept(corpus, vote):
    def answer(prompt, attempt):
        if place_of(prompt) in (3, 4) and attempt == 1:
            slow(1)
        if place_of(prompt) == 7 and attempt <= 2:
            raise Status(503)
        if place_of(prompt) == 9 and attempt == 1:
            raise Status(429, retry_after="0.3")
        return truth(prompt)

    with serving(answer) as server:
        vote(server, longest_wait="0.4", at_once=2)
        again = {place_of(prompt): times for prompt, times in server.times.items() if times > 1}
        assert again == {3: 2, 4: 2, 7: 3, 9: 2}
        until(lambda: server.now == 0)
        # The costs of the two late requests and the busy one are unknown, so their upper bounds count.
        assert server.used < manifest_of("c").predictions[0].asked.tokens < server.used + 5 * 400
    assert labels() == right(0, 40)


def test_an_item_that_never_gets_a_reply_is_named_and_may_be_left_without_a_vote(corpus, vote):
    def answer(prompt, attempt):
        if place_of(prompt) == 3:
            raise Status(400, {"error": {"message": "too long for this model"}})
        return truth(prompt)

    with serving(answer) as server:
        message = refusal(vote, server)
        assert "did not reply about 1 item: p003. The first reason: status 400: too long for this model." in message
        assert manifest_of("c").predictions == ()
        vote(server, "--accept-unanswered")
        assert Counter(server.times.values()) == {1: 39, 2: 1}
        vote(server)
        assert len(server.asked) == 41
    assert labels() == right(0, 40) | {"p003": "und"}
    assert rejected()["p003"]["reason"] == "No reply: status 400: too long for this model."


def test_an_endpoint_that_refuses_every_request_ends_the_run_and_no_answer_is_made_of_it(corpus, vote):
    def refuse(prompt, attempt):
        raise Status(400, {"error": {"message": "temperature is not supported"}})

    with serving(refuse) as server:
        assert "The endpoint refuses requests: status 400: temperature is" in refusal(vote, server, at_once=1)
        assert len(server.asked) == 3
        assert "about 40 items, the first: p0" in refusal(vote, server, "--accept-unanswered")
        server.answer = truth
        vote(server)
    assert labels() == right(0, 40)


def test_replies_that_are_none_can_be_asked_for_again(corpus, vote):
    """A proxy, for example, may send such replies, which say nothing about the model."""
    bad = {5 * n: MALFORMED[n % 4] for n in range(8)}
    replies = serving(lambda prompt, attempt: bad.get(place_of(prompt)) or truth(prompt))
    with replies as server, pytest.raises(CommandError, match="8 of 40 answers were rejected"):
        vote(server)
    with serving(lambda prompt, attempt: truth(prompt)) as server:
        vote(server, max_rejects="20%", ask_again=True)
        assert len(server.asked) == 4
    assert sum(label == "und" for label in labels().values()) == 4


def test_an_endpoint_that_is_down_ends_the_run(corpus, vote):
    with serving(truth) as server:
        pass
    message = refusal(vote, server)
    assert message.startswith("The endpoint does not reply: cannot connect to 127.0.0.1:")
    assert "There are no answers yet." in message


@pytest.mark.parametrize("at_once", [1, 4])
def test_the_limit_of_tokens_holds_and_a_higher_one_continues(corpus, vote, at_once):
    with serving(truth) as server:
        message = refusal(vote, server, most_tokens=600, at_once=at_once)
        assert message.startswith("The limit of 600 tokens leaves no room for the next request, which may cost 3")
        assert 0 < server.used <= 600
        assert f"{server.used:,} are used. All {len(server.asked)} answers are kept." in message
        vote(server)
        assert set(server.times.values()) == {1}
    assert labels() == right(0, 40)


def test_requests_that_wait_for_room_and_for_a_pause_are_sent_after_both(corpus, vote):
    def answer(prompt, attempt):
        if place_of(prompt) < 3 and attempt == 1:
            raise Status(429, retry_after="0.2")
        return truth(prompt)

    with serving(answer) as server:
        vote(server, most_tokens=1200, at_once=4)  # there is room for three requests
        assert len(server.asked) == 43
    assert labels() == right(0, 40)


def test_an_endpoint_without_log_probabilities_or_usage_is_asked_without(corpus, vote):
    def answer(prompt, attempt):
        if server.bodies[-1].get("logprobs") and "logprobs" in server.bodies[server.asked.index(prompt)]:
            raise Status(400, {"error": {"message": "logprobs is not supported"}})
        return truth(prompt)

    with serving(answer) as server:
        vote(server, at_once=1)
        assert server.times.pop(server.asked[0]) == 2
        assert ["logprobs" in body for body in server.bodies] == [True, *[False] * 40]
    assert stored() == {key: (label, None) for key, label in right(0, 40).items()}


def everything_below(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_the_key_is_sent_and_nowhere_else(corpus, vote, settings, capsys):
    settings.ENDPOINT_KEY = KEY

    def answer(prompt, attempt):
        if place_of(prompt) == 1:
            return f"Your key is {KEY}"
        if place_of(prompt) == 2:
            raise Status(400, f"bad key {KEY}")
        return truth(prompt)

    with serving(answer) as server:
        output = refusal(vote, server) + vote(server, "--accept-unanswered", max_rejects="10%")
        assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    assert "bad key [key]" in output
    assert KEY not in output + "".join(capsys.readouterr())
    assert KEY.encode() not in everything_below(corpora_dir())
    assert rejected()["p001"]["answer"] == "Your key is [key]"


def test_a_key_that_is_refused_ends_the_run_without_the_endpoints_words(corpus, vote, settings):
    settings.ENDPOINT_KEY = KEY

    def answer(prompt, attempt):
        raise Status(401, {"error": {"message": f"wrong key: {KEY[:8]}***"}})

    with serving(answer) as server:
        message = refusal(vote, server, at_once=1)
        assert message == "The endpoint refused the key (status 401). Set ASSAY_ENDPOINT_KEY to a valid key."
        assert len(server.asked) == 1
        settings.ENDPOINT_KEY = "a b"
        assert refusal(vote, server) == "ASSAY_ENDPOINT_KEY must consist of ASCII characters without spaces."


def test_no_text_goes_to_another_host_than_the_one_named(corpus, vote, write, import_corpus, monkeypatch):
    import_corpus("secret", write("posts.jsonl", posts(0, 3)), "--text-stays", licence="own")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9/")

    def answer(prompt, attempt):
        raise Status(307, location="http://127.0.0.2/v1/chat/completions")

    with serving(answer) as server:
        assert "(status 307: made-up error 307). Check --endpoint" in refusal(vote, server, at_once=1)
        server.url = "https://api.example.org/v1"
        message = refusal(vote, server)
        assert "would leave this machine, because the endpoint is on api.example.org." in message
        assert "(CC0-1.0), they may be published. If they may be sent there, add --send-to api.example.org." in message
        assert "(own), they must not be published." in refusal(vote, server, corpus="secret")
        assert "add --send-to api.example.org" in refusal(vote, server, send_to="example.org")
        for url in ("api.example.org", "ftp://a/v1", "http://", "http://[::1/v1", "http://a:0/v1", "http://é.org"):
            server.url = url
            assert "--endpoint is not a valid URL" in refusal(vote, server)
        for url in ("http://me:pass@127.0.0.1/v1", "http://127.0.0.1/v1?key=1"):
            server.url = url
            assert "must have no user name, password, query or fragment" in refusal(vote, server)
    local = ("http://127.8.9.1/v1", "http://localhost:1/v1", "https://[::1]/v1")
    assert [endpoint_at(url, 1).is_local for url in (*local, "http://127.0.0.1.example.org/")] == [True] * 3 + [False]


def test_a_prompt_has_known_placeholders_and_texts_with_braces_stay_as_they_are(vote, write, import_corpus):
    rows = [{"id": f"r{n}", "language": "en", "title": f"number {n:03} {{labels}}", "body": "b"} for n in range(3)]
    import_corpus("records", write("records.jsonl", rows), fields="title body")
    with serving(lambda prompt, attempt: "good") as server:
        of = {"corpus": "records", "labels": "good;not good"}
        unknown = "the placeholder {txt} is unknown. Available: {text}, {language}, {title}, {body}, {labels}."
        assert unknown in refusal(vote, server, prompt="{title} {txt}", **of)
        assert "would ask the same about each item" in refusal(vote, server, prompt="{labels}", **of)
        assert "is not UTF-8" in refusal(vote, server, prompt=b"\xff{text}", **of)
        assert "cannot be read" in refusal(
            lambda: call_command("vote", "records", model="m", prompt="/none", labels="a b")
        )
        vote(server, prompt='{ title }|{language}|{text}|{labels}|{"a": 1}', **of)
        assert sorted(server.asked)[1] == ('number 001 {labels}|en|number 001 {labels}\nb|good, not good|{"a": 1}')
    assert labels("records") == dict.fromkeys(("r0", "r1", "r2"), "good")


def test_labels_are_named_once_and_come_from_options_a_kind_or_a_task(corpus, vote):
    with serving(truth) as server:
        assert "either --labels or --labels-of" in refusal(vote, server, labels=None)
        assert "either --labels or --labels-of" in refusal(vote, server, labels_of="topic")
        assert "There is no task or kind 'none'." in refusal(vote, server, labels=None, labels_of="none")
        assert "at least two labels" in refusal(vote, server, labels="de")
        assert "at least two labels" in refusal(vote, server, labels="de de")
        assert "The label 'xq'" in refusal(vote, server, labels="de xq")
        vote(server, labels=None, labels_of="language")
        assert ", und." in server.asked[0]
    assert labels() == right(0, 40)


def test_the_label_in_an_answer_is_the_whole_answer():
    candidates = ("not good", "Good", "C.")
    for answer in ("Good", " good\n", '"good".', "**Good**", "`GOOD`"):
        assert label_in(answer, candidates) == "Good"
    assert label_in("c", candidates) == "C."
    for answer in ("good or not", "It is good", "goods", "", "g\u200bood"):
        assert label_in(answer, candidates) is None
    tokens = [(" ", -1.0), ("Go", -0.5), ("od", -0.25), (".", -2.0)]
    assert log_probability(tokens, "Good") == -0.75
    assert log_probability(tokens, "not good") is None
    assert log_probability([], "Good") is None


def test_two_runs_do_not_ask_at_once_and_a_damaged_file_is_refused(corpus, vote):
    with serving(truth) as server:
        vote(server)
        [path] = (corpus_dir("c") / "answers").glob("*[!s].jsonl")
        with open_ledger(path, CODES), pytest.raises(CommandError, match="Another command is asking the same question"):
            vote(server)
        whole = path.read_bytes()
        path.write_bytes(whole + b'{"answered": "torn')
        assert "already registered" in vote(server)
        assert path.read_bytes() == whole
        path.write_bytes(b"{}\n" + whole)
        assert "line 1 is damaged" in refusal(vote, server)


def test_the_answers_are_deleted_with_the_corpus(corpus, vote):
    with serving(truth) as server:
        vote(server)
    call_command("delete", corpus=corpus, yes=True)
    assert not corpus_dir("c").exists()


@pytest.mark.slow
def test_a_command_that_was_killed_continues_without_asking_twice_or_losing_anything(migrated, tmp_path, write):
    install(tmp_path / DATA, migrated)

    def answer(prompt, attempt):
        slow(0.02)
        return MALFORMED[0] if place_of(prompt) == 5 else truth(prompt)

    corpus = tmp_path / DATA / "corpora" / "c"
    assay(tmp_path, "import_corpus", "c", write("posts.jsonl", posts(0, 120)), "--licence", "CC0-1.0")
    with serving(answer) as server:
        words = ["vote", "c", "--model", MODEL, "--prompt", write("prompt.txt", PROMPT), "--endpoint", server.url]
        words += ["--labels", " ".join(CODES)]
        first = begin(tmp_path, *words, env={"ASSAY_ENDPOINT_KEY": KEY})
        until(lambda: len(server.answered) >= 60)
        os.killpg(first.pid, signal.SIGKILL)
        output = first.communicate()
        until(lambda: server.now == 0)
        [path] = (corpus / "answers").iterdir()
        content = path.read_bytes()
        answered = sum(b'"answered"' in line for line in content.splitlines())
        assert 55 <= answered < 120
        second = assay(tmp_path, *words, ASSAY_ENDPOINT_KEY=KEY)
        assert (second.returncode, second.stderr) == (0, "")
        assert path.read_bytes().startswith(content)
        # Only requests without a response are repeated: at most four were on their way.
        assert set(server.times.values()) <= {1, 2}
        assert len(server.asked) - 120 <= min(4, 120 - answered)
        assert "0 new answers" in assay(tmp_path, *words, ASSAY_ENDPOINT_KEY=KEY).stdout
        assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    [predictions] = json.loads((corpus / "manifest.json").read_text())["predictions"]
    assert (predictions["rows"], predictions["asked"]["answers"], predictions["asked"]["rejected"]) == (120, 120, 1)
    by_id = {row["id"]: row["label"] for row in pq.read_table(corpus / "predictions" / predictions["file"]).to_pylist()}
    assert by_id == right(0, 120) | {"p005": "und"}
    assert KEY not in "".join([*output, second.stdout])
    assert KEY.encode() not in everything_below(tmp_path / DATA)
