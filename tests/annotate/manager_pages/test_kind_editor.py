"""The question editor: from a template to a task that takes answers."""

import re
from html import unescape
from pathlib import Path

import pytest
from django.urls import reverse

from annotate.actions.registry import by_name, call_command
from annotate.kinds import KINDS, Answer
from annotate.kinds.files import read_kind
from annotate.kinds.kind_draft import TEMPLATES
from annotate.manager_pages import inbox
from annotate.models import Job, Judgment, Task
from annotate.work import interventions
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.acts import words
from tests.annotate.hands import let_guard_pass

EDITOR = "/manage/kind/edit/"
pytestmark = pytest.mark.usefixtures("data_dir")


@pytest.fixture
def reviews(tmp_path, db):
    """Import records with one field in two languages."""
    path = tmp_path / "reviews.csv"
    rows = "".join(f"{code}{number},{code},Text {number}\n" for code in ("en", "de") for number in range(3))
    path.write_text(f"id,language,words\n{rows}")
    call_command("import_corpus", "reviews", path, fields="words", licence="CC0-1.0", verbosity=0)


def form_of(page):
    """Return the fields of the editor as a browser would send them."""
    form = page.text.partition('id="kind-editor"')[2].partition("</form>")[0]
    fields: dict[str, list[str]] = {}
    inputs = re.compile(
        r'<input[^>]*?name="(?P<input>[^"]+)"[^>]*?value="(?P<value>[^"]*)"'
        r'|<textarea[^>]*?name="(?P<area>[^"]+)"[^>]*>(?P<text>.*?)</textarea>'
        r'|<select[^>]*?name="(?P<select>[^"]+)"[^>]*>(?P<options>.*?)</select>',
        re.S,
    )
    for field in inputs.finditer(form):
        name = field["input"] or field["area"] or field["select"]
        value = field["value"] if field["input"] else field["text"]
        if field["select"]:
            selected = re.search(r'value="([^"]*)" selected', field["options"])
            value = selected[1] if selected else re.search(r'value="([^"]*)"', field["options"])[1]
        fields.setdefault(name, []).append(unescape(value))
    return fields


def do(desk, page, act, **changes):
    return desk.post(EDITOR, form_of(page) | {"do": act} | changes)


def fault(page):
    """Return the errors by their place."""
    return {place: unescape(text) for place, text in re.findall(r'id="error-([^"]*)"[^>]*>([^<]+)</p>', page.text)}


def saved(desk, page, **changes):
    response = do(desk, page, "save", **changes)
    assert response.status_code == 302, fault(response)
    return response


@pytest.mark.parametrize("name", [*TEMPLATES, "topic", "qa_match", "concepts", "better_replies"])
def test_a_template_is_saved_as_it_was_opened(desk, name):
    page = desk.get(EDITOR, {"template": name})
    assert (page.status_code, fault(page), "<iframe" in page.text) == (200, {}, True)
    saved(desk, page)
    [path] = inbox.files()
    text = path.read_text(encoding="utf-8")
    if name in TEMPLATES:
        assert text == TEMPLATES[name].read_text(encoding="utf-8")
    page = desk.get(EDITOR, {"file": path.name})
    saved(desk, page)
    assert (path.read_text(encoding="utf-8"), len(inbox.files())) == (text, 1)


def test_a_question_becomes_a_task(desk, reviews, person):
    page = desk.get(EDITOR, {"template": "sentiment", "corpus": "reviews"})
    assert form_of(page)["field"] == ["words"]
    page = do(desk, page, "add-language", **{"add-language": "de"})
    page = do(desk, page, "add-answer", **{"title-de": "Welche Stimmung?"})
    names = form_of(page)["name-en"]
    response = saved(desk, page, **{"name-en": [*names[:4], "Sarcastic"], "name-de": ["Positiv", "", "", "", ""]})
    kind = read_kind(inbox.folder() / "sentiment.toml")
    assert (kind.answers["sarcastic"].name(), kind.wording.titles["de"]) == ("Sarcastic", "Welche Stimmung?")
    assert kind.answers["positive"].names == {"en": "Positive", "de": "Positiv"}
    page = desk.get(response.url)
    hidden = dict(re.findall(r'<input type="hidden" name="(corpus|kind|design)" value="([^"]*)"', page.text))
    response = desk.post(reverse("manage-new-task"), hidden | {"name": "mood", "seed": "1", "languages": "en de"})
    assert response.status_code == 302
    by_name()["open_task"].perform(Job.objects.get().given)
    assert take(person("ann", "de"), Task.objects.get()).unit.item.language == "de"


@pytest.mark.parametrize("name", TEMPLATES)
def test_each_template_opens_a_task_and_takes_an_answer(tmp_path, data_dir, person, name):
    kind = read_kind(TEMPLATES[name])
    path = tmp_path / "rows.csv"
    rows = [[f"{field} {number}" for field in kind.fields] for number in range(3)]
    lines = [f"{number},en,{','.join(row)}\n" for number, row in enumerate(rows)]
    path.write_text(f"id,language,{','.join(kind.fields)}\n{''.join(lines)}")
    call_command("import_corpus", "rows", path, fields=" ".join(kind.fields), licence="CC0-1.0", verbosity=0)
    options = {"languages": "en"}
    if kind.form.slug == "pair":
        options = {"systems": [str(tmp_path / "ours.tsv"), str(tmp_path / "theirs.tsv")]}
        for system in options["systems"]:
            Path(system).write_text("".join(f"{prompt}\t\tA reply of {Path(system).stem}\n" for [prompt] in rows))
    call_command("open_task", "made", corpus="rows", kind=str(TEMPLATES[name]), seed="1", verbosity=0, **options)
    ann, task = person("ann", "en"), Task.objects.get()
    if kind.sensitive:
        interventions.agree(ann, "made")
    label = list(kind.answers)[-1]
    answer = f"0:4:{label}" if kind.form.slug == "spans" else label
    assert judge(ann, take(ann, task).pk, Answer(answer)).label == answer


def test_an_error_stands_beside_its_field_and_nothing_is_saved(desk, reviews):
    page = desk.get(EDITOR, {"template": "sentiment"})
    for changes, place in (
        ({"title-en": ""}, "title"),
        ({"code": ["positive", "positive", "neutral", "mixed"]}, "answer-1"),
        ({"key": ["q", "", "", ""]}, "answer-0"),
        ({"field": ["no field"]}, "field-0"),
        ({"field": ["text"]}, "field-0"),
        ({"field": [""]}, "answers"),
        ({"redundancy": "many"}, "redundancy"),
        ({"form": "labels"}, "vocabulary"),
        ({"form": "pair"}, "answers"),
        ({"slug": "a b"}, "slug"),
        ({"slug": "topic"}, "slug"),
        ({"guidelines-en": "[" * 2000}, "guidelines-en"),
        ({"corpus": "reviews"}, "field-0"),
    ):
        response = do(desk, page, "save", **changes)
        assert (response.status_code, [*fault(response)]) == (400, [place]), changes
        target = f"error-{place}" if place == "answers" else "refused"
        assert f'<a href="#{target}">' in response.text, changes
        assert response.text.count('id="refused"') == (place != "answers"), changes
    assert inbox.files() == []
    [sentence] = fault(do(desk, page, "save", redundancy="many")).values()
    assert sentence == "“Answers per item” is 'many'. It must be a number of people."


def test_the_preview_is_the_page_of_the_queue_in_its_language(desk):
    page = do(desk, desk.get(EDITOR, {"template": "qa_match"}), "preview", shown="de")
    [html] = re.findall(r'srcdoc="([^"]*)"', page.text)
    assert ("Überspringen" in unescape(html), "Antwortet" in unescape(html) or "Ja" in unescape(html)) == (True, True)
    update = desk.post(EDITOR, form_of(page) | {"do": "preview"}, headers={"HX-Request": "true"})
    assert ("<iframe" in update.text, "<h1>" in update.text) == (True, False)
    update = desk.post(EDITOR, form_of(page) | {"title-en": ""}, headers={"HX-Request": "true"})
    assert ([*fault(update)], "<iframe" in update.text) == (["title"], False)


def test_rows_are_moved_and_removed_and_a_language_goes_with_its_texts(desk):
    page = desk.get(EDITOR, {"template": "qa_match"})
    page = do(desk, page, "down-answer-0")
    assert form_of(page)["code"] == ["0", "1"]
    page = do(desk, page, "remove-answer-0")
    assert (form_of(page)["code"], [*fault(page)]) == (["1"], ["answers"])
    page = do(desk, page, "remove-language-de")
    assert ('name="title-de"' in page.text, "Passt" in form_of(page)["toml"][0]) == (False, False)
    page = do(desk, page, "add-field")
    assert form_of(page)["field"] == ["question", "passage", ""]


def test_the_text_is_edited_and_read_back_into_the_form(desk):
    page = do(desk, desk.get(EDITOR, {"template": "sentiment"}), "toml")
    text = form_of(page)["toml"][0]
    assert "name-en" not in form_of(page)
    broken = do(desk, page, "form", toml="title = [")
    assert "The file, line 1: this is not valid TOML" in words(broken)
    assert 'id="toml"' in broken.text
    page = do(desk, page, "form", toml=text.replace('"Positive"', '"Good"').replace("seconds = 10", "seconds = 11"))
    assert form_of(page)["name-en"][0] == "Good"
    response = do(desk, page, "download")
    assert "seconds = 11" in response.text
    assert response["Content-Disposition"] == 'attachment; filename="sentiment.toml"'


def test_another_file_is_not_replaced(desk):
    page = desk.get(EDITOR, {"template": "sentiment"})
    saved(desk, page)
    assert [*fault(do(desk, page, "save"))] == ["slug"]
    assert form_of(desk.get(EDITOR, {"template": "sentiment"}))["slug"] == ["sentiment_2"]
    assert desk.get(EDITOR, {"template": "no"}).status_code == 404
    assert desk.get(EDITOR, {"file": "../secret_key"}).status_code == 404


@pytest.mark.parametrize("slug", ["../beyond", "beyond/it", "/tmp/beyond"])
def test_no_file_is_written_outside_the_inbox(desk, slug):
    page = desk.get(EDITOR, {"template": "sentiment"})
    before = sorted(inbox.folder().parent.rglob("*.toml"))
    assert [*fault(do(desk, page, "save", slug=slug))] == ["slug"]
    assert [*fault(do(desk, page, "save", slug=slug, file=f"{slug}.toml"))] == ["slug"]
    assert sorted(inbox.folder().parent.rglob("*.toml")) == before


def test_a_file_that_is_not_toml_is_opened_as_text(desk):
    inbox.write("broken.toml", "title = [")
    page = desk.get(EDITOR, {"file": "broken.toml"})
    assert (form_of(page)["toml"], "line 1" in words(page)) == (["title = ["], True)


def test_the_templates_are_offered_for_records_alone(desk, demo_corpus):
    page = desk.get(EDITOR, {"corpus": demo_corpus.name})
    published = [kind for kind in KINDS.values() if kind.source and kind.answered_here]
    assert page.text.count("?template=") == len(TEMPLATES) + len(published)
    assert "your own question needs records" in words(page)


@pytest.mark.slow
def test_a_sentiment_task_with_four_answers_in_two_languages_is_made_in_the_browser(new_page, manager, reviews, person):
    page = new_page(user=manager)
    page.goto("/manage/new-task/?corpus=reviews")
    page.click("text=Your own question")
    page.click("text=Which sentiment does the text express?")
    preview = page.frame_locator("iframe")
    preview.locator(".options button", has_text="Mixed").wait_for()
    page.select_option("#add-language", "de")
    page.click("button[value=add-language]")
    page.fill("[name=title-de]", "Welche Stimmung drückt der Text aus?")
    for row, name in enumerate(("Positiv", "Negativ", "Neutral", "Gemischt")):
        page.locator("[name=name-de]").nth(row).fill(name)
    page.select_option("[name=shown]", "de")
    preview.locator(".options button", has_text="Gemischt").wait_for()
    # An error is next to its field, and the last preview stays.
    page.locator("[name=code]").nth(1).fill("positive")
    page.locator("#error-answer-1", has_text="two answers have the code positive").wait_for()
    assert preview.locator(".options button").count() == 4
    page.locator("[name=code]").nth(1).fill("negative")
    page.locator("#error-answer-1", has_not_text="two answers").wait_for(state="hidden")
    page.click("button[value=save]")
    page.wait_for_url("**/manage/new-task/**")
    names = [answer.names for answer in read_kind(inbox.folder() / "sentiment.toml").answers.values()]
    assert [texts["de"] for texts in names] == ["Positiv", "Negativ", "Neutral", "Gemischt"]
    page.fill("[name=languages]", "en de")
    page.click("main button.primary")
    page.wait_for_url("**/manage/jobs/**")
    by_name()["open_task"].perform(Job.objects.get().given)
    ann = new_page(user=person("ann", "de").user, locale="de")
    ann.goto(reverse("queue", args=[Task.objects.get().name]))
    ann.click("main button.primary")
    ann.wait_for_selector("#post")
    let_guard_pass(ann)
    ann.locator(".options button", has_text="Gemischt").click()
    ann.locator(".last", has_text="Gemischt").wait_for()
    assert Judgment.objects.get().label == "mixed"


def test_the_preview_shows_an_item_of_the_corpus_if_there_is_one_and_an_example_otherwise(desk, reviews):
    assert "The battery lasts two days" in desk.get(EDITOR, {"template": "sentiment"}).text
    page = desk.get(EDITOR, {"template": "sentiment", "corpus": "reviews"})
    assert "Text 0" in page.text
    assert "The battery lasts two days" not in page.text


@pytest.mark.parametrize("name", ["marked_words", "ner"])
def test_words_are_marked_in_the_field_that_the_corpus_has(desk, reviews, name):
    page = desk.get(EDITOR, {"template": name, "corpus": "reviews"})
    assert fault(page) == {}
    saved(desk, page)
    [path] = inbox.files()
    assert read_kind(path).fields == ("words",)
    assert 'field = "words"' in path.read_text(encoding="utf-8")


def test_two_people_and_an_adjudicator_are_chosen_in_the_form(desk, reviews):
    page = desk.get(EDITOR, {"template": "sentiment", "corpus": "reviews"})
    refused = fault(do(desk, page, "save", redundancy="2"))["redundancy"]
    assert "send conflicts to an adjudicator with “On conflict”" in refused
    saved(desk, page, redundancy="2", on_conflict="ADJUDICATION")
    kind = read_kind(inbox.folder() / "sentiment.toml")
    assert (kind.defaults["redundancy"], kind.defaults["on_conflict"]) == (2, "ADJUDICATION")
