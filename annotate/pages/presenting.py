"""What the pages show, put together from the records; changes nothing and decides nothing."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote_plus, urlencode

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from annotate.core import stages
from annotate.core.labels import label_name, negative
from annotate.core.refusals import Refusal
from annotate.kinds import TASK_TYPES, name_of
from annotate.kinds.kind import TaskType
from annotate.kinds.language import UNDEFINED_REASONS
from annotate.models import Annotator, Judgment, Lease, Task, Unit
from annotate.quality.guidelines import current
from annotate.quality.qualification import FAILED, NONE_NEEDED, PASSED, Standing
from annotate.work import adjudication
from annotate.work.routing import Routes, is_audit, queues_of, read_in
from corpora.core.languages import LANGUAGES, UND
from corpora.errors import CorpusError
from corpora.models import Item
from corpora.store import posts_by_author

# HTML in the source is shown as text, so a manager's Markdown cannot carry a script.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


def markdown(source: str) -> SafeString:
    return mark_safe(_MARKDOWN.render(source))  # noqa: S308 - rendered with HTML switched off


def guidelines(task: Task, language: str = "") -> SafeString:
    """The guidelines that hold, in the language of what is on the screen."""
    found = current(task, language) if language else current(task)
    return markdown(found.text if found else "")


@dataclass(frozen=True)
class Choice:
    """A language to answer with. key: the physical key (KeyboardEvent.code), or empty."""

    code: str
    key: str = ""

    @property
    def name(self) -> str:
        return label_name(self.code)

    @property
    def autonym(self) -> str:
        return LANGUAGES[self.code].autonym if self.code in LANGUAGES else ""

    @property
    def cap(self) -> str:
        return self.key.removeprefix("Digit")


def own_choices(annotator: Annotator, task: Task) -> list[Choice]:
    """A button for each language that the annotator reads and each that their queues stand for.

    It depends on the annotator alone, never on the unit: neither buttons nor keys hint at the votes.
    """
    routes = Routes.load()
    own = annotator.languages.filter(level__gte=task.least_level, language__in=read_in(task))
    codes = dict.fromkeys(own.order_by("-level", "language").values_list("language", flat=True))
    for labels in queues_of(annotator, task, routes).values():
        codes.update(dict.fromkeys(labels))
    return [Choice(code, f"Digit{n}" if n <= 9 else "") for n, code in enumerate(codes, 1)]


def by_name(task: Task) -> list[Choice]:
    return sorted((Choice(code) for code in task.labels), key=lambda choice: choice.name)


def question_about(task: Task) -> str:
    """What is asked of every unit. The title of a task is its own; of one about languages it says what is asked."""
    kind = TASK_TYPES[task.task_type]
    return kind.title if kind.records and task.task_type != "imported" else task.title


@dataclass(frozen=True)
class Option:
    """An answer about a record: its label, what it is called and means, and the physical key, or empty."""

    label: str
    name: str
    meaning: str = ""
    key: str = ""

    @property
    def cap(self) -> str:
        return self.key.removeprefix("Digit")


def options(task: Task) -> list[Option]:
    """The answers in the task's order, best first: the first has the key 1, so that keys lie as the buttons do."""
    meanings = {label: meaning for label, (_, meaning) in TASK_TYPES[task.task_type].answers.items()}
    return [
        Option(label, name_of(label, task), meanings.get(label, ""), f"Digit{n}" if n <= 9 else "")
        for n, label in enumerate(task.labels, 1)
    ]


@dataclass(frozen=True)
class Field:
    name: str
    paragraphs: list[str]
    language: str


def record(item: Item, task_type: TaskType) -> dict:
    """What _record.html shows: a record's fields in the order of the task type, or a post's paragraphs."""
    if not task_type.fields:
        return {"paragraphs": item.text.splitlines()}
    fields = {name: Field(name, item.fields[name].splitlines(), item.language) for name in task_type.fields}
    return {"record": task_type.template, "fields": fields}


def tests_to_come(states: Iterable[Standing], waiting: dict[str, int]) -> list[str]:
    """What passing each test would open, and how many tries are left of one that was not passed."""
    said = []
    for found in states:
        if found.step in (NONE_NEEDED, PASSED, FAILED):
            continue
        tries = "1 try" if found.tries_left == 1 else f"{found.tries_left} tries"
        left = f"you have {tries} left" if found.last and found.tries_left else ""
        if count := waiting.get(found.language, 0):
            behind = f"{count:,} wait{'s' if count == 1 else ''} in {found.name} once you have passed"
            said.append(f"{'; '.join(filter(None, [behind, left]))}.")
        elif left:
            said.append(f"Test in {found.name}: {left}.")
    return said


def in_a_line(unit: Unit) -> str:
    """The text of a list's row: a post, or the fields of a record one after the other."""
    fields = TASK_TYPES[unit.task.task_type].fields
    return " · ".join(unit.item.fields[name] for name in fields) if fields else unit.item.text


def question(lease: Lease, annotator: Annotator) -> dict:
    """What the queue shows of a unit: the text and the buttons, nothing of votes, queue or other people."""
    unit, task = lease.unit, lease.unit.task
    task_type = TASK_TYPES[task.task_type]
    shown = {"lease": lease, **record(unit.item, task_type)}
    if task_type.records:
        return {**shown, "question": "annotate/_question.html", "options": options(task)}
    return {
        **shown,
        "question": task_type.template,
        "und": UND,
        "reasons": [(slug, words, f"Digit{n}") for n, (slug, words) in enumerate(task_type.reasons.items(), 1)],
        **(about(unit) if unit.asked else {"choices": own_choices(annotator, task), "everything": by_name(task)}),
    }


def about(unit: Unit) -> dict:
    """The language that is asked about, and the labels of Yes and No."""
    return {"asked": Choice(unit.asked), "yes": unit.asked, "no": negative(unit.asked)}


def sheet(leases: list[Lease]) -> dict:
    """What a sheet shows: the texts, and one question about all of them."""
    unit = leases[0].unit
    return {
        "question": TASK_TYPES[unit.task.task_type].sheet,
        "posts": [(lease.pk, lease.unit.item.text.splitlines()) for lease in leases],
        "und": UND,
        **about(unit),
    }


@dataclass(frozen=True)
class SheetOutcome:
    """How many answers of a sheet were saved, and why others were not: each sentence with how often it was said."""

    saved: int
    sent: int
    refusals: list[tuple[str, int]]


def sheet_outcome(sent: int, refused: list[Refusal]) -> SheetOutcome:
    return SheetOutcome(sent - len(refused), sent, Counter(map(str, refused)).most_common())


# Where an adjudicator looks a text up. The text goes there only when a link is followed.
SEARCHES = (
    ("Wiktionary", "https://en.wiktionary.org/w/index.php?search={}"),
    ("Wikipedia", "https://www.wikipedia.org/search-redirect.php?search={}"),
    ("DuckDuckGo", "https://duckduckgo.com/?q={}"),
)
OTHER_POSTS = 20


def dossier(unit: Unit, annotator: Annotator) -> dict:
    """What an adjudicator sees of a unit: everything; but of an audit nothing of what detectors and people said.

    Else the check would lean towards what it checks. Nor does it show once it is decided, for the decision may be
    taken back.
    """
    blind = is_audit(unit)
    judgments = unit.judgments.select_related("annotator__user", "lease")
    own = judgments.filter(annotator=annotator, voided_at=None).first()
    known = {
        "judgments": [(judgment, code_or_name(judgment.label, unit.task)) for judgment in judgments],
        "transitions": unit.transitions.select_related("by", "judgment"),
    }
    task_type = TASK_TYPES[unit.task.task_type]
    return {
        "blind": blind,
        **({} if blind else known),
        **record(unit.item, task_type),
        **(_about_record(unit) if task_type.records else _about_post(unit, blind)),
        "own": own,
        "own_said": code_or_name(own.label, unit.task) if own else "",
        "came_to": code_or_name(unit.label, unit.task),
        "open": unit.stage == stages.ADJUDICATION,
    }


def _about_record(unit: Unit) -> dict:
    fields = TASK_TYPES[unit.task.task_type].fields
    words = unit.item.fields[fields[0]] if fields else unit.item.text
    # A query or a question is no word to be looked up in a dictionary.
    return {"options": options(unit.task), "searches": _searches(words, SEARCHES[1:])}


def _about_post(unit: Unit, blind: bool) -> dict:
    item = unit.item
    try:
        posts = posts_by_author(item.corpus.name, item.author, OTHER_POSTS + 1)
        trouble = ""
    except CorpusError as error:
        posts, trouble = [], str(error)
    return {
        **({} if blind else {"votes": item.votes.items()}),
        "posts": [post for post in posts if post["id"] != item.key][:OTHER_POSTS],
        "trouble": trouble,
        "searches": _searches(item.text, SEARCHES),
        "choices": ([], by_name(unit.task)) if blind else _likely_first(unit),
        **(about(unit) if unit.asked else {}),
        "und": UND,
    }


def _searches(words: str, places: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, address.format(quote_plus(words[:200]))) for name, address in places]


def _likely_first(unit: Unit) -> tuple[list[Choice], list[Choice]]:
    """The labels of the unit's candidates, and the rest of the task's list by name."""
    likely: dict[str, None] = {}
    for code in unit.candidates:
        labels = LANGUAGES[code].labels if code in LANGUAGES and LANGUAGES[code].labels else [code]
        likely.update(dict.fromkeys(label for label in labels if label in unit.task.labels))
    rest = sorted((Choice(code) for code in unit.task.labels if code not in likely), key=lambda choice: choice.name)
    return [Choice(code) for code in likely], rest


def code_or_name(label: str, task: Task) -> str:
    """A label where the languages' codes are shown; a record's answer is called by its name there too."""
    return name_of(label, task) if TASK_TYPES[task.task_type].records else label


def said(judgment: Judgment | None) -> str:
    """What an annotator's judgment was, in a word or two."""
    if judgment is None:
        return ""
    return name_of(judgment.label, judgment.unit.task) if judgment.label else "Skipped"


def reason(judgment: Judgment) -> str:
    """Why somebody said what they said: one of the reasons for Undefined in words, or their own words."""
    return UNDEFINED_REASONS.get(judgment.reason, judgment.reason)


def to_adjudicate(units: Iterable[Unit], task: Task) -> list[tuple[Unit, str, list[str]]]:
    """A row for each unit: its text, and of records what people answered, in the order of the labels."""
    answers: dict[int, list[str]] = {}
    if TASK_TYPES[task.task_type].records:
        live = Judgment.objects.filter(unit__in=[unit.pk for unit in units], kind=Judgment.ANSWER, voided_at=None)
        for unit, label in live.order_by("pk").values_list("unit_id", "label"):
            answers.setdefault(unit, []).append(label)
    return [
        (
            unit,
            in_a_line(unit),
            [name_of(label, task) for label in sorted(answers.get(unit.pk, ()), key=task.labels.index)],
        )
        for unit in units
    ]


def decided(judgments: Iterable[Judgment]) -> list[tuple[Judgment, str, str]]:
    """A row for each decision: the text of its unit, and the label."""
    return [
        (judgment, in_a_line(judgment.unit), code_or_name(judgment.label, judgment.unit.task)) for judgment in judgments
    ]


def decision(judgment: Judgment) -> str:
    if judgment.kind == Judgment.DISCARD:
        return "Discarded."
    return f"Settled as {name_of(judgment.label, judgment.unit.task)}."


def next_to_adjudicate(annotator: Annotator, task: Task, language: str, decided: Judgment) -> str:
    """The address of the next unit of the list that the adjudicator works through, or of the list."""
    query = {"language": language} if language else {}
    unit = adjudication.to_adjudicate(task, annotator, language).first()
    address = reverse("adjudicate", args=[task.name, unit.pk]) if unit else reverse("adjudication", args=[task.name])
    return f"{address}?{urlencode({**query, 'decided': decided.unit_id})}"


def rerouted(counts: dict[str, int]) -> str:
    """What routing.reroute did."""
    queues, adjudication = counts["queues"], counts["adjudication"]
    return f"Sent on: {queues:,} to readers of their next language, {adjudication:,} to adjudication."


def undecidable(count: int) -> str:
    """What to do about the units that progress.undecidable counts; empty where there are none."""
    if not count:
        return ""
    posts = (
        "1 post waits for an adjudicator who has not read it"
        if count == 1
        else (f"{count:,} posts wait for an adjudicator who has not read them")
    )
    return f"{posts}; make another person an adjudicator."


def for_another(count: int, task: Task) -> str:
    """Why an adjudicator's list lacks units that wait for one."""
    if not count:
        return ""
    noun = "record" if TASK_TYPES[task.task_type].records else "post"
    if count == 1:
        return f"1 {noun} waits for another adjudicator, since you have judged it."
    return f"{count:,} {noun}s wait for another adjudicator, since you have judged them."
