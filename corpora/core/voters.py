"""The registry of voters, panels of voters, and the functions that combine votes.

A voter is a detector that votes on every post, or a predictor whose labels were imported. A panel is the set of voters
whose agreement decides labels in a task.

To add a detector, subclass Voter and register it with the entry point `assay.voters` or with `register`. No other code
refers to a voter by name. The models of the built-in voters are in detectors.py, which is imported only when the first
vote is cast.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from functools import cache, cached_property, lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from math import lcm
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpora.core import install
from corpora.core.languages import COVERAGE, LISTED, code_of
from corpora.core.masking import FORM, letters_alone


class Voter:
    """A language detector.

    name: name of the column with its votes, in lower case
    title: name shown on dataset cards
    languages: label codes that the detector can return
    place: priority in breaking ties; the voter with the lowest place decides
    min_score: minimum score of the first language; below it, the detector casts no vote on the text
    """

    name: str = ""
    title: str = ""
    languages: frozenset[str] = frozenset()
    place: int = 9
    min_score: float = 0

    def version(self) -> str:
        """Return the version of the voter and its model. Votes from other versions are recomputed."""
        raise NotImplementedError

    def vote(self, texts: Sequence[str], k: int) -> Iterable[Sequence[tuple[str, float]]]:
        """Return up to k languages for each cleaned text, as (code, score) pairs.

        The pairs are sorted best first, without duplicate codes. Scores range from 0 to 1.
        """
        raise NotImplementedError


LAST = Voter.place
# The registered voters, in the order that their votes are shown and stored.
VOTERS: dict[str, Voter] = {}
# Names already used in tables of votes, posts or predictors.
RESERVED = {"id", "text", "author", "posted_at", "url", "letters", "language", "label", "majority", "unanimous"}


def register(voter: Voter) -> Voter:
    """Register a voter under its name and return it.

    Raise ValueError if the name is used by another voter or by a column, or is not a valid identifier.
    """
    is_taken = voter.name in RESERVED or VOTERS.get(voter.name, voter) is not voter
    if is_taken or not voter.name.isidentifier():
        raise ValueError(f"{voter.name!r} is already used or is not a valid column name. Choose another name.")
    VOTERS[voter.name] = voter
    return voter


def load() -> None:
    """Register the voters of installed packages.

    Each entry point in the group `assay.voters` must name a subclass of Voter. The voters in PACKAGED are registered
    last, if their package is installed and no other voter has their name.
    """
    install("assay.voters", lambda voter: register(voter()))
    for packaged in PACKAGED:
        if packaged.name not in VOTERS and find_spec(packaged.module):
            register(packaged())


def voters_with(min_scores: Mapping[str, float], names: Iterable[str]) -> tuple[Voter, ...]:
    """Return copies of the registered voters with these names.

    min_scores: minimum scores by voter name, which replace the voters' own
    """
    voters = [copy(VOTERS[name]) for name in names]
    for voter in voters:
        voter.min_score = min_scores.get(voter.name, voter.min_score)
    return tuple(voters)


def voter_versions(voters: Iterable[Voter]) -> dict[str, str]:
    """Return each voter's version by name, including the normalization of its input and its minimum score."""
    return {
        voter.name: f"{voter.version()}, {FORM}" + (f", scores from {voter.min_score:g}" if voter.min_score else "")
        for voter in voters
    }


def in_words(number: int) -> str:
    """Return a number as an English word, such as `three`. Numbers above seven are written in digits."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven")
    return dict(enumerate(words)).get(number, str(number))


# --- Built-in voters.


class BuiltIn(Voter):
    """A voter whose model is in detectors.py and whose language codes are in languages.toml."""

    def __init__(self, name: str, title: str, place: int, min_score: float) -> None:
        self.name, self.title, self.place, self.min_score = name, title, place, min_score
        self.languages = COVERAGE[name]

    def version(self) -> str:
        from corpora.core.detectors import detector_versions

        return detector_versions()[self.name]

    def vote(self, texts: Sequence[str], k: int) -> Iterable[Sequence[tuple[str, float]]]:
        from corpora.core.detectors import DETECTORS

        return DETECTORS[self.name](texts, k)


# CLD2 decides if no two detectors agree. On disputed sentences in 75 languages, its first language was right in 77% of
# cases, whereas the first languages of langid.py and fastText were each right in 46%.
#
# The minimum scores were chosen on 39,345 agreed sentences in 75 languages (benchmarks/evidence.py). A higher minimum
# sends more sentences to annotators. For langid.py and CLD2, the minimum is the highest multiple of 0.05 that sends at
# most 0.5% of all sentences, of which at least a tenth were labelled wrongly. fastText is often right with low scores,
# for example in Swahili, so its minimum only excludes scores close to the 0.125 that it gives if it recognizes nothing.
register(BuiltIn("langid", "langid.py", 2, 0.6))
register(BuiltIn("cld2", "CLD2", 0, 0.55))
register(BuiltIn("fasttext", "fastText", 1, 0.15))


# --- Packaged voters, whose models come with optional packages: py3langid and CLD3, which the `voters` extra installs,
# and heliport.
#
# If a text's first language is not listed in languages.toml, the voter casts no vote on the text, because its second
# choice would be a guess. The minimum scores were chosen like those of the built-in voters, on sentences where the
# voter agrees with CLD2 and fastText (benchmarks/panels.py).


Ranking = Sequence[tuple[str, float]]  # (the package's code, score from 0 to 1), best first


class PackagedVoter(Voter):
    """A voter whose model comes with an optional package.

    package, module: name of the package, and of the module to import
    own_codes: the model's own language codes, separated by spaces
    """

    package: str
    module: str
    own_codes: str

    @cached_property
    def languages(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset(code for own_code in self.own_codes.split() if (code := _code(own_code)))

    def version(self) -> str:
        return version(self.package)

    def vote(self, texts: Sequence[str], k: int) -> Iterable[Ranking]:
        for text, letters in zip(texts, letters_alone(texts), strict=True):
            yield _in_our_codes(self.rank(text, k)) if letters else ()

    def rank(self, text: str, k: int) -> Ranking:
        """Return at least the k best languages for a text, in the package's own codes."""
        raise NotImplementedError


@cache
def _code(own_code: str) -> str:
    code = code_of(own_code)
    return code if code in LISTED else ""


def _in_our_codes(ranking: Ranking) -> Ranking:
    ranked = [(_code(own_code), score) for own_code, score in ranking]
    return [(code, score) for code, score in ranked if code] if ranked and ranked[0][0] else ()


@cache
def _py3langid() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


class Py3Langid(PackagedVoter):
    """py3langid (Barbaresi), a fork of langid.py with a new model.

    The score is the language's probability, which py3langid calibrates by text length.
    """

    name, title, package, module, min_score = "py3langid", "py3langid", "py3langid", "py3langid", 0.4
    own_codes = """
    ace af am an ar ary arz as az ba bcl be bg bn br bs ca crh cs cy da de dz el en eo es et eu ext fa fi fo fr fuv fy
    ga gcf gcr gd gl gom grc gu gug guw ha hbo he hi hr ht hu hy id ig is it ja jv ka kab kik kk km kn ko ku ky la lb lg
    lij ln lo lt ltg lv mg mk ml mn mr ms mt my ne nl nn no nso oc om or pa pcm pl ps pt qu ro ru rw sa sdh se si sk sl
    sn so sq sr st sv sw ta te tg th tk tl tr tt ug uk ur uz uzs vec vi vo wa wuu xh yo yue zh zu zxx"""

    def rank(self, text: str, k: int) -> Ranking:
        ranking: Ranking = _py3langid().rank(text)
        # Two of its codes may map to the same label code, such as `no` and `nn`.
        return ranking[: 2 * k]


_MOST_BYTES = 700  # from a longer text, CLD3 samples this many bytes


@cache
def _cld3() -> Any:
    import gcld3

    return gcld3.NNetLanguageIdentifier(min_num_bytes=0, max_num_bytes=_MOST_BYTES)


class CLD3(PackagedVoter):
    """Google's Compact Language Detector 3, a small neural network. It returns one language with its probability.

    It first removes repeated words. If nothing is left, it returns Japanese with 0.78, which doesn't count as a vote.
    """

    name, title, package, module, min_score = "cld3", "CLD3", "cld3-py", "gcld3", 0.5
    own_codes = """
    af am ar az be bg bg-Latn bn bs ca ceb co cs cy da de el el-Latn en eo es et eu fa fi fil fr fy ga gd gl gu ha haw
    hi hi-Latn hmn hr ht hu hy id ig is it iw ja ja-Latn jv ka kk km kn ko ku ky la lb lo lt lv mg mi mk ml mn mr ms mt
    my ne nl no ny pa pl ps pt ro ru ru-Latn sd si sk sl sm sn so sq sr st su sv sw ta te tg th tr uk ur uz vi xh yi yo
    zh zh-Latn zu"""

    def rank(self, text: str, k: int) -> Ranking:
        result = _cld3().FindLanguage(text=text)
        if (result.language, result.probability) == _cld3_fallback():
            return ()
        return [(result.language, min(1.0, result.probability))]


@cache
def _cld3_fallback() -> tuple[str, float]:
    """Return CLD3's language and probability for text without words."""
    result = _cld3().FindLanguage(text="")
    return result.language, result.probability


# Scores are relative to this many best languages, even if fewer are requested.
_COMPARED = 5


@cache
def _heliport() -> Any:
    from heliport import Identifier

    return Identifier()


class Heliport(PackagedVoter):
    """heliport (Zaragoza), a fast version of HeLI-OTS (Jauhiainen et al., 2022).

    HeLI's own score is the negative logarithm of a mean relative frequency per word. Our score normalizes these
    frequencies over the five best languages.
    """

    name, title, package, module, min_score = "heliport", "heliport", "heliport", "heliport", 0.4
    own_codes = """
    abk ace adz afr aii ame amh amr ara arl arn asm ayr aze bak bar bcl bel ben boa bod bpy bre bul cat cbu cdo ceb ces
    che chk cho chr chv chy ckb cmn cnh cor cos cym dan deu dik diq div ell eng epo est eus ewe ext fao fij fin fon fra
    fry gaz gla gle glg glv gom grn gsw guj hat hbs heb hin hmo hsb hun hus huu hye ibo ido iku ilo ina isl ita izh jpn
    kac kal kan kat kaz kbd kbp kca khm kir kmr knc koi kor kpv krc ksh lao lat lav lin lit liv lmo ltz lud lug luo lus
    mal mar mcd mcf mdf mhr mkd mlg mlt mns mon mri mrj msa mwl mya myv nav nep nhn nio nld nno nob nso nus oci olo ori
    oss pag pam pan pbt pes pfl pli pms pnb pol pon por que roh ron rus sag sah sat scn sgs shk shn sin sjd sjk sju slk
    slv sma sme smj smn sms sna snd som sot spa sqi srd swa swe tam tat tca tel tet tgk tgl tha tir tso tuk tur twi tzh
    udm uig ukr ura urd uzn vie vls vol vot war wln xmf yid yor yrk zul"""

    def rank(self, text: str, k: int) -> Ranking:
        logs = _heliport().identify_topk_with_score(text, max(k + 1, _COMPARED))
        best = logs[0][1]
        frequencies = [(own_code, 10 ** (best - log)) for own_code, log in logs]
        total = sum(frequency for _, frequency in frequencies[:_COMPARED])
        return [(own_code, frequency / total) for own_code, frequency in frequencies]


PACKAGED: tuple[type[PackagedVoter], ...] = (Py3Langid, CLD3, Heliport)


# --- Panels.

FEWEST, MOST = 2, 7  # fewest and most voters that a panel can have
# How many of a ranked predictor's labels count as its vote. Detectors also return this many by default.
RANKS = 3


class Panel(NamedTuple):
    """The voters of a task.

    voters: names of registered voters, and of imported predictors as NAME@VERSION
    agree: how many voters must rank the same label first to settle it; always more than half of all voters
    """

    voters: tuple[str, ...]
    agree: int

    @property
    def registered(self) -> tuple[str, ...]:
        return tuple(name for name in self.voters if "@" not in name)

    @property
    def imported(self) -> tuple[str, ...]:
        return tuple(name for name in self.voters if "@" in name)


def panel_of(names: Iterable[str], agree: int | None = None) -> Panel:
    """Return a validated panel.

    agree: as in Panel; None for all voters

    Raise ValueError if there are too few or too many voters, if a voter is listed twice, or if `agree` is out of range.
    """
    voters = tuple(names)
    if not FEWEST <= len(voters) <= MOST:
        raise ValueError(f"A panel has {in_words(FEWEST)} to {in_words(MOST)} voters, not {len(voters)}.")
    if twice := [name for name, number in Counter(voters).items() if number > 1]:
        raise ValueError(f"The voter {twice[0]} is listed twice. List each voter once.")
    agree = len(voters) if agree is None else agree
    if not len(voters) < 2 * agree <= 2 * len(voters):
        raise ValueError(
            f"{agree} of {len(voters)} voters cannot settle a label. At least {len(voters) // 2 + 1} must agree, which "
            f"is more than half, and at most all {len(voters)}."
        )
    return Panel(voters, agree)


# The panel used unless a task chooses another. It doesn't depend on which voters are registered.
DEFAULT = panel_of(("langid", "cld2", "fasttext"))


# --- Functions that combine votes.
#
# Votes are passed in their stored form: {"langid": [["de", 0.98], ...], "cld2": [...], "mine@1": [...]}. Each list
# contains labels with scores, best first. A score may be None.

Votes = Mapping[str, Sequence[Sequence[str | float]]]


def ballots(votes: Votes, panel: Panel) -> Votes:
    """Return only the votes of a panel's voters, in the panel's order. `votes` may include voters from other tasks."""
    return {name: votes[name] for name in panel.voters if name in votes}


def rank_candidates(votes: Votes) -> list[str]:
    """Return all languages in the votes, most likely first.

    Languages are sorted by these criteria in turn:
    - the sum of 1/rank over the voters' lists (reciprocal rank)
    - the number of voters that rank the language first, so a language that two of three voters rank first always wins
    - the number of voters that returned the language
    - the language's rank with each voter in turn, in the order of Voter.place and then of the votes; a voter that did
      not return the language counts as ranking it last
    - the code
    """
    in_order = sorted(votes, key=lambda name: VOTERS[name].place if name in VOTERS else LAST)
    return _merge_rankings(tuple(tuple(str(entry[0]) for entry in votes[name]) for name in in_order)).copy()


# Cached, because many texts have the same rankings.
@lru_cache(maxsize=10_000)
def _merge_rankings(rankings: tuple[tuple[str, ...], ...]) -> list[str]:
    """Merge the voters' rankings, each best first, into the order described in `rank_candidates`."""
    ranks: dict[str, dict[int, int]] = {}
    for voter, ranking in enumerate(rankings):
        for rank, code in enumerate(ranking, start=1):
            ranks.setdefault(code, {}).setdefault(voter, rank)

    # Weights are multiplied by a common multiple of all ranks, because integers are exact and faster than fractions.
    multiple = lcm(*range(1, 1 + max(map(len, rankings), default=0)))

    order: dict[str, tuple[int, int, int, list[float], str]] = {}
    for code, places in ranks.items():
        weight = sum(multiple // rank for rank in places.values())
        firsts = sum(rank == 1 for rank in places.values())
        by_voter = [places.get(voter, float("inf")) for voter in range(len(rankings))]
        order[code] = -weight, -firsts, -len(places), by_voter, code
    return sorted(ranks, key=order.__getitem__)


def agreed_vote(votes: Votes, panel: Panel) -> str | None:
    """Return the label ranked first by at least `panel.agree` of a panel's voters, or None if there is none."""
    firsts = Counter(str(ranking[0][0]) for ranking in ballots(votes, panel).values() if ranking)
    return next((label for label, number in firsts.items() if number >= panel.agree), None)


def all_unanimous(firsts: Sequence[NDArray[np.int16]]) -> NDArray[np.bool_]:
    """Return whether all detectors rank the same language first (texts,).

    firsts: for each detector, the index of its first language, or -1 for no vote (texts,)
    """
    is_same: NDArray[np.bool_] = np.logical_and.reduce([codes == firsts[0] for codes in firsts])
    return is_same & (firsts[0] >= 0)


def agreed_label(
    code: str | None,
    letters: int,
    *,
    labels: Collection[str],
    never_agree: Collection[str],
    least_letters: int,
    panel: Panel = DEFAULT,
) -> str | None:
    """Return the label to assign by agreement of a panel's voters, or None if annotators must decide.

    Agreement counts only if all voters support the language. A detector that doesn't support a text's language returns
    the closest language that it does support, and other detectors may make the same mistake. For imported predictors,
    the languages that they don't support are put into `never_agree` when a task is opened.

    code: language that enough voters rank first; None if there is none
    letters: number of letters in the detectors' input
    labels: the task's labels, which never include a coarse code
    never_agree: labels that must not be assigned by agreement
    least_letters: minimum number of letters for agreement
    """
    if code is None or letters < least_letters or code not in labels or code in never_agree:
        return None
    return code if all(code in VOTERS[name].languages for name in panel.voters if name in VOTERS) else None
