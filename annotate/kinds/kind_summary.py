"""An English summary for the author of a kind's file: its layout, its answers, and what happens to the answers."""

from collections.abc import Iterable, Iterator
from typing import Any

from annotate.core.aggregation.answer_table import at_first
from annotate.kinds.kind import ALLOW, ASK, ENGLISH, REFUSE, STYLES, Kind, Thesaurus
from annotate.kinds.options import OPTIONS
from annotate.kinds.record_kind import choices
from corpora.core.languages import LANGUAGES

MANY = 12  # maximum number of languages to list by name


def summary_of(kind: Kind) -> str:
    """Return the summary as text, with one sentence or list item per line."""
    return "\n".join(
        line
        for part in (
            _question,
            _layout,
            _answers,
            _annotators,
            _quality_control,
            _pace,
            _records,
            _formats,
            _guidelines,
            _languages,
        )
        for line in part(kind)
    )


def _name(code: str) -> str:
    return f"{LANGUAGES[code].name} ({code})" if code in LANGUAGES else code


def _names(codes: Iterable[str]) -> str:
    names = [_name(code) for code in codes]
    return ", ".join(names) if len(names) <= MANY else f"{', '.join(names[:MANY])} and {len(names) - MANY:,} more"


def value(kind: Kind, name: str) -> Any:
    """Return an option's default in tasks of the kind, or its `off` value if the kind doesn't have the option."""
    option = OPTIONS[name]
    return kind.defaults.get(name, option.default) if name in kind.options else option.off


def _question(kind: Kind) -> Iterator[str]:
    yield f"{kind.slug}: {kind.title}"


def _layout(kind: Kind) -> Iterator[str]:
    if not kind.answered_here:
        yield "Judgments of this kind are imported, not made in Assay."
    elif not kind.layout:
        yield "Annotators see the text of a post."
    else:
        yield "Annotators see, from top to bottom:"
        for block in kind.layout:
            yield f"- {', '.join(block.fields)} ({block.style}: {STYLES[block.style]})"
    if kind.sensitive:
        a_day = kind.sensitive.a_day
        languages = sorted(kind.sensitive.warnings.keys() - {ENGLISH})
        also = f" (also in {_names(languages)})" if languages else ""
        yield f"Texts are veiled until annotators ask for them. First, annotators must accept this warning{also}:"
        yield f"- {kind.sensitive.warnings[ENGLISH]}"
        yield f"An annotator gets at most {a_day:,} {kind.noun}{'' if a_day == 1 else 's'} per day."


def _answers(kind: Kind) -> Iterator[str]:
    if not kind.answered_here:
        return
    yield from kind.form.about
    if kind.answers_from_draw:
        others = ", with one of these" if kind.answers else ""
        yield f"Annotators answer with a class that is named when the task is opened (keys 1 to 9){others}, or skip:"
    elif kind.thesaurus:
        yield from _concepts(kind.thesaurus, kind.skip_key.name)
    elif kind.answers:
        order = ", best first" if "median" in kind.form.aggregations else ""
        yield f"Annotators answer with a button or its key{order}, or skip with {kind.skip_key.name}:"
    elif kind.asks_each:
        yield "Each question names one of the task's languages. Annotators answer Yes (1) or No (2)."
    elif kind.labels:
        yield f"Annotators answer with a language: {_names(kind.labels)}."
    if kind.filtered:
        yield (
            f"The kind audits a filter: the draw mixes items that the filter kept and dropped, and {kind.filtered} is "
            "the answer for items that it should drop."
        )
    if kind.undefined.reasons:
        yield f"Or they answer Undefined (Q) with a reason: {', '.join(kind.undefined.reasons.values())}."
    for choice in choices(kind.labels, kind.answers) if kind.answers else ():
        key = f"key {choice.cap}" if choice.cap else "no key"
        meaning = f": {choice.meaning}" if choice.meaning else ""
        translations = [name for code, name in kind.answers[choice.label].names.items() if code != ENGLISH]
        also_named = f", in other languages {', '.join(translations)}" if translations else ""
        yield f"- {choice.name} ({choice.label}, {key}{also_named}){meaning}"


def _concepts(thesaurus: Thesaurus, skip: str) -> Iterator[str]:
    least, most = thesaurus.least, thesaurus.most
    number = f"{least} or more" if most is None else f"{least}" if most == least else f"{least} to {most}"
    name = thesaurus.name
    yield f"Annotators look up concepts of the vocabulary {name} and answer with {number} of them, or skip with {skip}."
    yield {
        REFUSE: "An answer with both a concept and a broader one is rejected.",
        ASK: "An answer with both a concept and a broader one is only accepted if the annotator confirms it.",
        ALLOW: "An answer with both a concept and a broader one is accepted.",
    }[thesaurus.beside_broader]
    yield f"An answer is correct if its F1 with the known answer is at least {thesaurus.right_from:g}."


def _annotators(kind: Kind) -> Iterator[str]:
    answers = value(kind, "redundancy")
    first_answers = at_first(answers, stop_early=value(kind, "stop_early"))
    rest = f": first {first_answers}, then the rest if these differ" if first_answers < answers else ""
    yield f"Each {kind.noun} gets {answers} answer{'' if answers == 1 else 's'}{rest}."
    if answers > 1:
        conflict = "is discarded" if value(kind, "on_conflict") == "DISCARDED" else "goes to an adjudicator"
        label = (
            "The label consists of the concepts that more than half of the annotators choose"
            if kind.thesaurus
            else f"The label is the {value(kind, 'aggregation')} of the answers"
        )
        yield f"{label}. A {kind.noun} without a label {conflict}."


def _quality_control(kind: Kind) -> Iterator[str]:
    if items := value(kind, "test_items"):
        tries = value(kind, "tries")
        yield (
            f"Before they start, annotators must pass a test of {items} questions with at least "
            f"{value(kind, 'pass_mark'):.0%} correct answers. They have {tries} {'try' if tries == 1 else 'tries'}."
        )
    elif "test" in kind.controls:
        yield "There is no qualification test."
    if share := value(kind, "gold_share"):
        yield f"If the task is opened with --gold, {share:.0%} of each annotator's items are gold answers."
    elif "gold answers" in kind.controls:
        yield "There are no hidden gold answers."
    if audit := value(kind, "audit_share"):
        condition = "whose class is declared" if kind.answers_from_draw else "that the detectors agree on"
        yield f"Annotators check {audit:.0%} of the {kind.noun}s {condition}."
    if "decoys" in kind.controls and (decoys := value(kind, "decoy_share")) != 0:
        number = "Enough decoys to limit false Yes answers" if decoys is None else f"{decoys:g} decoys per post"
        yield f"{number} are hidden: posts known not to be in the language."


def _pace(kind: Kind) -> Iterator[str]:
    if kind.answered_here:
        yield f"Before there are any answers, forecasts assume {kind.seconds} seconds per answer."


def _records(kind: Kind) -> Iterator[str]:
    if kind.records.together:
        yield f"Records with the same {kind.records.together} are drawn together."
    if kind.records.kept:
        yield f"Exported sets also contain: {', '.join(kind.records.kept)}."
    if kind.records.split:
        yield f"The field {kind.records.split} contains the split of each {kind.noun}."
    elif kind.publication.splits:
        fields = " or ".join(kind.records.apart)
        yield (
            f"Records with the same {fields} are never in different splits."
            if fields
            else "Any record can be in any split."
        )


def _formats(kind: Kind) -> Iterator[str]:
    formats = ", ".join(f"{name} ({layout})" if layout else name for name, layout in kind.publication.formats.items())
    yield (f"Published as {formats}, JSONL and Parquet." if formats else "Published as JSONL and Parquet only.")


def _guidelines(kind: Kind) -> Iterator[str]:
    if not kind.answered_here:
        return
    if not kind.guidelines:
        yield "There are no guidelines, so annotators see only the question."
        return
    fallback = f"English ({ENGLISH})" if ENGLISH in kind.guidelines else _name(next(iter(kind.guidelines)))
    languages = _names(sorted(kind.guidelines))
    yield f"Guidelines in {languages}. Annotators of other languages read them in {fallback}."


def _languages(kind: Kind) -> Iterator[str]:
    for code, language in kind.languages.items():
        autonym = f", autonym {language.autonym}" if language.autonym != language.name else ""
        script = f", written in {language.script}" if language.script else ""
        under = f". Detectors may label it as {_name(language.under)}" if language.under else ""
        yield f"The kind adds the language {language.name} ({code}){autonym}{script}{under}."
