"""Generated posts in no single language: laughter, names, numbers, emoji, interjections, gibberish and mixtures."""

from collections.abc import Sequence

import numpy as np

# Common examples in the languages of Twitter. None is a real post.
_WORDS = {
    "laughter": "ha je ja hi ki rs hue хах 5 55 w ㅋ ㅎ ه خ 哈 笑 草",
    "interjections": "ok wow yay hmm aww omg oh uff mmm lol eh ah xD <3 :) :( ;) ^^ nooo bravo gol super radio taxi",
    "emoji": "😂 😍 😭 😊 💕 👌 😘 🙏 😩 😁 🎉 ❤️ 💔 ✨ 🔥 😎 👏 🎶 ⚽ 😴",
    "names": (
        "Justin_Bieber Harry_Styles Neymar Messi Cristiano_Ronaldo Lady_Gaga Shakira Rihanna Beyoncé Eminem Katy_Perry "
        "Kim_Kardashian Zayn_Malik Louis_Tomlinson Adele Pitbull Barack_Obama Angela_Merkel Rafa_Nadal Federer Madrid "
        "Barcelona Paris London Berlin Tokyo Jakarta Rio_de_Janeiro São_Paulo Buenos_Aires Istanbul Manila Bangkok "
        "Brasil Argentina Real_Madrid Manchester_United Chelsea Arsenal Bayern Juventus Samsung iPhone Android Google "
        "Facebook Instagram YouTube Twitter WhatsApp PlayStation Xbox Nike Adidas Ferrari McDonald's Starbucks"
    ),
    "gibberish": "#HarryStyles #BRAvsGER #WorldCup2014 #NP #TBT #MTVHottest #Vote1D #ff #FIFA #GER #ARG #selfie #RT",
}
_KEYS = "asdfghjklñqwertzuiop"
MADE_KINDS = (*_WORDS, "numbers")


def undefined_text(rng: np.random.Generator, kind: str) -> str:
    """Return a text that could be in any language, or in none."""
    if kind == "numbers":
        one, two, three = (int(number) for number in rng.integers(1, 60, 3))
        ways = (f"{one}-{two}", f"{one % 24:02}:{two:02}", f"{one}/{two} {three}%", f"+{one}{two}{three}")
        return ways[rng.integers(len(ways))]
    words = _WORDS[kind].split()
    match kind:
        case "laughter":
            return _some(rng, words, 1)[0] * int(rng.integers(2, 9))
        case "emoji":
            return "".join(_some(rng, words, rng.integers(1, 7)))
        case "gibberish":
            return f"{_some(rng, words, 1)[0]} {''.join(_some(rng, _KEYS, rng.integers(6, 15)))}"
    return " ".join(_some(rng, words, rng.integers(1, 4))).replace("_", " ")


def _some(rng: np.random.Generator, words: Sequence[str], number: int) -> list[str]:
    return [words[place] for place in rng.integers(len(words), size=number)]


def mixed_text(first: str, second: str) -> str:
    """Join the first half of a text to the second half of a text in another language."""
    return f"{first[: _middle(first)]} {second[_middle(second) :].strip()}"


def _middle(text: str) -> int:
    """Return the middle of a text, between two words if possible."""
    place = text.find(" ", len(text) // 2)
    return place if place > 0 else len(text) // 2
