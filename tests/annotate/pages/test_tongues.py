"""Interface languages: their catalogs, which one a person gets, and the words of a kind in each."""

import re

import polib
import pytest
from django.conf import settings
from django.core import mail
from django.test import Client
from django.utils.translation import get_language, ngettext, override

from annotate.figures.personal_progress import why_empty
from annotate.kinds import KINDS, Answer
from annotate.kinds.interface_language import label_name
from annotate.kinds.kind import Named
from annotate.management.commands import write_catalogs as catalogs
from annotate.models import Task
from annotate.work.judgments import judge
from annotate.work.permit import permit_of
from annotate.work.queue import take
from corpora.core.languages import LANGUAGES
from tests.annotate.acts import signed_in

GERMAN, ARABIC = {"Accept-Language": "de-AT,de;q=0.9,en;q=0.5"}, {"Accept-Language": "ar"}


def frame(page: str) -> tuple[str, str]:
    """Return the language of a page and its direction."""
    return re.search(r'<html lang="([^"]*)" dir="([^"]*)">', page).groups()


# --- catalogs


@pytest.fixture(scope="module")
def catalog():
    return {code: polib.pofile(str(catalogs.folder(code) / "django.po")) for code in catalogs.languages()}


@pytest.fixture(scope="module")
def sentences():
    return catalogs.messages().keys()


def test_there_is_a_catalog_of_every_language_but_english(catalog):
    assert list(catalog) == [code for code, _name in settings.LANGUAGES if code != "en"]
    assert sorted(path.name for path in catalogs.LOCALE.iterdir()) == sorted(catalog)


def gaps(text: str) -> set[str]:
    """Return the placeholders that code fills in, and the marks around words."""
    return set(re.findall(r"%\(\w+\)s|\{\w+\}|<[^>]*>", text))


FIRST, *OTHERS = catalogs.languages()


@pytest.mark.parametrize("code", [FIRST, *(pytest.param(code, marks=pytest.mark.slow) for code in OTHERS)])
def test_a_catalog_is_complete_compiled_and_keeps_the_gaps_and_marks_of_each_sentence(catalog, sentences, code):
    entries = catalog[code]
    assert {catalogs.Message(entry.msgctxt or "", entry.msgid, entry.msgid_plural) for entry in entries} == sentences
    assert [entry.msgid for entry in entries if not entry.translated() or entry.fuzzy] == []
    assert (catalogs.folder(code) / "django.mo").read_bytes() == entries.to_binary()
    for entry in entries:
        if entry.msgid_plural:
            # A plural form for one number alone may spell it out.
            assert all(gaps(form) <= gaps(entry.msgid_plural) for form in entry.msgstr_plural.values()), entry.msgid
            assert gaps(entry.msgstr_plural[max(entry.msgstr_plural)]) == gaps(entry.msgid_plural), entry.msgid
        else:
            assert gaps(entry.msgstr) == gaps(entry.msgid), entry.msgid
        for form in (entry.msgstr, *entry.msgstr_plural.values()):
            assert not re.search(r'["<>&]', re.sub(r"<[^>]*>", "", form)), form
    with override(code):
        names = [label_name(language) for language in LANGUAGES]
    assert len(set(names)) == len(names)


def test_arabic_counts_in_its_six_forms():
    with override("ar"):
        forms = [ngettext("%(number)s answer saved.", "%(number)s answers saved.", n) for n in (0, 1, 2, 3, 11, 100)]
    assert len(set(forms)) == 5
    assert forms[2] == "حُفظت إجابتان."


# --- who is shown which


@pytest.mark.django_db
def test_pages_speak_the_language_of_the_browser_from_the_side_on_which_it_begins():
    shown = {code: Client().get("/login/", headers={"Accept-Language": code}) for code in ("en", "de-CH", "he", "pl")}
    assert {code: frame(page.text) for code, page in shown.items()} == {
        "en": ("en", "ltr"),
        "de-CH": ("de", "ltr"),
        "he": ("he", "rtl"),
        "pl": ("en", "ltr"),
    }
    assert "<h1>Anmelden</h1>" in shown["de-CH"].text
    assert (shown["he"]["Content-Language"], "Accept-Language" in shown["he"]["Vary"]) == ("he", True)
    assert get_language() == settings.LANGUAGE_CODE


@pytest.mark.django_db
def test_who_is_not_logged_in_chooses_a_language_by_a_button_without_a_script(page, live_server):
    page.goto(f"{live_server.url}/login/?next=/account/")
    page.select_option("#tongue", "ar")
    page.click(".tongues button")
    assert page.url == f"{live_server.url}/login/?next=/account/"
    assert page.evaluate("[document.documentElement.lang, document.documentElement.dir]") == ["ar", "rtl"]
    assert page.inner_text("h1") == "تسجيل الدخول"
    page.goto(f"{live_server.url}/forgotten/")
    assert page.inner_text("h1") == "هل نسيت كلمة المرور؟"


def test_a_language_is_not_chosen_by_an_address_nor_leads_to_another_site():
    assert Client().get("/language/?language=de").status_code == 405
    led = Client().post("/language/", {"language": "de", "next": "https://example.org/"})
    assert led.url == "/"


def test_a_link_for_a_new_password_comes_in_the_language_in_which_it_was_asked_for(person, settings, monkeypatch):
    settings.MAIL = True
    user = person("ann").user
    user.email = "ann@example.org"
    user.save()
    monkeypatch.setattr("annotate.pages.account.Thread.start", lambda thread: thread.run())
    Client().post("/forgotten/", {"email": "ann"}, headers=GERMAN)
    [sent] = mail.outbox
    assert sent.subject == "Ein neues Passwort für Assay"
    assert "Jemand hat um ein neues Passwort für das Konto ann auf" in sent.body


def test_operations_answer_in_the_language_of_the_page_and_store_the_same_in_all(make_task, ann):
    task = make_task([("de en", "en de", "de")], redundancy=1)
    with override("ar"):
        judge(ann, take(ann, task).pk, Answer("und", "mixed"))
    [judgment] = ann.judgments.all()
    assert (judgment.label, judgment.reason) == ("und", "mixed")
    assert Task.objects.get().title == "Which language?"
    with override("fr"):
        empty = permit_of(ann, make_task([], name="empty"))
        assert why_empty(empty) == "Tout est fait. Tout a été lu dans cette tâche."


# --- what a kind says, and the language of what is read


def test_an_answer_is_named_in_the_language_of_the_page_then_of_the_record_then_in_english():
    named = Named({"en": "Fits", "de": "Passt", "hr": "Odgovara"}, {"en": "well"})
    assert [named.name(), named.name("hr"), named.name("fr")] == ["Fits", "Odgovara", "Fits"]
    with override("de"):
        assert [named.name(), named.name("hr"), named.means("hr")] == ["Passt", "Passt", "well"]
    with override("he"):
        assert [named.name(), named.name("hr")] == ["Fits", "Odgovara"]


@pytest.mark.parametrize("slug", [slug for slug, kind in KINDS.items() if kind.layout])
def test_shipped_kinds_speak_every_language_of_the_pages(slug):
    kind, tongues = KINDS[slug], {code for code, _name in settings.LANGUAGES}
    assert set(kind.wording.titles) == tongues
    assert set(kind.wording.field_names) == set(kind.fields)
    translations = [*kind.wording.field_names.values(), *(answer.names for answer in kind.answers.values())]
    translations += [answer.meanings for answer in kind.answers.values() if answer.meanings]
    translations += [kind.sensitive.warnings] if kind.sensitive else []
    assert all(tongues <= set(words) for words in translations)


def test_the_page_of_a_record_speaks_one_language_and_the_record_another(make_records_task, person):
    task, ann = make_records_task("qa_match", 1, languages=("fr",)), person("ann", "fr")
    take(ann, task)
    page = signed_in(ann, headers=ARABIC).get("/tasks/crowd/").text
    assert frame(page) == ("ar", "rtl")
    assert "هل يجيب المقطع عن السؤال؟" in page
    assert '<dt>السؤال</dt><dd lang="fr"><p dir="auto">the question of fr-1</p></dd>' in page
    assert "<b>نعم</b>" in page


def test_a_title_that_a_manager_typed_stays_as_it_is(make_task, make_records_task):
    standard, typed = make_task([], name="own", title="Which language is this post in?"), make_task([], name="typed")
    german = make_task([], name="asked", asked="de", title="Is this post in German?")
    ads = make_records_task("ad_relevance", 1, title="Ads of July")
    with override("de"):
        titles = [task.kind.titled(task) for task in (standard, typed, german, ads)]
        own_words, asked_words = "In welcher Sprache ist dieser Beitrag?", "Ist dieser Beitrag auf Deutsch?"
        assert titles == [own_words, "Which language?", asked_words, "Ads of July"]
        assert ads.kind.question(ads) == "Passt die Anzeige zur Suchanfrage?"


# --- texts that are in another language than the page


@pytest.mark.slow
def test_english_guidelines_and_questions_run_from_the_left_on_a_page_that_runs_from_the_right(
    new_page, make_records_task, person
):
    make_records_task("qa_match", 2, languages=["en"], title="Answered?")
    page = new_page(user=person("ann", "en").user, extra_http_headers=ARABIC)
    page.goto("/tasks/crowd/")
    page.click("button[data-key=Enter]")
    page.wait_for_selector("#post")
    assert page.evaluate("document.documentElement.dir") == "rtl"
    page.click("#guidelines > summary")
    shown = page.locator("#guidelines-text").evaluate("box => [box.lang, getComputedStyle(box).direction]")
    assert shown == ["en", "ltr"]
    assert page.locator("#asked bdi").count() == 1
    page.goto("/tasks/crowd/guidelines/")
    assert page.locator(".prose > [lang=en]").evaluate("box => getComputedStyle(box).direction") == "ltr"


@pytest.mark.slow
def test_on_paper_a_page_that_runs_from_the_right_has_nothing_beside_it(new_page, make_task, person):
    make_task([])
    page = new_page(user=person("ann", "de").user, extra_http_headers=ARABIC)
    page.goto("/tasks/task/guidelines/")
    boxes = page.locator("body *").evaluate_all("all => all.map(each => each.getBoundingClientRect().toJSON())")
    width = page.evaluate("innerWidth")
    assert [box for box in boxes if box["left"] < 0 or box["right"] > width] == []
    page.emulate_media(media="print")
    assert page.locator(".top").is_hidden()
