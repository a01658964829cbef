"""A summary of a kind in English: what people see, how they answer, and what happens to their answers."""

from collections.abc import Iterable, Iterator
from typing import Any

from annotate.core.aggregation.answer_table import at_first
from annotate.kinds.kind import ALLOW, ASK, ENGLISH, REFUSE, STYLES, Kind, Thesaurus
from annotate.kinds.options import OPTIONS
from annotate.kinds.record_kind import choices_of
from corpora.core.languages import LANGUAGES

MANY = 12  # maximum number of languages to list by name


def tell(kind: Kind) -> str:
    """Return the whole summary as text. It is meant for the author of the kind's file."""
    return "\n".join(
        line
        for part in (_question, _shown, _answers, _asked, _watched, _pace, _kept, _published, _guidelines, _languages)
        for line in part(kind)
    )


def _name(code: str) -> str:
    return f"{LANGUAGES[code].name} ({code})" if code in LANGUAGES else code


def _some(codes: Iterable[str]) -> str:
    names = [_name(code) for code in codes]
    return ", ".join(names) if len(names) <= MANY else f"{', '.join(names[:MANY])} and {len(names) - MANY:,} more"


def value(kind: Kind, name: str) -> Any:
    """Return the default value of an option in tasks of the kind; the option's `off` value if they do not have it."""
    option = OPTIONS[name]
    return kind.defaults.get(name, option.default) if name in kind.options else option.off


def _question(kind: Kind) -> Iterator[str]:
    yield f"{kind.slug}: {kind.title}"


def _shown(kind: Kind) -> Iterator[str]:
    if not kind.answered_here:
        yield "Nobody is asked here: judgments that were made elsewhere are imported."
    elif not kind.layout:
        yield "People see the text of a post."
    else:
        yield "People see, from top to bottom:"
        for block in kind.layout:
            yield f"- {', '.join(block.fields)} ({block.style}: {STYLES[block.style]})"
    if kind.sensitive:
        a_day = kind.sensitive.a_day
        others = sorted(kind.sensitive.warnings.keys() - {ENGLISH})
        also = f", and in {_some(others)}" if others else ""
        yield f"It may hurt, so it is veiled until they ask for it, and they first agree to this warning{also}:"
        yield f"- {kind.sensitive.warnings[ENGLISH]}"
        yield f"On a day a person is given {a_day:,} {kind.noun}{'' if a_day == 1 else 's'} at most."


def _answers(kind: Kind) -> Iterator[str]:
    if not kind.answered_here:
        return
    if kind.answers_from_draw:
        more = ", or with one of these" if kind.answers else ""
        yield f"They answer with a class that is named when the task is opened, by the keys 1 to 9{more}, or skip:"
    elif kind.thesaurus:
        yield from _of_concepts(kind.thesaurus, kind.skip_key.name)
    elif kind.answers:
        order = ", the best first" if "median" in kind.form.aggregations else ""
        yield f"They answer with a button or its key{order}, or skip with {kind.skip_key.name}:"
    elif kind.asks_each:
        yield "The question names one of the languages for which the task is opened; people answer Yes (1) or No (2)."
    else:
        yield f"They answer with a language: {_some(kind.labels)}."
    yield from kind.form.about
    if kind.filtered:
        yield (
            f"It audits a filter: what that kept and what it dropped is drawn mixed, and {kind.filtered} is the answer "
            "of what it is meant to drop."
        )
    if kind.undefined.reasons:
        yield f"Or they say Undefined (Q), and why: {', '.join(kind.undefined.reasons.values())}."
    for choice in choices_of(kind) if kind.answers else ():
        key = f"key {choice.cap}" if choice.cap else "no key"
        meaning = f": {choice.meaning}" if choice.meaning else ""
        others = [name for code, name in kind.answers[choice.label].names.items() if code != ENGLISH]
        named = f", elsewhere {', '.join(others)}" if others else ""
        yield f"- {choice.name} ({choice.label}, {key}{named}){meaning}"


def _of_concepts(thesaurus: Thesaurus, skip: str) -> Iterator[str]:
    least, most = thesaurus.least, thesaurus.most
    number = f"{least} or more" if most is None else f"{least}" if most == least else f"{least} to {most}"
    name = thesaurus.name
    yield f"They look up concepts of the vocabulary {name} and answer with {number} of them, or skip with {skip}."
    yield {
        REFUSE: "A concept beside one that is broader is refused.",
        ASK: "A concept beside one that is broader is taken from those who say that they mean both.",
        ALLOW: "A concept may stand beside one that is broader.",
    }[thesaurus.beside_broader]
    yield f"Where the answer is known, one is right whose F1 with it is {thesaurus.right_from:g} or more."


def _asked(kind: Kind) -> Iterator[str]:
    asked = value(kind, "redundancy")
    first = at_first(asked, stop_early=value(kind, "stop_early"))
    early = f", {first} of them at first, the others if these do not agree" if first < asked else ""
    yield f"Each {kind.noun} is for {asked} {'person' if asked == 1 else 'people'}{early}."
    if asked > 1:
        conflict = "is left out" if value(kind, "on_conflict") == "DISCARDED" else "goes to an adjudicator"
        label = (
            "A concept stays that more than half of them choose"
            if kind.thesaurus
            else f"The label is the {value(kind, 'aggregation')} of the answers"
        )
        yield f"{label}; a {kind.noun} without one {conflict}."


def _watched(kind: Kind) -> Iterator[str]:
    if items := value(kind, "test_items"):
        tries = value(kind, "tries")
        yield (
            f"Before they begin they take a test of {items} questions, of which {value(kind, 'pass_mark'):.0%} must "
            f"be right, {tries} {'time' if tries == 1 else 'times'} at most."
        )
    elif "test" in kind.controls:
        yield "Nobody is tested before they begin."
    if share := value(kind, "gold_share"):
        yield f"Of the units given to a person, {share:.0%} have a known answer, if the task is opened with --gold."
    elif "gold answers" in kind.controls:
        yield "No known answers are hidden among the work."
    if audit := value(kind, "audit_share"):
        of = "whose class is declared" if kind.answers_from_draw else "on which the detectors agree"
        yield f"Of the {kind.noun}s {of}, {audit:.0%} are read by people all the same."
    if "decoys" in kind.controls and (decoys := value(kind, "decoy_share")) != 0:
        number = "As many decoys as bound false Yes" if decoys is None else f"For each post, {decoys:g} decoys"
        yield f"{number} are hidden: posts known not to be in the language."


def _pace(kind: Kind) -> Iterator[str]:
    if kind.answered_here:
        yield f"Until people have answered, forecasts suppose {kind.seconds} seconds an answer."


def _kept(kind: Kind) -> Iterator[str]:
    if kind.records.together:
        yield f"Records with the same {kind.records.together} are drawn together."
    if kind.records.kept:
        yield f"Its sets have besides what people see: {', '.join(kind.records.kept)}."
    if kind.records.split:
        yield f"The field {kind.records.split} names the split of each {kind.noun}."
    elif kind.publication.splits:
        apart = " or ".join(kind.records.apart)
        yield (
            f"Records with the same {apart} are never in different splits."
            if apart
            else "Any record may be in any split."
        )


def _published(kind: Kind) -> Iterator[str]:
    formats = ", ".join(f"{name} ({what})" if what else name for name, what in kind.publication.formats.items())
    yield f"Published as {formats}, besides JSONL and Parquet." if formats else "Published as JSONL and Parquet alone."


def _guidelines(kind: Kind) -> Iterator[str]:
    if not kind.answered_here:
        return
    if not kind.guidelines:
        yield "There are no guidelines: without any, people have only the question."
        return
    others = f"English ({ENGLISH})" if ENGLISH in kind.guidelines else _name(next(iter(kind.guidelines)))
    yield f"Guidelines in {_some(sorted(kind.guidelines))}; people who work in another language read them in {others}."


def _languages(kind: Kind) -> Iterator[str]:
    for code, language in kind.languages.items():
        own = f", in itself {language.autonym}" if language.autonym != language.name else ""
        script = f", written in {language.script}" if language.script else ""
        under = f"; what detectors call {_name(language.under)} may be this language" if language.under else ""
        yield f"It adds the language {language.name} ({code}){own}{script}{under}."
