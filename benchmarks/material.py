"""Real posts with known languages, from the data folder. Nothing else is read.

The truth is the file's code, except that nb and nn become `no`, and Chinese becomes zh-CN or zh-TW by its script.
world.py maps the codes to labels.
"""

import json
import random
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from corpora.core.languages import ARTICLE_LABELS

FIRST_ID = 483762194908479488
# Milliseconds are the upper bits of a tweet's id.
ID_STEP = 1 << 22


class MissingData(Exception):
    """The error for data that a benchmark needs but the folder does not contain."""


@dataclass(frozen=True)
class Post:
    id: str
    text: str
    language: str


def lines_of(folder: Path, name: str) -> list[str]:
    """Return the non-empty lines of a file in the folder, stripped."""
    path = folder / name
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MissingData(f"There is no file {path}; name a folder that has {name} in it.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise MissingData(f"{path} cannot be read: {error}.") from error
    return [line.strip() for line in text.split("\n") if line.strip()]


def chinese(text: str) -> str | None:
    """Return zh-CN or zh-TW, depending on whether GB 2312 or Big5 can encode more characters, or None for a tie."""

    def writable(encoding: str) -> int:
        return sum(len(character.encode(encoding, "ignore")) > 0 for character in text)

    simplified, traditional = writable("gb2312"), writable("big5")
    if simplified == traditional:
        return None
    return "zh-CN" if simplified > traditional else "zh-TW"


def sentences(folder: Path) -> dict[str, list[str]]:
    """Return a mapping from language to its sentences in lingua_sentences/."""
    files = sorted((folder / "lingua_sentences").glob("*.txt"))
    if not files:
        raise MissingData(f"There are no files {folder / 'lingua_sentences'}/*.txt; name a folder that has them.")
    by_language: dict[str, list[str]] = {}
    for path in files:
        for text in lines_of(folder, f"lingua_sentences/{path.name}"):
            code = {"nb": "no", "nn": "no"}.get(path.stem, path.stem)
            if code == "zh":
                code = chinese(text)
            if code:
                by_language.setdefault(code, []).append(text)
    return by_language


def shares(folder: Path) -> Counter[str]:
    """Return a mapping from label to its number of posts in a uniform sample of Twitter from July 2014."""
    return Counter(line.split("\t")[0] for line in lines_of(folder, "twitter_langid/uniformly_sampled.tsv"))


def shares_present(folder: Path, pools: Container[str]) -> tuple[dict[str, int], float]:
    """Return the counts of the languages that have sentences, and their share of the uniform sample."""
    counts = shares(folder)
    present = {code: count for code, count in sorted(counts.items()) if code in pools}
    if not present:
        raise MissingData(f"No language of {folder}/twitter_langid has sentences in {folder}/lingua_sentences.")
    return present, sum(present.values()) / counts.total()


ZIPF = 1.1  # exponent


def resample(folder: Path, posts: int, pidgin: float, seed: str, most: int = 0) -> tuple[list[Post], float]:
    """Return posts like those of a stream, and the share of the uniform sample that is in their languages.

    Languages that have sentences come in Twitter's shares, texts are drawn with replacement, and ids are new.

    pidgin: share of posts that are tweets in Nigerian Pidgin, a language that no detector knows
    most: use this many of the commonest languages with sentences, with shares by Zipf's law (0: Twitter's shares)
    """
    rng = random.Random(f"{seed} posts")
    pools = sentences(folder)
    tweets = lines_of(folder, "afrisenti_tweets/pcm.txt")
    weights, covered = shares_present(folder, pools)
    ranked = sorted(pools, key=lambda code: (-weights.get(code, 0), code))[:most]
    parts: dict[str, float] = {code: rank**-ZIPF for rank, code in enumerate(ranked, 1)} or {**weights}
    in_pidgin = round(posts * pidgin)
    languages = rng.choices(list(parts), list(parts.values()), k=posts - in_pidgin) + ["pcm"] * in_pidgin
    rng.shuffle(languages)
    pools["pcm"] = tweets
    stream = [
        Post(str(FIRST_ID + number * ID_STEP), rng.choice(pools[language]), language)
        for number, language in enumerate(languages)
    ]
    return stream, covered


TWEETS = ("am", "ha", "pcm", "sw")  # languages whose posts are tweets
OFF_THE_LIST = ("ha", "pcm", "sw")  # those of them without a label
OFF_THE_LIST_SHARE = 0.01  # of the posts, for each of them
WORDS_SHARE = SHORT_SHARE = 0.1  # single words, and the first words of a sentence
SHORT_WORDS, SHORT_CHARACTERS = 3, 8


def mixed(folder: Path, posts: int, seed: str, least: Mapping[str, int], otherwise: int) -> list[Post]:
    """Return posts in 57 languages, three of them off the list: sentences, the first words of sentences, single words
    and tweets. Languages have Twitter's shares, but at least a given number of posts. Texts are drawn with replacement.

    least: language -> its least number of posts; otherwise: that of all other languages
    """
    rng = random.Random(f"{seed} mixed posts")
    pools = sentences(folder)
    seen = shares(folder)
    weights = {code: seen[code] for code in pools if code in ARTICLE_LABELS} | dict.fromkeys(TWEETS, 0)
    pools |= {code: lines_of(folder, f"afrisenti_tweets/{code}.txt") for code in TWEETS}
    counts = Counter({code: least.get(code, otherwise) for code in weights})
    for code in OFF_THE_LIST:
        counts[code] = max(counts[code], round(posts * OFF_THE_LIST_SHARE))
    if counts.total() > posts:
        raise MissingData(f"{counts.total():,} posts are needed for the least number of each language.")
    counts.update(rng.choices(list(weights), list(weights.values()), k=posts - counts.total()))
    languages = list(counts.elements())
    rng.shuffle(languages)
    words = {code: _words(folder, code) for code in weights if code not in TWEETS}
    return [
        Post(str(FIRST_ID + number * ID_STEP), _mixed_text(rng, pools[code], words.get(code)), code)
        for number, code in enumerate(languages)
    ]


def _words(folder: Path, code: str) -> list[str]:
    file = {"no": "nb", "zh-CN": "zh"}.get(code, code)
    return lines_of(folder, f"lingua_single_words/{file}.txt")


def _mixed_text(rng: random.Random, texts: list[str], words: list[str] | None) -> str:
    fate = rng.random()
    if words and fate < WORDS_SHARE:
        return rng.choice(words)
    text = rng.choice(texts)
    if fate >= WORDS_SHARE + SHORT_SHARE:
        return text
    return " ".join(text.split()[:SHORT_WORDS]) if " " in text else text[:SHORT_CHARACTERS]


def some_posts(folder: Path, posts: int, seed: str) -> list[Post]:
    """Return posts for measuring speed: those of `resample`, or the demonstration's, drawn with replacement, if the
    folder has no others."""
    if (folder / "lingua_sentences").exists() or not (folder / "demo_posts.jsonl").exists():
        return resample(folder, posts, 0.01, seed)[0]
    texts = [json.loads(line)["text"] for line in lines_of(folder, "demo_posts.jsonl")]
    rng = random.Random(f"{seed} posts")
    return [Post(str(FIRST_ID + number * ID_STEP), rng.choice(texts), "") for number in range(posts)]


def write_jsonl(posts: Iterable[Post], path: Path) -> None:
    """Write the file to import: ids and texts without the language."""
    with open(path, "w", encoding="utf-8") as file:
        for post in posts:
            file.write(json.dumps({"id": post.id, "text": post.text}, ensure_ascii=False) + "\n")
