"""Routes: the queue of each language, and the readers of each queue."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Case, Count, F, OuterRef, Subquery, Value, When
from django.db.models.functions import Coalesce

from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.kinds import Kind, kind_of
from annotate.models import AnnotatorLanguage, Consent, Judgment, LanguageRoute, Membership, Pause, Task
from annotate.quality.guideline_versions import qualified_annotators
from corpora.core import languages
from corpora.core.languages import LANGUAGES, UND, code_named, code_of

# --- languages that are defined in a task's file
#
# A process registers the languages of a task's file when it first uses the task's kind. Code that may need them
# earlier, e.g. when annotators or routes are added, calls these functions.


def register_languages() -> None:
    """Register the languages that are defined in the files of all tasks."""
    files = Task.objects.filter(kind_file__contains="languages").order_by("pk")
    for slug, text in files.values_list("kind_slug", "kind_file").distinct():
        kind_of(slug, text)


def is_language(code: str) -> bool:
    """Return whether a language code is standard or defined in a task's file.

    The tasks are queried only if the code is not known yet.
    """
    if code not in LANGUAGES:
        register_languages()
    return code in LANGUAGES


def to_language_code(code: str) -> str:
    """Convert a language name, or a code of any standard, to Assay's code. Unknown texts are returned unchanged."""
    return code if is_language(code) else code_of(code) or code_named(code) or code


def unknown_code(code: str) -> str:
    """Return the error message for an unknown language code."""
    return (
        f"{code!r} {languages.unknown_code(code)} A code of your own is defined in the file of a task's question, in a "
        "table [languages.CODE]."
    )


# --- changes of routes
#
# A new queue or new candidates apply to all open tasks immediately. A change to `never_agree` applies only to tasks
# opened later. Waiting units stay in their queues until they are rerouted.


def route_of(language: str) -> LanguageRoute:
    """Return the route of a language, or of `und` for posts without a detected language.

    Raise NotFound if the language has no route, which means that it has its own queue.
    """
    route = LanguageRoute.objects.filter(language=language).first()
    if route is None:
        raise NotFound(f"There is no route for {language!r}. It may have been deleted.")
    return route


def add_route(language: str, queue: str, extra_candidates: Iterable[str], *, never_agree: bool) -> LanguageRoute:
    """Add a route for a language or `und`.

    language: the language that the route is for.
    queue: queue for texts in this language.
    extra_candidates: languages whose queues to try after the queue of `language`.
    never_agree: whether to ignore the detectors' agreement on this language, in tasks opened later.

    Raise InvalidAnswer if a code is unknown or the language already has a route.
    """
    language = to_language_code(language)
    _check_codes([*([] if language == UND else [language])])
    values = _check_values(queue, extra_candidates, never_agree=never_agree)
    route, new = LanguageRoute.objects.get_or_create(language=language, defaults=values)
    if not new:
        raise InvalidAnswer(f"A route for {language} already exists. Change that route.")
    return route


@transaction.atomic
def change_route(
    language: str, queue: str, extra_candidates: Iterable[str], *, never_agree: bool
) -> tuple[LanguageRoute, list[str]]:
    """Change a route. Returns the route and the names of the fields that changed.

    Raise InvalidAnswer if a code is unknown.
    """
    route = route_of(language)
    values = _check_values(queue, extra_candidates, never_agree=never_agree)
    changed = [name for name, value in values.items() if getattr(route, name) != value]
    for name in changed:
        setattr(route, name, values[name])
    route.save(update_fields=changed)
    return route, changed


def remove_route(language: str) -> LanguageRoute:
    """Remove a route, so that the language has its own queue again. Returns the removed route."""
    route = route_of(language)
    LanguageRoute.objects.filter(pk=route.pk).delete()
    return route


def _check_values(queue: str, extra_candidates: Iterable[str], *, never_agree: bool) -> dict[str, Any]:
    queue, extra = to_language_code(queue), list(dict.fromkeys(map(to_language_code, extra_candidates)))
    _check_codes([queue, *extra])
    return {"queue": queue, "extra_candidates": extra, "never_agree": never_agree}


def _check_codes(codes: Iterable[str]) -> None:
    if unknown := [code for code in codes if not is_language(code)]:
        raise InvalidAnswer(unknown_code(unknown[0]))


class Route(NamedTuple):
    """The columns of a LanguageRoute that affect routing. Loading model instances would take ten times as long."""

    queue: str
    extra_candidates: list[str]


def route_rows() -> dict[str, Route]:
    """Return all routes, by language."""
    rows = LanguageRoute.objects.order_by().values_list("language", *Route._fields)
    return {language: Route(*columns) for language, *columns in rows}


@dataclass(frozen=True)
class Routes:
    """All routes, as they apply to one task. The task's kind determines the queues."""

    rows: dict[str, Route]
    task: Task

    @classmethod
    def load(cls, task: Task) -> "Routes":
        return cls(route_rows(), task)

    @cached_property
    def kind(self) -> Kind:
        return self.task.kind

    def queue_of(self, language: str) -> str:
        """Return the queue of a language.

        If a code has no route and covers several finer labels, its queue is the first label's. Languages that a task's
        file defines under the same code share a queue, because detectors can't distinguish them.
        """
        if route := self.rows.get(language):
            return route.queue
        kind = self.kind
        if finer := kind.finer(language):
            return self.queue_of(finer[0])
        under = kind.languages[language].under if language in kind.languages else ""
        if not under:
            return language
        first = kind.finer(under)[0]
        return self.queue_of(first) if first != language else self.rows[under].queue if under in self.rows else under

    def queue_in(self, language: str) -> str:
        """Return the queue for texts in a language in this task."""
        return self.queue_of(language) if self.kind.routing.is_routed else language

    @cached_property
    def labels(self) -> dict[str, list[str]]:
        """The languages of each queue. Annotators who read one of them are the queue's readers."""
        languages_of_queue: dict[str, list[str]] = defaultdict(list)
        for language in self.task.languages or self.task.labels:
            languages_of_queue[self.queue_in(language)].append(language)
        return dict(languages_of_queue)

    def with_extras(self, candidates: Iterable[str]) -> list[str]:
        """Return the candidates, each followed by its route's extra candidates, without duplicates."""
        extended: dict[str, None] = {}
        for code in candidates:
            route = self.rows.get(code)
            extended.update(dict.fromkeys([code, *(route.extra_candidates if route else ())]))
        return list(extended)

    def readers(self) -> dict[str, set[int]]:
        """Return the ids of the active annotators who may work in each queue."""
        return readers_of([self])[self.task.pk].able


@dataclass(frozen=True)
class Readers:
    """A task's readers. Each field contains the ids of active annotators, by queue.

    reads: annotators who may work in the task and read one of the queue's languages well enough.
    passed: annotators in `reads` who have passed the test; all if there is no test.
    agreed: annotators in `passed` who have consented to the work; all if it is not sensitive.
    able: annotators in `agreed` who can work now, i.e. are not paused and have not reached their quota.
    """

    reads: dict[str, set[int]]
    passed: dict[str, set[int]]
    agreed: dict[str, set[int]]
    able: dict[str, set[int]]


def readers_of(all_routes: Sequence[Routes]) -> dict[int, Readers]:
    """Return each task's readers, by the task's id. The number of queries does not depend on the number of tasks."""
    tasks = [routes.task for routes in all_routes]
    read_in = {task.pk: list(dict.fromkeys(task.reading_languages)) for task in tasks}
    levels = _levels({code for codes in read_in.values() for code in codes})
    paused, roles = _load_pauses_and_roles(tasks)
    tested = [task for task in tasks if task.test_items]
    held = qualified_annotators(tested) if tested else {}
    willing: dict[int, set[int]] = {task.pk: set() for task in tasks if task.kind.sensitive}
    if willing:
        consents = Consent.objects.filter(task__in=willing, withdrawn_at=None)
        for pk, person in consents.values_list("task_id", "annotator_id"):
            willing[pk].add(person)
    readers = {}
    for routes in all_routes:
        task = routes.task
        reads: dict[str, set[int]] = defaultdict(set)
        roles_here, read_by = roles[task.pk], task.kind.routing.read_by
        is_open_to_all = may_annotate(task, None)
        for language in read_in[task.pk]:
            at_level = [people for level, people in levels[language].items() if level >= task.least_level]
            people = set[int]().union(*at_level)
            people = people if is_open_to_all else people & roles_here.keys()
            people -= {pk for pk, role in roles_here.items() if not may_annotate(task, role)}
            for queue in read_by(language, task, routes) if people else ():
                reads[queue] |= people
        passed = dict(reads)
        if task.test_items:
            able: dict[str, set[int]] = defaultdict(set)
            for language, people in held[task.pk].items():
                able[routes.queue_in(language)] |= people
            passed = {queue: people & able[queue] for queue, people in reads.items()}
        agreed = passed
        if task.pk in willing:
            agreed = {queue: people & willing[task.pk] for queue, people in passed.items()}
        stopped = paused[task.pk] | {person for person, role in roles[task.pk].items() if role == FULL}
        able_now = {queue: people - stopped for queue, people in agreed.items()} if stopped else agreed
        readers[task.pk] = Readers(dict(reads), passed, agreed, able_now)
    return readers


PAUSED, FULL = "paused", "full"  # a paused annotator; a member who has reached their quota


def _load_pauses_and_roles(tasks: Iterable[Task]) -> tuple[dict[int, set[int]], dict[int, dict[int, str]]]:
    """Return two dicts keyed by task: the paused annotators, and each member's role.

    The role is FULL if the member has reached their quota.
    """
    is_full = When(quota__lte=F("answered"), then=Value(FULL))
    paused = Pause.objects.filter(task__in=tasks, lifted_at=None).order_by()
    answers = Judgment.objects.live().answers().filter(annotator=OuterRef("annotator"), unit__task=OuterRef("task"))
    number = answers.order_by().values("unit__task").annotate(number=Count("pk")).values("number")
    answered = Case(When(quota__isnull=False, then=Coalesce(Subquery(number), 0)), default=0)
    members = Membership.objects.filter(task__in=tasks).annotate(answered=answered).order_by()
    # Use a single query, because this runs after answers.
    rows = paused.values_list("task_id", "annotator_id", Value(PAUSED)).union(
        members.values_list("task_id", "annotator_id", Case(is_full, default=F("role"))), all=True
    )
    paused_in: dict[int, set[int]] = defaultdict(set)
    roles: dict[int, dict[int, str]] = defaultdict(dict)
    for task, person, state in rows:
        if state == PAUSED:
            paused_in[task].add(person)
        else:
            roles[task][person] = state
    return paused_in, roles


def may_annotate(task: Task, role: str | None) -> bool:
    """Return whether an annotator may work in a task, provided that they read one of its languages.

    role: the annotator's role as a member of the task; None if they aren't a member.
    """
    return role != Membership.MANAGER and not (task.members_only and role is None)


def _levels(languages: Collection[str]) -> dict[str, dict[int, set[int]]]:
    """Return the ids of the active annotators who read each language, by language and reading level."""
    rows = AnnotatorLanguage.objects.filter(annotator__user__is_active=True, language__in=languages)
    levels: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for language, level, person in rows.order_by().values_list("language", "level", "annotator_id"):
        levels[language][level].add(person)
    return levels
