"""Forms of actions: the columns of an uploaded file with a guess, and the endpoint of a language model."""

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from annotate.actions.action import ActionError
from annotate.actions.registry import by_name
from annotate.manager_pages import inbox
from annotate.models import Job
from corpora.storage.layout import manifest_of
from tests.chat_server import MODEL, serving

EVALUATE = reverse("manage-do", args=["evaluate"])
IMPORT = reverse("manage-do", args=["import_predictions"])
ROWS = "Nr;Klasse;Wert\n1;de;0.9\n2;en;0.8\n3;de;0.7\n4;fr;0.6\n"


def lay(name, text=ROWS):
    path = inbox.folder() / name
    path.write_bytes(text.encode("latin-1"))
    return str(path)


def chosen(page):
    return {
        name: re.findall(r"<option selected>([^<]+)", options)
        for name, options in re.findall(r'<select name="column-(\w+)">(.*?)</select>', page)
    }


def test_a_form_offers_the_columns_of_the_chosen_file_with_a_guess_and_three_rows(desk):
    page = desk.get(EVALUATE, {"predictions": lay("mine.csv")}).text
    assert chosen(page) == {"id": ["Nr"], "label": ["Klasse"], "score": ["Wert"]}
    assert re.findall(r'<td dir="auto">([^<]+)</td>', page)[::3] == ["1", "2", "3"]
    assert 'name="column"' not in page
    assert chosen(desk.get(EVALUATE, {"predictions": "fasttext"}).text) == {}
    assert chosen(desk.get(EVALUATE, {"predictions": "/etc/passwd"}).text) == {}


def test_an_upload_with_other_names_is_asked_about_once_and_the_choice_is_what_the_job_is_given(desk, demo_corpus):
    form = {"corpus": demo_corpus.name, "name": "mine", "version": "1"}
    page = desk.post(IMPORT, form | {"upload-file": SimpleUploadedFile("mine.csv", ROWS.encode())}).text
    assert chosen(page)["id"] == ["Nr"]
    assert not Job.objects.exists()
    form |= {"file": str(inbox.folder() / "mine.csv"), "columns-of": "mine.csv"}
    desk.post(IMPORT, form | {"column-id": "Nr", "column-label": "Klasse", "column-score": ""})
    job = Job.objects.get()
    assert job.given["column"] == ["id=Nr", "label=Klasse"]
    with pytest.raises(ActionError, match="lacks 1,525 posts"):  # the file was read by these columns
        by_name()["import_predictions"].perform(job.given)
    page = desk.get(IMPORT, {"job": job.pk}).text
    assert chosen(page) == {"id": ["Nr"], "label": ["Klasse"], "score": ["Wert"]}


def test_nothing_is_asked_about_usual_names_a_file_without_names_or_a_file_that_is_no_table(desk, demo_corpus):
    form = {"corpus": demo_corpus.name, "name": "mine", "version": "1"}
    for name, text in (("usual.csv", "id,label,p\n1,de,1\n"), ("bare.tsv", "1\tde\n2\ten\n")):
        desk.post(IMPORT, form | {"file": lay(name, text)})
        assert "column" not in Job.objects.latest("pk").given
        Job.objects.all().delete()
    assert chosen(desk.get(EVALUATE, {"predictions": lay("some.prediction", "1\n")}).text) == {}


def test_another_file_brings_its_own_columns(desk, manager, new_page):
    for name, text in (("mine.csv", ROWS), ("yours.csv", "key;Sprache\n1;de\n")):
        lay(name, text)
    page = new_page(user=manager)
    page.goto(EVALUATE)
    for label, columns in (("mine.csv", ["Nr", "Klasse", "Wert"]), ("yours.csv", ["key", "Sprache", ""])):
        page.select_option("[name=predictions]", label=label)
        page.get_by_text(f"Columns of {label}").wait_for()
        assert [page.input_value(f"[name=column-{field}]") for field in ("id", "label", "score")] == columns


@pytest.mark.slow
def test_a_manager_asks_the_language_model_of_the_server_and_no_other(desk, demo_corpus, settings):
    settings.ENDPOINT_KEY = "sk-made-up"
    link = reverse("manage-do", args=["vote"])
    assert f'href="{link}?corpus=demo"' in desk.get(reverse("manage-corpus", args=["demo"])).text
    form = {"corpus": "demo", "model": MODEL, "prompt": lay("prompt.md", "{text}: {labels}?"), "labels": "de en"}
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
