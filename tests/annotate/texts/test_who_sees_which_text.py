"""Nobody but an adjudicator reads what others answered, whatever page or address of the API they open.

Reviewers see the text that they review. The writer never learns what became of it while the task is open.
"""

import pytest
from django.test import Client
from django.urls import NoReverseMatch, URLPattern, get_resolver, reverse

from annotate.kinds import Answer
from annotate.kinds.forms.free_text import REJECTED
from annotate.models import Judgment, Lease, Task, Unit
from annotate.work.adjudication import settle
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.acts import say, signed_in
from tests.annotate.programs import Program

pytestmark = pytest.mark.django_db

# No word of one text occurs in another one.
WRITTEN, CORRECTED, DECIDED = "Quartz lanterns hummed?", "Velvet compasses drift?", "Marble otters whistle?"
TEXTS = {"written": "Quartz", "corrected": "Velvet", "decided": "Marble", "rejected": "Rejected"}


def named(patterns, prefix=""):
    """Yield the names of all addresses with the names of their parameters."""
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            if pattern.name:
                yield prefix + pattern.name, set(pattern.pattern.converters)
        else:
            inside = f"{prefix}{pattern.namespace}:" if pattern.namespace else prefix
            for name, parameters in named(pattern.url_patterns, inside):
                yield name, parameters | set(pattern.pattern.converters)


def addresses():
    """Return all addresses whose parameters name the task, or something in it."""
    values = {
        "task": list(Task.objects.values_list("name", flat=True)),
        "unit": list(Unit.objects.values_list("pk", flat=True)),
        "judgment": list(Judgment.objects.values_list("pk", flat=True)),
        "lease": list(Lease.objects.values_list("pk", flat=True)),
        "language": ["en"],
        "annotator": [],
    }
    urls = set()
    for name, parameters in named(get_resolver().url_patterns):
        choices = [{}]
        for parameter in parameters:
            choices = [chosen | {parameter: value} for chosen in choices for value in values.get(parameter, [])]
        for chosen in choices:
            try:
                urls.add(reverse(name, kwargs=chosen))
            except NoReverseMatch:
                continue
    return sorted(urls)


class Reader:
    """A person who opens everything that they can open, as a page, as htmx does, and through the API."""

    def __init__(self, annotator):
        self.client = signed_in(annotator)
        self.program = Program(Client(), annotator)

    def sees(self):
        """Return which of the texts are in any response to a GET."""
        bodies = []
        for address in addresses():
            if "/docs" in address or address.startswith(("/admin", "/api/v1/schema")):
                continue
            for client, headers in ((self.client, {}), (self.client, {"HX-Request": "true"})):
                bodies.append(body(client.get(address, headers=headers)))
            if address.startswith("/api/"):
                bodies.append(body(self.program.client.get(address, headers=self.program.headers)))
        bodies += [body(self.client.get(f"/answers/?q={word}&differs=&said=answered")) for word in TEXTS.values()]
        together = "\n".join(bodies).replace("&lt;", "<").replace("&gt;", ">")
        return {name for name, word in TEXTS.items() if word in together}


def body(response):
    return b"".join(response.streaming_content).decode(errors="replace") if response.streaming else response.text


@pytest.mark.slow
def test_each_person_sees_only_the_text_that_they_write_or_review(opened, person, ada):
    task = opened(size="1")
    wim, ria, rob, roy = (person(name, "en") for name in ("wim", "ria", "rob", "roy"))
    guest, readers = person("jan", "ja"), {}
    for annotator in (wim, ria, rob, roy, guest, ada):
        readers[annotator] = Reader(annotator)

    def check(**expected):
        seen = {annotator.user.username: reader.sees() for annotator, reader in readers.items()}
        assert seen == {"jan": set(), "roy": set(), "ada": set()} | expected

    say(wim, task, WRITTEN)
    check(wim={"written"}, ria=set(), rob=set())
    lease = take(ria, task)
    check(wim={"written"}, ria={"written"}, rob=set())
    judge(ria, lease.pk, Answer(CORRECTED))
    take(rob, task)
    check(wim={"written"}, ria={"written", "corrected"}, rob={"written"})
    say(rob, task, REJECTED)
    unit = task.units.get()
    of_reviewers = {"ria": {"written", "corrected"}, "rob": {"written", "rejected"}}
    check(wim={"written"}, **of_reviewers, ada={"written", "corrected", "rejected"})
    settle(ada, unit.pk, Answer(DECIDED, reason="Mine"))
    check(wim={"written"}, **of_reviewers, ada={*TEXTS})


def test_the_writer_sees_the_same_page_whatever_reviewers_answer(opened, person):
    """Answers, changes and undo reveal nothing: the page of the writer's answers is the same byte for byte."""
    task = opened(size="1")
    wim, ria, rob = (person(name, "en") for name in ("wim", "ria", "rob"))
    say(wim, task, WRITTEN)
    client = signed_in(wim)
    [judgment] = Judgment.objects.values_list("pk", flat=True)
    watched = [reverse("answers", args=[task.name]), reverse("change", args=[task.name, judgment])]

    def pages():
        return [client.get(address).text.partition("<main")[2] for address in watched]

    before = pages()
    for reviewer, text in ((ria, CORRECTED), (rob, REJECTED)):
        say(reviewer, task, text)
        assert [page.replace(token(page), "") for page in pages()] == [page.replace(token(page), "") for page in before]


def token(page):
    return page.partition('csrfmiddlewaretoken" value="')[2].partition('"')[0] or "no token"


def test_managers_read_every_page_of_the_task_with_what_reviewers_answered(opened, person, desk):
    task = opened(size="1")
    for name, text in (("wim", WRITTEN), ("ria", CORRECTED), ("rob", REJECTED)):
        say(person(name, "en"), task, text)
    pages = [
        f"/manage/tasks/questions/{page}" for page in ("", "items/", "people/", "quality/", "agreement/", "settings/")
    ]
    bodies = {page: desk.get(page) for page in pages}
    assert {page: response.status_code for page, response in bodies.items()} == dict.fromkeys(pages, 200)
    assert "Review of the texts" in bodies["/manage/tasks/questions/quality/"].text
    [unit] = task.units.values_list("pk", flat=True)
    item = desk.get(reverse("manage-item", args=["questions", unit])).text
    assert all(text in item for text in (WRITTEN, CORRECTED, "Rejected"))
