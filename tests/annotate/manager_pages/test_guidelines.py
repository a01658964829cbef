"""Guidelines in the browser: previews and new versions, minor or major, which never replace an older version."""

import pytest
from django.contrib.admin.models import LogEntry

from annotate.controls.qualification import grant
from annotate.models import Guidelines
from annotate.quality.guideline_versions import current, new_version
from tests.annotate.acts import state, words
from tests.annotate.pages.test_item_view import SAYS, WIDE

GOLD = {"practice": ["1"], "test": ["1", "0"] * 2}
PAGE = "/manage/tasks/crowd/guidelines/"


@pytest.fixture
def task(make_records_task):
    return make_records_task(gold=GOLD, test_items=2, pass_mark=0.5, tries=2)


def add(desk, task, follow=True, **fields):
    sent = {"language": "en", "text": "Read better.", "change": "minor", "after": current(task, "en").pk, **fields}
    return desk.post(f"{PAGE}add/", sent, follow=follow)


def typed(page):
    """Return the content of the form's text field."""
    return page.text.split("<textarea")[1].split(">", 1)[1].split("</textarea")[0]


def test_each_language_of_a_task_has_its_own_version_which_begins_with_the_one_that_holds(
    make_records_task, make_task, desk
):
    task = make_records_task(languages=("de", "en"))
    page = words(desk.get(PAGE, {"language": "de"}))
    assert "There are no guidelines in German yet. This draft starts from the guidelines in use." in page
    add(desk, task, language="de", text="Lesen.", after=current(task, "de").pk)
    new_version(task, "en", "Read *twice*.", major=False)
    assert typed(desk.get(PAGE, {"language": "de"})) == "Lesen."
    for language in ("", "fr", "xx", "<b>"):
        page = desk.get(PAGE, {"language": language})
        assert (typed(page), "<em>twice</em>" in page.text) == ("Read *twice*.", True)
    assert "This draft starts from the current version 1.1." in words(page)
    # If labels are languages, the guidelines may be in any language.
    make_task([("de",) * 3], name="labels")
    of_labels = PAGE.replace("crowd", "labels")
    for language, name in (("uk", "Ukrainian"), ("xx", "English")):
        assert f"New version in {name}" in words(desk.get(of_labels, {"language": language}))


def test_a_minor_and_a_major_version(desk, task, person, manager):
    ann = person("ann", "en")
    grant(ann, task, "en", by=manager)
    assert "Version 1.1 is now in effect in English." in words(add(desk, task))
    assert state(ann, task, "en").step == "passed"
    page = words(add(desk, task, change="major", text="Otherwise."))
    assert "1 annotator who had passed must take the test again before continuing." in page
    assert state(ann, task, "en").step == "read"
    assert list(Guidelines.objects.values_list("major", "minor", "text")) == [
        *((2, 0, "Otherwise."), (1, 1, "Read better."), (1, 0, "Read.")),
    ]
    assert [entry.object_repr for entry in LogEntry.objects.all()] == ["crowd en 2.0", "crowd en 1.1"]
    assert "2.0 yes" in page
    assert "1.0 no" in page


def test_what_a_major_version_means_is_said_as_it_is_for_the_task(desk, task, make_records_task):
    assert "take the test again before they continue" in words(desk.get(PAGE))
    make_records_task(name="untested")
    untested = words(desk.get("/manage/tasks/untested/guidelines/"))
    assert "The task has no test, so annotators continue." in untested


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"language": "fr"}, "This task has no records in 'fr'"),
        ({"text": " "}, "The guidelines are empty."),
        ({"change": ""}, "Choose the kind of change."),
        *(({"text": text}, f"The guidelines {fault}") for text, fault in SAYS.items()),
    ],
    ids=["a language without records", "no text", "no kind", "a wide table", "open brackets", "a long text"],
)
def test_a_version_that_cannot_be_is_refused_and_what_was_typed_stays(desk, task, fields, sentence):
    page = add(desk, task, **fields)
    assert page.status_code in (400, 404)
    assert sentence in words(page)
    assert typed(page).strip() == fields.get("text", "Read better.").strip()
    assert Guidelines.objects.count() == 1


def test_of_two_who_write_at_once_the_second_is_told_and_loses_nothing(desk, task):
    began = current(task, "en").pk
    assert "Version 1.1 is now in effect" in words(add(desk, task, text="Mine.", after=began))
    # Neither a preview nor another refusal hides that the text is based on an earlier version.
    previewed = desk.post(f"{PAGE}preview/", {"language": "en", "text": "Theirs.", "after": began})
    for shown in (previewed, add(desk, task, text="Theirs.", after=began, change="")):
        assert f'name="after" value="{began}"' in shown.text
    page = add(desk, task, text="Theirs.", after=began)
    assert page.status_code == 409
    assert "Version 1.1 was added in the meantime" in words(page)
    assert typed(page) == "Theirs."
    assert current(task, "en").text == "Mine."
    again = add(desk, task, text="Theirs.", after=page.text.split('name="after" value="')[1].split('"')[0])
    assert "Version 1.2 is now in effect" in words(again)


def test_the_preview_shows_what_annotators_will_see_and_runs_nothing(desk, task):
    def preview(text, **fields):
        headers = {} if fields else {"HX-Request": "true"}
        return desk.post(f"{PAGE}preview/", {"language": "en", "text": text} | fields, headers=headers)

    text = "# Look\n\n<script>alert(1)</script> **well**"
    fragment = preview(text).text
    assert ["<h1>Look</h1>" in fragment, "<script>" in fragment, "<html" in fragment] == [True, False, False]
    whole = preview(text, change="major")
    assert "<strong>well</strong>" in whole.text
    assert typed(whole).startswith("# Look")
    assert 'value="major" checked' in whole.text
    unreadable = preview(WIDE)
    assert "The guidelines have a table with more than 50 columns in line 2" in words(unreadable)
    assert len(unreadable.content) < 1000
    assert Guidelines.objects.count() == 1


@pytest.mark.slow
def test_the_preview_follows_what_is_typed(new_page, manager, task):
    page = new_page(user=manager)
    page.goto(PAGE)
    page.fill("#text", "Read it **aloud**.")
    # Like a key press, which htmx listens to.
    page.type("#text", "!")
    page.wait_for_selector("#preview strong >> text=aloud")
    page.check("[value=minor]")
    page.click("text=Add this version")
    assert "aloud" in current(task, "en").text


@pytest.mark.slow
def test_without_a_script_the_preview_has_a_button(new_page, manager, task):
    page = new_page(user=manager, java_script_enabled=False)
    page.goto(PAGE)
    page.fill("#text", "Read it **aloud**.")
    page.click("button >> text=Preview")
    assert page.inner_text("#preview strong") == "aloud"
    assert page.input_value("#text") == "Read it **aloud**."
