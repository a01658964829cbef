"""Is this post in that language? (Evaluating language identification performance, Twitter, 2015: recall, precision)

The labels of a unit that is asked about German are de, not-de and und.
"""

from pathlib import Path

from annotate.kinds import languages
from annotate.kinds.forms import choice
from annotate.kinds.kind import Answer, Kind
from annotate.kinds.labels import label_name, negative
from annotate.kinds.languages import UNDEFINED_REASONS, UNLISTED
from annotate.kinds.options import ASKED
from corpora.core.languages import ARTICLE_LABELS, UND

# A language that is on no list is some other language: No.
REASONS = {reason: words for reason, words in UNDEFINED_REASONS.items() if reason != UNLISTED}
# What agreement tells apart, whatever language was asked about.
YES, NO = "yes", "no"


def offered(unit):
    return [unit.asked, negative(unit.asked), UND]


def check(answer: Answer, unit) -> None:
    if not answer.label:
        raise ValueError("No answer was chosen. Say yes or no, or Undefined.")
    if answer.label not in offered(unit):
        raise ValueError(f"{answer.label!r} is no answer here; it is {', '.join(offered(unit)[:-1])} or {UND}.")
    languages.check_reason(answer, REASONS)


def compared_as(asked: str, label: str) -> str:
    return label if label == UND else YES if label == asked else NO


KIND = Kind(
    slug="verify",
    title="Is this post in the language?",
    titled_by_task=True,
    titled_by_languages=True,
    form=choice,
    noun="post",
    labels=ARTICLE_LABELS,
    reasons=REASONS,
    undefined=UND,
    guidelines={"en": Path(__file__).with_name("verify.md").read_text(encoding="utf-8")},
    template="annotate/verify.html",
    sheet="annotate/sheet.html",
    bench="annotate/bench_verify.html",
    options=(*ASKED, "overlap_share", "decoy_share"),
    # One language is asked about, so there is one queue: a second reader of it rather than a second language.
    defaults={"rounds": 1, "skip_limit": 2},
    designs=("recall", "precision"),
    protections=frozenset({"decoys"}),
    language_paths=("asked",),
    spoken_paths=("unit__asked", "unit__language"),
    counts_single=False,
    formats={"twitter2015": ""},
    columns=languages.COLUMNS,
    tallies=("reused", "by_stratum"),
    sections=languages.SECTIONS,
    card="annotate/card_verify.md",
    candidates=lambda unit, routes: routes.with_extras([unit.asked]),
    queue=languages.queue,
    read_by=languages.read_by,
    # What detectors say is what is being verified.
    agreed=lambda item, task: None,
    when_exhausted=languages.when_exhausted,
    offered=offered,
    check=check,
    ask=lambda unit, permit: {**languages.undefined(REASONS), **languages.about(unit.asked)},
    advise=lambda unit, blind: {**languages.advise(unit, blind), **languages.about(unit.asked)},
    list_heads=languages.LIST_HEADS,
    list_row=languages.list_row,
    called=label_name,
    short=str,
    compared=lambda task: [YES, NO, UND],
    compared_as=compared_as,
    refuses_imports=(
        "asks about one language at a time, and a file of judgments does not say about which; import them as a task of "
        "their own."
    ),
)
