"""The `vote` action: ask a language model for the label of each item in a corpus."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings

from annotate.actions.action import CORPUS, MAX_REJECTS, ActionError, Outcome, Progress, Values, action
from annotate.core.option import Option, flag, labels, number, whole_number
from annotate.kinds import KINDS
from annotate.kinds.files import KindError, read_kind
from annotate.models import Task
from annotate.reports.tables import many
from corpora.core.languages import UND
from corpora.predictions.chat_endpoint import KEY_VARIABLE, OLLAMA, Endpoint, endpoint_at
from corpora.predictions.model_answers import Question, read_template, valid_labels
from corpora.predictions.model_votes import Limits, check_reach, name_for, vote
from corpora.predictions.predictor_labels import check_name
from corpora.storage.layout import manifest_of

ENDPOINT = "The endpoint"
LABELS = "The labels"


@action(
    "vote",
    "Ask a language model for the label of each item of a corpus, and register the answers as a predictor: to draw by "
    "it, evaluate it, or have it vote. The endpoint is a server on this machine, such as Ollama, or any other with "
    "OpenAI's chat completions API. Run the command again after an interruption or after adding items: it asks only "
    "about items without an answer. Answers that are not one of the labels are rejected and listed; such items have no "
    "vote.",
    CORPUS,
    Option("model", required=True, help="the model's name at the endpoint, for example llama3.2:3b"),
    Option(
        "prompt",
        Path,
        required=True,
        shown="FILE",
        help="a text file with the prompt. {text} stands for the item's text, {FIELD} for a field of a record, and "
        "{labels} for the labels",
    ),
    Option(
        "labels",
        labels,
        help='the labels, such as "good bad" or "not good; bad", unless --labels-of is used',
        group=LABELS,
    ),
    Option(
        "labels_of", default="", shown="NAME", help="use the labels of this task, kind or kind's file", group=LABELS
    ),
    Option(
        "endpoint",
        default="",
        shown="URL",
        help=f"the base URL, by default ASSAY_ENDPOINT or {OLLAMA}. Its key is {KEY_VARIABLE}",
        group=ENDPOINT,
    ),
    Option(
        "send_to",
        default="",
        shown="HOST",
        help="the endpoint's host, to confirm that texts may be sent to it; not needed for this machine",
        group=ENDPOINT,
    ),
    Option("at_once", whole_number, 4, least=1, most=256, help="the number of parallel requests", group=ENDPOINT),
    Option(
        "longest_wait",
        number,
        60.0,
        least=0.1,
        most=3600,
        shown="SECONDS",
        help="how long to wait for a reply",
        group=ENDPOINT,
    ),
    Option(
        "most_tokens",
        whole_number,
        1_000_000,
        least=1,
        help="the maximum number of tokens for all requests with this prompt, including earlier runs",
    ),
    Option("answer_tokens", whole_number, 32, least=1, help="the maximum number of tokens of an answer"),
    Option("name", default="", help="the predictor's name; by default the model's. Its version is a digest"),
    Option(
        "ask_again",
        flag,
        False,
        help="ask again about items whose reply could not be read, for example because a proxy sent it",
    ),
    Option("accept_unanswered", flag, False, help="reject items to which the endpoint does not reply, and continue"),
    replace(
        MAX_REJECTS,
        help="the maximum share of items without a valid answer, such as 10%. If there are more, no predictor is "
        "registered and the exit status is 3",
    ),
    refuses=(KindError,),
    checks=lambda values: _check(values),
)
def vote_action(values: Values, progress: Progress) -> Outcome:
    corpus = values["corpus"]
    limits = Limits(
        **{name: values[name] for name in ("at_once", "most_tokens", "max_rejects", "accept_unanswered", "ask_again")}
    )
    progress.begin(manifest_of(corpus).rows, "item")
    voted = vote(corpus, values["question"], values["address"], limits, name=values["name"], progress=progress.advance)
    predictions, provenance = voted.predictions, voted.asked
    noun = "record" if manifest_of(corpus).fields else "post"
    already = "already registered; " if voted.already else ""
    tokens = f"{provenance.tokens_reported:,} tokens"
    if unknown := provenance.tokens - provenance.tokens_reported:
        tokens += f" reported, and at most {unknown:,} of requests whose use the endpoint did not report"
    sentences = [
        f"Predictor {predictions} of corpus {corpus}: {already}labels for {predictions.rows - provenance.rejected:,} "
        f"of {many(predictions.rows, noun)}; {many(voted.requested, 'new answer')}, {tokens}."
    ]
    if provenance.rejected:
        sentences.append(f"{many(provenance.rejected, 'item')} without a valid answer, listed in {voted.rejects}.")
    data = {"corpus": corpus, "predictor": str(predictions), "posts": predictions.rows, "already": voted.already}
    data |= {"rejects": provenance.rejected, "rejects_file": voted.rejects if provenance.rejected else None}
    data |= {"new_answers": voted.requested, "tokens": provenance.tokens, "models": provenance.reported}
    return Outcome(sentences, data=data)


def _check(values: Values) -> dict[str, Any]:
    """Return the question and the endpoint's address. Raise an error if the model cannot be asked."""
    corpus, manifest = values["corpus"], manifest_of(values["corpus"])
    address: Endpoint = endpoint_at(values["endpoint"] or settings.ENDPOINT or OLLAMA, values["longest_wait"])
    check_reach(corpus, address, values["send_to"])
    template = read_template(values["prompt"], manifest.fields)
    valid = valid_labels(_labels(values), of_records=bool(manifest.fields))
    question = Question(values["model"], template, valid, values["answer_tokens"])
    check_name(values["name"] or name_for(question.model), question.version, manifest)
    if not manifest.rows:
        raise ActionError(f"Corpus {corpus} is empty. Import a file first.", option="corpus")
    return {"question": question, "address": address}


def _labels(values: Values) -> list[str]:
    """Return the labels specified by the options. Raise ActionError if there are none."""
    name = values["labels_of"]
    if bool(values["labels"]) == bool(name):
        raise ActionError("Specify the labels with either --labels or --labels-of.", option="labels")
    if not name:
        return list(values["labels"])
    if task := Task.objects.filter(name=name).first():
        kind, choices = task.kind, list(task.labels)
    elif name not in KINDS and not name.endswith(".toml"):
        raise ActionError(f"There is no task or kind {name!r}.", option="labels_of")
    else:
        kind = KINDS.get(name) or read_kind(Path(name))
        choices = list(kind.answers) or list(kind.labels)
    if not choices:
        raise ActionError(f"{name} has no fixed labels. List them with --labels.", option="labels_of")
    return [*choices, UND] if kind.labels_are_languages and UND not in choices else choices
