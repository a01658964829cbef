"""Code shared by the `language` and `verify` kinds: choices, reasons, routes and context for adjudicators."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote_plus
from zlib import crc32

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotate.core import stages
from annotate.kinds.control import Permit, Routes, Task, Unit
from annotate.kinds.forms import CHOICE
from annotate.kinds.interface_language import interface_language, label_name, negative
from annotate.kinds.kind import Answer, Kind, Pages, Publication, Routing, Rules, Shortcuts, Statistics
from corpora.core import CorpusError
from corpora.core.languages import ARTICLE_LABELS, LANGUAGES, UND
from corpora.core.voters import ballots
from corpora.engines import posts_by_author

# The reasons why no single language fits a post, with the texts of their buttons. They are from the instructions of
# Evaluating language identification performance (2015).
UNLISTED = "unlisted"
UNDEFINED_REASONS = {
    "several": "fits several languages",
    "mixed": "mixes languages",
    "gibberish": "no language",
    UNLISTED: "not on the list",
}
UNDEFINED_KEYS: Shortcuts = (("Q", gettext_lazy("undefined, then a reason")),)
# Columns of an exported set of posts, in order.
COLUMNS = (
    *("id", "label", "asked", "text", "stage", "stratum", "agreed", "chance", "audit_chance", "decided_by"),
    *("check_chance", "checked", "first_label", "round", "judged_as"),
    *("reused_from", "posted_at", "author", "url", "letters", "votes", "candidates", "judgments", "transitions"),
)
# Sections of the set's manifest, in addition to the sections that every set has.
SECTIONS = ("audit", "decoys", "checks", "people", "agreement")
# Sites for looking up a text. The text is only sent to a site if the adjudicator follows the link.
SEARCHES = (
    ("Wiktionary", "https://en.wiktionary.org/w/index.php?search={}"),
    ("Wikipedia", "https://www.wikipedia.org/search-redirect.php?search={}"),
    ("DuckDuckGo", "https://duckduckgo.com/?q={}"),
)
OTHER_POSTS = 20


@dataclass(frozen=True)
class Choice:
    """A language as a possible answer.

    code: language code
    key: physical key (KeyboardEvent.code); "" if there is none
    """

    code: str
    key: str = ""

    @property
    def name(self) -> str:
        return label_name(self.code)

    @property
    def autonym(self) -> str:
        """The language's name in the language itself; "" if it is unknown or the same as `name`."""
        autonym = LANGUAGES[self.code].autonym if self.code in LANGUAGES else ""
        return "" if autonym.casefold() == self.name.casefold() else autonym

    @property
    def cap(self) -> str:
        return self.key.removeprefix("Digit")


def button_codes(permit: Permit) -> list[str]:
    """Return the languages to show as buttons: the annotator's own languages, and the others in the annotator's queues.

    The buttons depend only on the annotator. If they depended on the unit, they would reveal the detectors' votes.
    """
    labels = permit.routes.labels
    return list(dict.fromkeys([*permit.reads, *(code for queue in permit.queues for code in labels.get(queue, ()))]))


@lru_cache
def with_keys(codes: tuple[str, ...]) -> Sequence[Choice]:
    """Return the languages as choices. The first nine have the keys 1 to 9."""
    return tuple(Choice(code, f"Digit{n}" if n <= 9 else "") for n, code in enumerate(codes, 1))


def has_all_buttons(permit: Permit) -> bool:
    """Return whether each of the task's labels has a button. If so, the page needs no list of all languages."""
    return set(button_codes(permit)).issuperset(permit.task.labels)


def buttons(permit: Permit) -> dict[str, Any]:
    """Return template context for an annotator's buttons, and for the list of all languages sorted by name.

    The list is empty if the buttons already show all languages. The digest identifies the contents of both.
    """
    codes, labels = button_codes(permit), permit.task.labels
    return _buttons(tuple(codes), () if set(codes).issuperset(labels) else tuple(labels), interface_language())


@lru_cache
def _buttons(codes: tuple[str, ...], everything: tuple[str, ...], language: str) -> dict[str, Any]:
    lists = {"choices": with_keys(codes), "everything": _sort_by_name(everything, language)}
    shown = " ".join(choice.code for choices in lists.values() for choice in choices)
    return {**lists, "digest": f"{crc32(shown.encode()):x}"}


def sort_by_name(codes: Iterable[str]) -> Sequence[Choice]:
    return _sort_by_name(tuple(codes), interface_language())


@lru_cache
def _sort_by_name(codes: tuple[str, ...], language: str) -> Sequence[Choice]:
    """Return the choices sorted by name.

    language: the interface language. It is only a parameter because the cached names depend on it.
    """
    return tuple(sorted(map(Choice, codes), key=lambda choice: choice.name.casefold()))


def question_context(language: str) -> dict[str, Any]:
    """Return template context for a question about a language: the language, and the labels of Yes and No."""
    return {"question_language": Choice(language), "yes": language, "no": negative(language)}


def undefined_context(reasons: dict[str, str]) -> dict[str, Any]:
    """Return template context for the answer Undefined: its label, and its reasons with their keys."""
    return {"und": UND, "reasons": [(slug, text, f"Digit{n}") for n, (slug, text) in enumerate(reasons.items(), 1)]}


def check_reason(answer: Answer, reasons: dict[str, str]) -> None:
    """Raise ValueError if an answer cannot have its reason."""
    if answer.label != UND:
        raise ValueError(_("Only Undefined can have a reason."))
    if answer.reason not in reasons:
        values = {"reason": repr(answer.reason), "reasons": ", ".join(reasons)}
        raise ValueError(_("%(reason)s is not a valid reason. Valid reasons: %(reasons)s.") % values)


# --- Routes. Languages can share a queue.


def read_by(language: str, task: Task, routes: Routes) -> list[str]:
    return [routes.queue_of(language)]


def faults(options: Mapping[str, Any]) -> str:
    if options["redundancy"] % 1 and options["redundancy"] > 2:
        return (
            f"--redundancy cannot be {options['redundancy']:g}: only between 1 and 2, one more person can "
            "answer a share of the items. Use a whole number."
        )
    return ""


def when_exhausted(unit: Unit) -> str:
    """Return a unit's next stage if no other annotator can be asked.

    The unit goes to adjudication. A decoy is discarded instead, because its answer is already known.
    """
    return stages.DISCARDED if unit.known_answer else stages.ADJUDICATION


# --- Context for adjudicators.


def search_links(text: str, sites: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, address.format(quote_plus(text[:200]))) for name, address in sites]


def advise(unit: Unit, usual: Sequence[str] | None) -> dict[str, Any]:
    """Return template context for an adjudicator: the votes, the author's other posts, and search links.

    usual: as in Pages.advise; if it is not None, the votes are left out
    """
    item = unit.item
    try:
        posts = posts_by_author(item.corpus.name, item.author, OTHER_POSTS + 1)
        trouble = ""
    except CorpusError as error:
        posts, trouble = [], str(error)
    return {
        **({"votes": ballots(item.votes, unit.task.panel).items()} if usual is None else {}),
        "posts": [post for post in posts if post["id"] != item.key][:OTHER_POSTS],
        "trouble": trouble,
        "searches": search_links(item.text, SEARCHES),
        "und": UND,
    }


LIST_HEADS = ("candidates", "read by readers of")


def list_row(unit: Unit, answers: Sequence[str], code_name: Callable[[str], str]) -> list[str]:
    return [", ".join(map(code_name, unit.candidates[:4])), " → ".join(map(code_name, unit.visited))]


def about_languages(
    *, routing: Mapping[str, Any], rules: Mapping[str, Any], pages: Mapping[str, Any], **values: Any
) -> Kind:
    """Return a kind that asks about the languages of posts.

    routing, rules, pages: arguments of these objects that are specific to the kind
    values: other arguments of Kind
    """
    publication = Publication(
        columns=COLUMNS,
        tallies=("reused", "by_stratum", "agreed_by"),
        sections=SECTIONS,
        formats={"twitter2015": ""},
        **values.pop("publication"),
    )
    statistics = Statistics(
        spoken_paths=("unit__asked", "unit__language"), counts_single=False, **values.pop("statistics")
    )
    return Kind(
        form=CHOICE,
        noun="post",
        labels=ARTICLE_LABELS,
        labels_are_languages=True,
        routing=Routing(read_by=read_by, when_exhausted=when_exhausted, **routing),
        rules=Rules(
            check_label=lambda label, task: CHOICE.check(label, task.labels),
            agrees=CHOICE.agrees,
            faults=faults,
            **rules,
        ),
        pages=Pages(list_heads=LIST_HEADS, list_row=list_row, code_name=label_name, short_name=str, **pages),
        statistics=statistics,
        publication=publication,
        **values,
    )
