"""Voters whose packages are optional: py3langid and CLD3, which the extra `voters` installs, and heliport.

Each voter is registered if its package, which contains the model, is installed (corpora/apps.py). `code_of` converts a
package's codes to ours. If the first language of a text is not listed in languages.toml, the voter casts no vote on the
text, because its second choice would be a guess.

The minimum scores were chosen like those of the built-in voters, on sentences on which each voter agrees with CLD2 and
fastText (benchmarks/panels.py).
"""

from collections.abc import Container, Iterable, Sequence
from functools import cache, cached_property
from importlib.metadata import version
from typing import Any

from corpora.core.languages import LISTED, code_of
from corpora.core.masking import letters_alone
from corpora.core.voters import VOTERS, Voter, register

Ranking = Sequence[tuple[str, float]]  # (the package's code, score from 0 to 1), best first


class PackagedVoter(Voter):
    """A voter with a model in a package.

    package, module: name of the package, and of the module to import
    own_codes: the codes that the model can return, separated by spaces
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
        """Return at least the k best languages of a text, in the package's codes."""
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

    The score is the language's probability, which py3langid calibrates by the length of the text.
    """

    name, title, package, module, min_score = "py3langid", "py3langid", "py3langid", "py3langid", 0.4
    own_codes = """
    ace af am an ar ary arz as az ba bcl be bg bn br bs ca crh cs cy da de dz el en eo es et eu ext fa fi fo fr fuv fy
    ga gcf gcr gd gl gom grc gu gug guw ha hbo he hi hr ht hu hy id ig is it ja jv ka kab kik kk km kn ko ku ky la lb lg
    lij ln lo lt ltg lv mg mk ml mn mr ms mt my ne nl nn no nso oc om or pa pcm pl ps pt qu ro ru rw sa sdh se si sk sl
    sn so sq sr st sv sw ta te tg th tk tl tr tt ug uk ur uz uzs vec vi vo wa wuu xh yo yue zh zu zxx"""

    def rank(self, text: str, k: int) -> Ranking:
        ranking: Ranking = _py3langid().rank(text)
        # Two of its codes may stand for the same language, such as no and nn.
        return ranking[: 2 * k]


_MOST_BYTES = 700  # of a long text, CLD3 reads this many bytes in pieces from all its parts


@cache
def _cld3() -> Any:
    import gcld3

    return gcld3.NNetLanguageIdentifier(min_num_bytes=0, max_num_bytes=_MOST_BYTES)


class CLD3(PackagedVoter):
    """Google's Compact Language Detector 3, a small neural network. It returns one language with its probability.

    It removes repeated words first, and returns Japanese with 0.78 if nothing is left. This is no vote.
    """

    name, title, package, module, min_score = "cld3", "CLD3", "cld3-py", "gcld3", 0.5
    own_codes = """
    af am ar az be bg bg-Latn bn bs ca ceb co cs cy da de el el-Latn en eo es et eu fa fi fil fr fy ga gd gl gu ha haw
    hi hi-Latn hmn hr ht hu hy id ig is it iw ja ja-Latn jv ka kk km kn ko ku ky la lb lo lt lv mg mi mk ml mn mr ms mt
    my ne nl no ny pa pl ps pt ro ru ru-Latn sd si sk sl sm sn so sq sr st su sv sw ta te tg th tr uk ur uz vi xh yi yo
    zh zh-Latn zu"""

    def rank(self, text: str, k: int) -> Ranking:
        result, nothing = _cld3().FindLanguage(text=text), _nothing()
        if (result.language, result.probability) == nothing:
            return ()
        return [(result.language, min(1.0, result.probability))]


@cache
def _nothing() -> tuple[str, float]:
    """Return CLD3's language and probability for a text without words."""
    result = _cld3().FindLanguage(text="")
    return result.language, result.probability


# The score compares this many languages, whatever number of them is requested.
_COMPARED = 5


@cache
def _heliport() -> Any:
    from heliport import Identifier

    return Identifier()


class Heliport(PackagedVoter):
    """heliport (Zaragoza), a fast version of HeLI-OTS (Jauhiainen et al., 2022).

    HeLI's own score is the negative logarithm of a mean relative frequency per word. Ours is the language's share of
    these frequencies over the five best languages.
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


def load(installed: Container[str]) -> None:
    """Register the voters whose modules are installed, unless another voter has the name."""
    for voter in PACKAGED:
        if voter.module in installed and voter.name not in VOTERS:
            register(voter())
