"""Every page in every language: what stays English, and that every sentence is translated."""

import re
from html.parser import HTMLParser

import polib
import pytest
from django.conf import settings
from django.conf.locale import LANG_INFO
from knox.models import AuthToken

from annotate.kinds.language_questions import SEARCHES
from annotate.management.commands import write_catalogs as catalogs
from annotate.models import Flag, Guidelines, Judgment, Note, Task
from corpora.core.languages import LANGUAGES
from corpora.models import Item
from tests.annotate.access.addresses import PAGES
from tests.annotate.browser.test_for_everybody import NO_PAGES
from tests.annotate.pages.test_tongues import GERMAN, frame

pytestmark = [pytest.mark.on_sqlite, pytest.mark.slow]


def test_managers_programs_and_readers_of_the_documentation_are_told_in_english(world):
    managers = [name for name, (fetched, _) in PAGES.items() if name.startswith("manage") and fetched[-1] == 200]
    for name in (*managers, "docs", "docs-page", "admin:index"):
        page = world.client("manager", headers=GERMAN).get(world.address(name))
        assert (page.status_code, page["Content-Language"]) == (200, "en"), name
        assert name in NO_PAGES or 'lang="en' in page.text[:300], name
        page.getvalue()  # which closes those that are files
    refusal = world.client("guest", headers=GERMAN).get("/api/v1/tasks/").json()
    assert refusal == {"code": "not_allowed", "detail": "You are not an annotator. The manager can make you one."}
    nothing = world.client("ann", headers=GERMAN).post(
        "/api/v1/leases/999999/skip/", {}, content_type="application/json"
    )
    assert nothing.json()["detail"] == "You do not have this item."


def test_errors_and_refusals_are_pages_in_the_language_of_the_person(world, monkeypatch):
    ann = world.client("ann", headers=GERMAN, raise_request_exception=False)
    assert "Seite nicht gefunden" in ann.get("/nothing/").text
    refused = world.client("guest", headers=GERMAN).get(world.address("queue"))
    assert "Ihr Konto ist nicht zum Annotieren eingerichtet." in refused.text
    monkeypatch.setattr("annotate.pages.annotators.progress_of", None)
    broken = ann.get(world.address("queue"))
    assert (broken.status_code, "Hier ist etwas schiefgegangen." in broken.text) == (500, True)
    assert frame(broken.text) == ("de", "ltr")


# --- in an invented language each sentence is in brackets

INVENTED = "ht"


@pytest.fixture
def invented(tmp_path, settings, monkeypatch):
    """A language whose translations are the English sentences in brackets."""
    folder = tmp_path / INVENTED / "LC_MESSAGES"
    folder.mkdir(parents=True)
    catalog = polib.POFile()
    catalog.metadata = {"Content-Type": "text/plain; charset=UTF-8", "Plural-Forms": "nplurals=2; plural=(n != 1);"}
    for message in catalogs.messages():
        if message.context:
            continue
        forms = {0: f"⟦{message.words}⟧", 1: f"⟦{message.plural}⟧"} if message.plural else {}
        words = "" if forms else f"⟦{message.words}⟧"
        catalog.append(
            polib.POEntry(msgid=message.words, msgid_plural=message.plural, msgstr=words, msgstr_plural=forms)
        )
    catalog.save_as_mofile(str(folder / "django.mo"))
    settings.LANGUAGES = [*settings.LANGUAGES, (INVENTED, "Invented")]
    settings.LOCALE_PATHS = [str(tmp_path)]
    monkeypatch.setitem(LANG_INFO, INVENTED, LANG_INFO["en"] | {"code": INVENTED})
    return {"Accept-Language": INVENTED}


class Text(HTMLParser):
    """The words that a page shows or that screen readers read out."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found, self.hidden = "", 0
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.hidden += tag in ("script", "style", "head")
        spoken = [value for name, value in attrs if name in ("aria-label", "placeholder", "title", "alt") and value]
        self.found += "".join(f" {value} " for value in spoken)

    def handle_endtag(self, tag):
        self.hidden -= tag in ("script", "style", "head")
        self.found += "" if tag in ("kbd", "code", "a") else "\n"

    def handle_data(self, data):
        self.found += "" if self.hidden else data


def outside(text: str) -> list[str]:
    """Return the words outside brackets."""
    depth, left = 0, ""
    for letter in text:
        depth += (letter == "⟦") - (letter == "⟧")
        left += " " if depth or letter == "⟧" else letter
    assert depth == 0
    return re.findall(r"[^\W\d_]{2,}", left.casefold())


def of_data(people) -> set[str]:
    """Return words from data: texts, people, tasks, guidelines, kinds, languages and web addresses."""
    texts = ["Assay", "Token", "langid", "cld", "fasttext", "pk", *people, *(name for name, _address in SEARCHES)]
    for task in Task.objects.all():
        kind = task.kind
        texts += [task.title, task.name, kind.title, *kind.fields, *task.labels, *task.languages]
        # If a kind has no words in the interface language, the record's language comes first.
        wordings = [*kind.wording.field_names.values()]
        wordings += [words for answer in kind.answers.values() for words in (answer.names, answer.meanings)]
        texts += [text for words in wordings for text in words.values()]
        texts += kind.sensitive.warnings.values() if kind.sensitive else []
    texts += Guidelines.objects.values_list("text", flat=True)
    texts += Note.objects.values_list("text", flat=True)
    texts += [f"{words} {reply}" for words, reply in Flag.objects.values_list("words", "reply")]
    texts += [f"{text} {fields}" for text, fields in Item.objects.values_list("text", "fields")]
    texts += [f"{reason} {comment}" for reason, comment in Judgment.objects.values_list("reason", "comment")]
    texts += [f"{code} {language.autonym}" for code, language in LANGUAGES.items()]
    texts += [LANG_INFO[code]["name_local"] for code, _name in settings.LANGUAGES]
    texts += AuthToken.objects.values_list("token_key", flat=True)
    return {word for text in texts for word in re.findall(r"[^\W\d_]{2,}", text.casefold())}


# The pages that are read: annotators', adjudicators' and public ones. `answers` has the content of `history`,
# without texts cut within a word. Password forms use Django's catalogs.
WALKED = {
    "nobody": ("login",),
    "guest": ("home", "account", "queue"),
    "ann": (
        *("home", "account", "languages", "queue", "sheet", "answers", "change", "consent"),
        *("guidelines", "qualification"),
    ),
    "ada": ("home", "adjudication", "adjudicate"),
}


def test_no_word_of_a_page_is_in_english_where_another_language_is_spoken(world, invented):
    data, left = of_data(world.who), {}
    for who, names in WALKED.items():
        client = world.client(who, headers=invented)
        for name in names:
            page = client.get(world.address(name)).text
            assert frame(page)[0] == INVENTED
            shown = re.sub("annotator-[0-9a-f]{8}", "", Text(page).found)  # a pseudonym
            if untranslated := sorted(set(outside(shown)) - data):
                left[who, name] = untranslated
    assert left == {}


def test_words_outside_of_brackets_are_found():
    page = '<body><p title="A title">⟦In <b>⟦German⟧</b>⟧ left</p><script>over</script><img alt="⟦seen⟧">'
    assert outside(Text(page).found) == ["title", "left"]
