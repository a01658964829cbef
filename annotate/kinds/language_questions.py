"""The common parts of the kinds `language` and `verify`: choices, reasons, routes and context for adjudicators."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote_plus

from django.utils.translation import gettext as _

from annotate.core import stages
from annotate.kinds.forms import CHOICE
from annotate.kinds.interface_language import interface_language, label_name, negative
from annotate.kinds.kind import Answer, Kind, Pages, Publication, Routing, Rules, Statistics
from corpora.core import CorpusError
from corpora.core.languages import ARTICLE_LABELS, LANGUAGES, UND
from corpora.engines import posts_by_author

# Reasons why a post has no single language, with the text of their buttons: the four cases of the article's
# instructions.
UNLISTED = "unlisted"
UNDEFINED_REASONS = {
    "several": "fits several languages",
    "mixed": "mixes languages",
    "gibberish": "no language",
    UNLISTED: "not on the list",
}
# The columns of an exported set of posts, in order.
COLUMNS = (
    *("id", "label", "asked", "text", "stage", "stratum", "agreed", "chance", "audit_chance", "decided_by"),
    *("check_chance", "checked", "first_label", "round", "judged_as"),
    *("reused_from", "posted_at", "author", "url", "letters", "votes", "candidates", "judgments", "transitions"),
)
# The additional sections of its manifest.
SECTIONS = ("audit", "decoys", "checks", "agreement")
# Sites on which an adjudicator can look up a text. The text is sent only when a link is followed.
SEARCHES = (
    ("Wiktionary", "https://en.wiktionary.org/w/index.php?search={}"),
    ("Wikipedia", "https://www.wikipedia.org/search-redirect.php?search={}"),
    ("DuckDuckGo", "https://duckduckgo.com/?q={}"),
)
OTHER_POSTS = 20


@dataclass(frozen=True)
class Choice:
    """A language to choose.

    key: physical key (KeyboardEvent.code), or ""
    """

    code: str
    key: str = ""

    @property
    def name(self) -> str:
        return label_name(self.code)

    @property
    def autonym(self) -> str:
        return LANGUAGES[self.code].autonym if self.code in LANGUAGES else ""

    @property
    def cap(self) -> str:
        return self.key.removeprefix("Digit")


def own_choices(permit) -> list[Choice]:
    """Return a button for each language that the annotator reads, and for each language of their queues.

    The choices depend only on the annotator, never on the unit, so that buttons and keys do not reveal the votes.
    """
    codes = dict.fromkeys(permit.reads)
    for queue in permit.queues:
        codes.update(dict.fromkeys(permit.routes.labels.get(queue, ())))
    return [Choice(code, f"Digit{n}" if n <= 9 else "") for n, code in enumerate(codes, 1)]


def by_name(codes: Iterable[str]) -> Sequence[Choice]:
    return _by_name(tuple(codes), interface_language())


@lru_cache
def _by_name(codes: tuple[str, ...], language: str) -> Sequence[Choice]:
    """Return the choices sorted by name.

    language: the interface language, as a cache key
    """
    return tuple(sorted(map(Choice, codes), key=lambda choice: choice.name.casefold()))


def about(asked: str) -> dict[str, Any]:
    """Return the language that is asked about, and the labels of Yes and No."""
    return {"asked": Choice(asked), "yes": asked, "no": negative(asked)}


def undefined(reasons: dict[str, str]) -> dict[str, Any]:
    """Return the Undefined button and its reasons, with their keys."""
    keyed = [(slug, words, f"Digit{n}") for n, (slug, words) in enumerate(reasons.items(), 1)]
    return {"und": UND, "reasons": keyed}


def check_reason(answer: Answer, reasons: dict[str, str]) -> None:
    if answer.reason and answer.label != UND:
        raise ValueError(_("Only Undefined can have a reason."))
    if answer.reason and answer.reason not in reasons:
        said = {"reason": repr(answer.reason), "reasons": ", ".join(reasons)}
        raise ValueError(_("%(reason)s is not one of the reasons: %(reasons)s.") % said)


# --- Routes. Languages may share a queue.


def queue(language: str, routes) -> str:
    return routes.queue_of(language)


def read_by(language: str, task, routes) -> list[str]:
    return [routes.queue_of(language)]


def faults(options: Mapping[str, Any]) -> str:
    if options["redundancy"] % 1 and options["redundancy"] > 2:
        return (
            f"A redundancy of {options['redundancy']:g} has one more person read a share, which is possible "
            "only between 1 and 2; make it a whole number."
        )
    return ""


def when_exhausted(unit) -> str:
    """Return the final stage of a unit. A decoy needs no label."""
    return stages.DISCARDED if unit.known_answer else stages.ADJUDICATION


# --- Context for adjudicators.


def searches(words: str, places: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, address.format(quote_plus(words[:200]))) for name, address in places]


def advise(unit, blind: bool) -> dict[str, Any]:
    """Return the votes, the author's other posts, and links for looking up the text."""
    item = unit.item
    try:
        posts = posts_by_author(item.corpus.name, item.author, OTHER_POSTS + 1)
        trouble = ""
    except CorpusError as error:
        posts, trouble = [], str(error)
    return {
        **({} if blind else {"votes": item.votes.items()}),
        "posts": [post for post in posts if post["id"] != item.key][:OTHER_POSTS],
        "trouble": trouble,
        "searches": searches(item.text, SEARCHES),
        "und": UND,
    }


LIST_HEADS = ("candidates", "queues so far")


def list_row(unit, answers) -> list[str]:
    return [", ".join(unit.candidates[:4]), " → ".join(unit.visited)]


def about_languages(
    *, routing: Mapping[str, Any], rules: Mapping[str, Any], pages: Mapping[str, Any], **values: Any
) -> Kind:
    """Return a kind that asks about the languages of posts.

    routing, rules, pages: the values that differ between such kinds
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
        routing=Routing(queue=queue, read_by=read_by, when_exhausted=when_exhausted, **routing),
        rules=Rules(
            check_label=lambda label, task: CHOICE.check(label, task.labels),
            agrees=CHOICE.agrees,
            faults=faults,
            **rules,
        ),
        pages=Pages(list_heads=LIST_HEADS, list_row=list_row, called=label_name, short=str, **pages),
        statistics=statistics,
        publication=publication,
        **values,
    )
