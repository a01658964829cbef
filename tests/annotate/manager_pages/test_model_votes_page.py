"""A language model that is asked from the pages."""

import pytest
from django.urls import reverse

from annotate.actions.registry import by_name
from annotate.manager_pages import inbox
from annotate.models import Job
from corpora.storage.layout import manifest_of
from tests.chat_server import MODEL, serving

pytestmark = pytest.mark.django_db


@pytest.mark.slow
def test_a_manager_asks_the_endpoint_of_the_server_and_no_other(desk, demo_corpus, settings):
    settings.ENDPOINT_KEY = "sk-made-up"
    prompt = inbox.folder() / "prompt.md"
    prompt.write_text("{text}: {labels}?")
    link = reverse("manage-do", args=["vote"])
    assert f'href="{link}?corpus=demo"' in desk.get(reverse("manage-corpus", args=["demo"])).text
    form = {"corpus": "demo", "model": MODEL, "prompt": str(prompt), "labels": "de en"}
    settings.ENDPOINT = "https://api.example.org/v1"
    refused = desk.post(link, form)
    assert refused.status_code == 400
    assert "add “Host that may receive the texts” api.example.org" in " ".join(refused.text.split())
    with serving(lambda prompt, attempt: "de") as server:
        settings.ENDPOINT = server.url
        assert desk.post(link, form | {"endpoint": "https://evil.example/v1"}).status_code == 302
        job = Job.objects.get()
        assert job.given == form
        outcome = by_name()["vote"].perform(job.given)
    assert outcome.data["posts"] == manifest_of("demo").rows == 1525
    assert {headers["Authorization"] for headers in server.headers} == {"Bearer sk-made-up"}
