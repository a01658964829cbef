"""Simulated people: their languages, the truth, and their answers to each post. No input or output.

A reader knows the truth only for their own languages, skips other posts, and errs in a small share of answers. An
answer depends only on the seed, the person's name and the post.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.material import Post
from corpora.core.languages import ARTICLE_LABELS, UND
from corpora.core.masking import mask_mentions

# People in addition to the two native readers of each language, who read English as well.
ALSO_ENGLISH = 6
# People who read English and recognise Nigerian Pidgin.
KNOW_PIDGIN = 2
PIDGIN = "Nigerian Pidgin"
ADJUDICATORS_SLIP = 0.01
ADJUDICATORS_DISCARD = 0.02


def key_of(text: str) -> str:
    """Return a text in the form that both the API and a page show: mentions masked, on one line."""
    return " ".join(mask_mentions(text).split())


def label_of(language: str) -> str:
    """Return the right answer to a post in a language. It is undefined if the list lacks the language."""
    return language if language in ARTICLE_LABELS else UND


@dataclass(frozen=True)
class Reader:
    """languages: labels that they read at native level; recognises: languages off the list that they know."""

    name: str
    languages: tuple[str, ...]
    recognises: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """An answer, or a skip if the label is None."""

    label: str | None
    reason: str = ""
    comment: str = ""


SKIP = Answer(None)


def people(number: int, seed: str) -> list[Reader]:
    """Return readers, two for each label: natives of one to three languages, and more people who read English."""
    rng = random.Random(f"{seed} people")
    natives = max(number - ALSO_ENGLISH - KNOW_PIDGIN, -(-2 * len(ARTICLE_LABELS) // 3))
    dealt: list[tuple[str, ...]] = []
    # Deal every label twice, and deal again if a reader would get one twice.
    while not dealt or any(len(labels) > len(set(labels)) for labels in dealt):
        cards = [label for _ in range(2) for label in rng.sample(ARTICLE_LABELS, len(ARTICLE_LABELS))]
        dealt = [tuple(cards[n::natives]) for n in range(natives)]
    # With very many people, some are left without a label: give them any.
    readers = [Reader(f"native{n:03}", labels or (rng.choice(ARTICLE_LABELS),)) for n, labels in enumerate(dealt)]
    for n in range(ALSO_ENGLISH):
        other = rng.choice([label for label in ARTICLE_LABELS if label != "en"])
        readers.append(Reader(f"english{n}", (other, "en")))
    return readers + [Reader(f"pidgin{n}", ("en",), ("pcm",)) for n in range(KNOW_PIDGIN)]


class World:
    """The truth of each post, and the answers of people to it."""

    def __init__(self, posts: Iterable[Post], *, slip: float, seed: str) -> None:
        self.slip, self.seed = slip, seed
        self.truth: dict[str, str] = {}
        self.keys: dict[str, str] = {}
        self.language: dict[str, str] = {}
        self.languages: dict[str, set[str]] = {}
        for post in posts:
            self.truth[post.id] = label_of(post.language)
            self.language[post.id] = post.language
            self.keys[post.id] = key_of(post.text)
            self.languages.setdefault(self.keys[post.id], set()).add(post.language)

    def _chance(self, name: str, key: str) -> random.Random:
        return random.Random(f"{self.seed} {name} {key}")

    def answer(self, reader: Reader, key: str) -> Answer:
        """Return a reader's answer to a post."""
        languages, chance = self.languages[key], self._chance(reader.name, key)
        slips = chance.random() < self.slip
        if readable := [label for label in reader.languages if label in languages]:
            if not slips:
                return Answer(readable[0])
            return Answer(chance.choice([label for label in reader.languages if label not in languages] or [UND]))
        if recognised := languages.intersection(reader.recognises):
            if slips:
                return Answer(chance.choice(reader.languages))
            return Answer(UND, "unlisted", PIDGIN if "pcm" in recognised else ", ".join(sorted(recognised)))
        if "pcm" in languages and "en" in reader.languages and slips:
            return Answer("en")
        return SKIP

    def decided(self, name: str, key: str, offered: Mapping[str, bool]) -> Answer:
        """Return the decision of an adjudicator, who knows the truth. If the label is None, the post is discarded."""
        chance = self._chance(name, key)
        fate = chance.random()
        labels = {label_of(language) for language in self.languages[key]}
        if fate < ADJUDICATORS_DISCARD:
            return Answer(None, "Nothing found")
        likely = sorted(label for label, has_button in offered.items() if has_button and label not in labels)
        if fate < ADJUDICATORS_DISCARD + ADJUDICATORS_SLIP:
            return Answer(chance.choice(likely or [UND]), "I read the language")
        return Answer(min(labels), "Dictionary")
