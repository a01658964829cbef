"""Label all items of a corpus with a language model, and register the labels as a predictor.

Prompts are sent in item order, several at a time, and each distinct prompt is sent once. Threads send the requests, and
the main thread logs the answers (model_answers.py), so that an interrupted run can resume. An item without a valid
answer gets the label `und`, which doesn't count as a vote, and is listed with the reason.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue

from corpora.core import CorpusError, TooManyRejected, listed
from corpora.core.arrow import pq
from corpora.core.languages import UND
from corpora.engines import explain_full_disk
from corpora.predictions.chat_endpoint import Endpoint, NoLogProbabilities, NoReply, Reply
from corpora.predictions.model_answers import LANGUAGE, TEXT, Answer, Ledger, Question, open_ledger
from corpora.predictions.prediction_import import register_answers
from corpora.predictions.predictor_labels import check_name
from corpora.storage.intake import too_many
from corpora.storage.layout import Asked, Manifest, Predictions, corpus_dir, manifest_of, sync

ATTEMPTS = 6  # maximum number of attempts per prompt
BACKOFF, LONGEST_WAIT = 1.0, 60.0  # first and longest delay before a retry (seconds)
LONGEST_PAUSE = 3600.0  # longest pause that an endpoint can request (seconds)
DOWN = 3  # the endpoint counts as down after this many prompts in a row without a reply
EARLY = 20  # number of answers after which the run is aborted if most of them are rejected
_BATCH_ROWS = 1_000


@dataclass(frozen=True)
class Limits:
    """Limits of a run.

    at_once: maximum number of concurrent requests
    most_tokens: maximum number of tokens for this question, including earlier runs
    max_rejects: maximum share of rejected items
    accept_unanswered: whether items without a reply are rejected, instead of raising an error
    ask_again: whether to send prompts with an unreadable reply again
    """

    at_once: int
    most_tokens: int
    max_rejects: float
    accept_unanswered: bool = False
    ask_again: bool = False


@dataclass(frozen=True)
class VoteResult:
    """The result of a run.

    requested: number of answers received in this run
    rejects: file that lists the rejected items
    already: whether the same predictions already existed
    """

    predictions: Predictions
    asked: Asked
    requested: int
    rejects: Path
    already: bool


def vote(
    corpus_name: str,
    question: Question,
    endpoint: Endpoint,
    limits: Limits,
    *,
    name: str = "",
    progress: Callable[[int], object] = lambda count: None,
) -> VoteResult:
    """Ask a model for the label of each item in a corpus, and register the labels as a predictor.

    name: the predictor's name; by default derived from the model's name
    progress: called with the number of items done

    Raise CorpusError if items remain without a reply, or if the token limit is reached. All answers are kept.
    """
    name, manifest = name or name_for(question.model), manifest_of(corpus_name)
    check_name(name, question.version, manifest)
    path = corpus_dir(corpus_name) / "answers" / f"{question.request_digest[:16]}.jsonl"
    with explain_full_disk("the last answers were not stored"), open_ledger(path, question.labels) as ledger:
        if limits.ask_again:
            ledger.forget_faults()
        before, run = len(ledger.answers), _Run(question, endpoint, limits, ledger, progress)
        run.ask_all(_prompts(corpus_name, manifest, question))
        run.check_unanswered(manifest.rows)
        prompts = _prompts(corpus_name, manifest, question)
        answers = {key: ledger.answers[question.key(prompt)] for key, prompt in prompts}
        rejects = path.with_name(f"{path.stem}-rejects.jsonl")
        _check_rejects(answers, rejects, limits.max_rejects)
        provenance = _asked(question, ledger, sum(not answer.label for answer in answers.values()))
        rows = ((key, answer.label or UND, answer.score) for key, answer in answers.items())
        imported = register_answers(corpus_name, rows, name=name, version=question.version, provenance=provenance)
    return VoteResult(imported.predictions, provenance, len(ledger.answers) - before, rejects, imported.already)


def check_reach(corpus_name: str, endpoint: Endpoint, send_to: str) -> None:
    """Raise CorpusError if the corpus's texts must not be sent to an endpoint.

    send_to: host that the user allows, in addition to this machine
    """
    if endpoint.is_local or send_to.lower() == endpoint.hostname:
        return
    manifest = manifest_of(corpus_name)
    rights = "may" if manifest.text_may_leave else "must not"
    raise CorpusError(
        f"The texts of corpus {corpus_name} would leave this machine, because the endpoint is on {endpoint.hostname}. "
        f"According to the corpus's licence ({manifest.licence}), they {rights} be published. If they may be sent "
        f"there, add --send-to {endpoint.hostname}.",
        "send_to",
    )


def name_for(model: str) -> str:
    """Derive a predictor's name from a model's name, such as llama3.2-3b from llama3.2:3b."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", model)[:64].strip("-")


def _prompts(corpus_name: str, manifest: Manifest, question: Question) -> Iterator[tuple[str, str]]:
    """Yield the id and the prompt of each item."""
    columns = ["id", TEXT, *([LANGUAGE, *manifest.fields] if manifest.fields else [])]
    for part in manifest.parts:
        with pq.ParquetFile(corpus_dir(corpus_name) / "parts" / part.name) as file:
            for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
                for row in batch.to_pylist():
                    yield row["id"], question.prompt(row)


def _check_rejects(answers: dict[str, Answer], path: Path, max_share: float) -> None:
    """Write the rejected items to a file. Raise TooManyRejected if their share is too large."""
    rejected = {key: answer for key, answer in answers.items() if not answer.label}
    lines = [
        json.dumps({"id": key, "reason": answer.reason, "answer": answer.text}, ensure_ascii=False)
        for key, answer in rejected.items()
    ]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", errors="replace")
    sync(path)
    if too_many(len(rejected), len(answers), max_share):
        raise _too_many(len(rejected), len(answers), next(iter(rejected.values())), f" All are listed in {path}.")


def _too_many(count: int, total: int, first: Answer, listed_in: str = "") -> TooManyRejected:
    quoted = f" The model answered: {first.text[:100]!r}." if first.text else ""
    return TooManyRejected(
        f"No predictor was registered, because {count:,} of {total:,} answers were rejected. The first: {first.reason}"
        f"{quoted}{listed_in} Improve the prompt, or accept the other answers with a higher --max-rejects. Answers are "
        "kept, so none is asked twice."
    )


def _asked(question: Question, ledger: Ledger, rejected: int) -> Asked:
    began, ended = ledger.times[0], ledger.times[-1]
    return Asked(
        model=question.model,
        reported=tuple(sorted(ledger.models)),
        hosts=tuple(sorted(ledger.hosts)),
        prompt=question.template,
        prompt_sha256=question.template_sha256,
        labels=question.labels,
        answer_tokens=question.answer_tokens,
        began=began,
        ended=ended,
        answers=len(ledger.answers),
        tokens=ledger.spent,
        tokens_reported=ledger.reported,
        rejected=rejected,
    )


@dataclass(frozen=True)
class _Job:
    key: str
    item: str
    prompt: str
    attempts: int = 0


Result = tuple[_Job, Reply | Exception]


@dataclass
class _Run:
    """Sends a request for each prompt that has no answer yet.

    waiting: heap of (time, number, job) for retries
    held_back: job that fits into the token limit only if pending requests cost less than their upper bounds
    busy: number of pending requests
    pause_until: time before which no request is sent
    margin: most tokens by which a request has exceeded its upper bound
    down: number of consecutive prompts without a reply
    unanswered: for each item without a reply, its job and the reason
    """

    question: Question
    endpoint: Endpoint
    limits: Limits
    ledger: Ledger
    progress: Callable[[int], object]
    jobs: "SimpleQueue[tuple[_Job, bool] | None]" = field(default_factory=SimpleQueue)
    results: "SimpleQueue[Result]" = field(default_factory=SimpleQueue)
    waiting: list[tuple[float, int, _Job]] = field(default_factory=list)
    held_back: _Job | None = None
    busy: int = 0
    numbers: Iterator[int] = field(default_factory=count)
    pause_until: float = 0
    margin: int = 0
    with_tokens: bool = True
    down: int = 0
    rejected: int = 0
    answered: int = 0
    unanswered: dict[str, tuple[_Job, str]] = field(default_factory=dict)

    def ask_all(self, prompts: Iterator[tuple[str, str]]) -> None:
        fresh = self._new_jobs(prompts)
        for _ in range(self.limits.at_once):
            threading.Thread(target=self._work, daemon=True).start()
        try:
            while self._send(fresh):
                self._receive()
        except CorpusError:
            while self.busy:  # keep the answers to pending requests, which cost tokens
                self._receive(is_last=True)
            raise
        finally:
            for _ in range(self.limits.at_once):
                self.jobs.put(None)

    def _work(self) -> None:
        while work := self.jobs.get():
            job, with_tokens = work
            try:
                self.results.put((job, self.endpoint.ask(self._request(job, with_tokens))))
            except Exception as error:  # noqa: BLE001 - the main thread handles it
                self.results.put((job, error))

    def _request(self, job: _Job, with_tokens: bool) -> dict[str, object]:
        return {
            "model": self.question.model,
            "messages": [{"role": "user", "content": job.prompt}],
            "temperature": 0,
            "max_tokens": self.question.answer_tokens,
            **({"logprobs": True} if with_tokens else {}),
        }

    def _new_jobs(self, prompts: Iterator[tuple[str, str]]) -> Iterator[_Job]:
        """Yield a job for each distinct prompt without an answer."""
        begun = set[str]()
        for item, prompt in prompts:
            key = self.question.key(prompt)
            if key in self.ledger.answers or key in begun:
                self.progress(1)
            else:
                begun.add(key)
                yield _Job(key, item, prompt)

    def _send(self, fresh: Iterator[_Job]) -> bool:
        """Send as many requests as the limits allow. Return whether any work remains."""
        while self.busy < self.limits.at_once and time.monotonic() >= self.pause_until:
            if (job := self._next(fresh)) is None:
                break
            bound = self.question.bound(job.prompt) + self.margin
            if self.ledger.spent + self.ledger.reserved + bound > self.limits.most_tokens:
                if not self.busy:
                    raise self._limit_reached(bound)
                self.held_back = job
                break
            self.ledger.reserve(job.key, bound)
            self.jobs.put((job, self.with_tokens))
            self.busy += 1
        return bool(self.busy or self.waiting or self.held_back) or time.monotonic() < self.pause_until

    def _next(self, fresh: Iterator[_Job]) -> _Job | None:
        job, self.held_back = self.held_back, None
        if job is None and self.waiting and self.waiting[0][0] <= time.monotonic():
            job = heappop(self.waiting)[2]
        return job or next(fresh, None)

    def _wait(self, job: _Job, until: float) -> None:
        heappush(self.waiting, (until, next(self.numbers), job))

    def _receive(self, *, is_last: bool = False) -> None:
        """Wait for the next result and process it. Return early once another request can be sent.

        is_last: whether the run is ending, so that no request is retried
        """
        try:
            job, result = self.results.get(timeout=None if is_last else self._timeout())
        except Empty:
            return
        self.busy -= 1
        if isinstance(result, Reply):
            self._handle_reply(job, result, is_last=is_last)
            return
        is_free = isinstance(result, NoLogProbabilities) or (isinstance(result, NoReply) and result.is_free)
        self.ledger.release(job.key, is_free=is_free)
        if isinstance(result, NoLogProbabilities):
            self.with_tokens = False
            self._wait(job, time.monotonic())
        elif isinstance(result, NoReply):
            self._handle_failure(job, result, is_last=is_last)
        elif not is_last:
            raise result

    def _timeout(self) -> float | None:
        """Return how long to wait for a result (seconds); None if no request can be sent until a result arrives."""
        now = time.monotonic()
        is_full = self.busy == self.limits.at_once or self.held_back is not None
        if self.busy and (is_full or not (self.waiting or self.pause_until > now)):
            return None
        due = self.waiting[0][0] if self.waiting and not self.held_back else 0.0
        return max(0.01, max(due, self.pause_until) - now)

    def _handle_reply(self, job: _Job, reply: Reply, *, is_last: bool) -> None:
        if reply.used is not None:
            self.margin = max(self.margin, reply.used - self.question.bound(job.prompt))
        answer = self.ledger.store(job.key, reply, self.endpoint.address.netloc)
        self.down, self.answered, self.rejected = 0, self.answered + 1, self.rejected + (not answer.label)
        if is_last:
            return
        self.progress(1)
        if self.answered >= EARLY and too_many(self.rejected, self.answered, max(0.5, self.limits.max_rejects)):
            raise _too_many(self.rejected, self.answered, answer)

    def _handle_failure(self, job: _Job, error: NoReply, *, is_last: bool) -> None:
        job, now = replace(job, attempts=job.attempts + 1), time.monotonic()
        if error.retry_after:
            self.pause_until = max(self.pause_until, now + min(error.retry_after, LONGEST_PAUSE))
        if job.attempts < ATTEMPTS and not error.is_final:
            self._wait(job, now + min(LONGEST_WAIT, BACKOFF * 2 ** (job.attempts - 1)))
            return
        self.unanswered[job.item] = (job, str(error))
        self.down += 1
        is_accepted = error.is_final and self.limits.accept_unanswered
        if self.down >= DOWN and not is_last and not is_accepted:
            does = "refuses requests" if error.is_final else "does not reply"
            raise CorpusError(
                f"The endpoint {does}: {error}. {self._describe_kept()} Check the endpoint and run the command again"
                f"{', or add --accept-unanswered to reject such items' if error.is_final else ''}."
            )

    def check_unanswered(self, total: int) -> None:
        """Raise CorpusError if there are items without a reply. If the user accepts this, reject these items instead.

        total: number of all items
        """
        if not self.unanswered:
            return
        if not self.limits.accept_unanswered or too_many(len(self.unanswered), total, self.limits.max_rejects):
            items, (_, first) = list(self.unanswered), next(iter(self.unanswered.values()))
            raise CorpusError(
                f"The endpoint did not reply about {listed(items, len(items), 'item')}. The first reason: {first}. "
                f"{self._describe_kept()} Run the command again to ask only about these. --accept-unanswered rejects "
                "them if they are not more than --max-rejects."
            )
        for job, why in self.unanswered.values():
            self.ledger.store(job.key, Reply(fault=f"No reply: {why}.", used=0), "")

    def _limit_reached(self, bound: int) -> CorpusError:
        return CorpusError(
            f"The limit of {self.limits.most_tokens:,} tokens leaves no room for the next request, which may cost "
            f"{bound:,}: {self.ledger.spent:,} are used. {self._describe_kept()} Run the command again with a higher "
            "--most-tokens to continue.",
            "most_tokens",
        )

    def _describe_kept(self) -> str:
        number = len(self.ledger.answers)
        return f"All {number:,} answers are kept." if number else "There are no answers yet."
