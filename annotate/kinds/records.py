"""What kinds of questions about records have in common: they go to people who read the record's language, all of them,
and whoever cannot tell skips.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from annotate.core.refusals import InvalidAnswer
from annotate.kinds.kind import Answer, TaskType

# As XGLUE's authors had it: three people, of whom two must agree, each tested, and watched by gold answers.
KNOBS = {
    "redundancy": 3,
    "rounds": 1,
    "skip_limit": 5,
    "on_conflict": "DISCARDED",
    # Of those who guess one in nine passes, of those who are right in 80% nine in ten (quality/PAUSING.md).
    "test_items": 10,
    "pass_mark": 0.8,
    "tries": 2,
    "gold_share": 0.1,
    # No detector agrees on anything here.
    "audit_share": 0,
    "audit_least": 0,
    "decoy_share": 0,
}


def candidates(unit):
    return [unit.item.language]


def agreed(item, task):
    return None


def offered(unit):
    return unit.task.labels


def check(answer: Answer, unit) -> None:
    if answer.label not in unit.task.labels:
        raise InvalidAnswer(f"{answer.label!r} is no answer here; it is one of {', '.join(unit.task.labels)}.")
    if answer.reason:
        raise InvalidAnswer("An answer here has no reason. Write what is to be said in the comment.")


def guidelines(slug: str) -> dict[str, str]:
    """Language -> Markdown, from the files SLUG.LANGUAGE.md of this folder."""
    found = Path(__file__).parent.glob(f"{slug}.*.md")
    return {path.name.split(".")[1]: path.read_text(encoding="utf-8") for path in sorted(found)}


def record_type(
    *,
    slug: str,
    title: str,
    fields: Sequence[str],
    answers: Mapping[str, tuple[str, str]],
    template: str,
    ordered: bool = False,
    together: str = "",
    apart: Sequence[str] = (),
    published: str = "",
    knobs: Mapping[str, object] = MappingProxyType({}),
) -> TaskType:
    """A kind of question about records: answers are label -> (its name, what it means), best first if `ordered`."""
    return TaskType(
        slug=slug,
        title=title,
        template=template,
        sheet="",
        guidelines=guidelines(slug),
        labels=list(answers),
        knobs={**KNOBS, **knobs},
        candidates=candidates,
        agreed=agreed,
        offered=offered,
        reasons={},
        check=check,
        records=True,
        fields=fields,
        answers=answers,
        ordered=ordered,
        together=together,
        apart=apart,
        published=published,
    )
