"""An OpenAI-compatible endpoint on loopback, which answers as a test tells it to."""

import json
import threading
import time
from collections import Counter
from contextlib import contextmanager

from tests import together

MODEL = "fake-1b"
NOT_JSON, EMPTY, OUTSIDE, PROSE = "not JSON", "empty choices", "outside of the set", "in prose"
MALFORMED = (NOT_JSON, EMPTY, OUTSIDE, PROSE)


class Status(Exception):
    """Raised by an `answer` function to reply with an error."""

    def __init__(self, status, body=None, **headers):
        self.status, self.headers = status, {name.replace("_", "-"): str(value) for name, value in headers.items()}
        self.body = body if body is not None else {"error": {"message": f"made-up error {status}"}}


class ChatServer:
    """The endpoint.

    answer: function that returns the text for a prompt and the number of its attempt, one of MALFORMED, a list of
        (token, log-probability) pairs, or raises Status
    asked: the prompts in the order of the requests; answered: those whose reply was sent whole
    used: the number of tokens of all requests that were processed, whether or not their reply arrived
    """

    def __init__(self, answer):
        self.answer, self.asked, self.answered, self.bodies, self.headers, self.used = answer, [], [], [], [], 0
        self.most_at_once = self.now = 0
        self.lock = threading.Lock()

    def attempt(self, body, headers):
        prompt = body["messages"][-1]["content"]
        with self.lock:
            self.asked.append(prompt)
            self.bodies.append(body)
            self.headers.append(headers)
            self.now += 1
            self.most_at_once = max(self.most_at_once, self.now)
            return prompt, self.asked.count(prompt)

    def reply(self, prompt, number):
        """Return the status, the headers and the bytes of a reply."""
        try:
            text = self.answer(prompt, number)
        except Status as error:
            body = error.body if isinstance(error.body, str) else json.dumps(error.body)
            return error.status, error.headers, body.encode()
        usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": 2}
        usage["total_tokens"] = sum(usage.values())
        with self.lock:
            self.used += usage["total_tokens"]
        return 200, {}, _body(text, usage)

    def done(self, prompt, *, sent):
        with self.lock:
            self.now -= 1
            if sent:
                self.answered.append(prompt)

    @property
    def times(self):
        return Counter(self.asked)


def _body(text, usage):
    if text == NOT_JSON:
        return b"<html>Bad gateway</html>"
    choice = {"index": 0, "finish_reason": "stop", "logprobs": None}
    if isinstance(text, list):
        choice["logprobs"] = {"content": [{"token": token, "logprob": value} for token, value in text]}
        text = "".join(token for token, _ in text)
    text = {OUTSIDE: "Klingon", PROSE: "I would say that this is de, but it could be en."}.get(text, text)
    choices = [] if text == EMPTY else [choice | {"message": {"role": "assistant", "content": text}}]
    return json.dumps({"model": f"{MODEL}-0613", "choices": choices, "usage": usage}).encode()


@contextmanager
def serving(answer):
    """Run a server and yield it with its base URL."""
    server = ChatServer(answer)

    class Handler(together.Handler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompt, number = server.attempt(body, dict(self.headers))
            sent = False
            try:
                status, headers, content = server.reply(prompt, number)
                self.reply(status, headers, content)
                sent = status == 200
            except OSError:
                pass  # the client has gone
            finally:
                server.done(prompt, sent=sent)

    with together.listening(Handler) as port:
        server.url = f"http://127.0.0.1:{port}/v1"
        yield server


def slow(seconds):
    time.sleep(seconds)
