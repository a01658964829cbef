"""Routes: the queue that serves each language, and the readers of each queue."""

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
from annotate.quality.guideline_versions import qualified_in
from corpora.core import languages
from corpora.core.languages import LANGUAGES, UND, code_named, code_of

# --- languages that are not on the list but are added by the file of a task
#
# A process registers the languages of a task's file when it first uses the task's kind. Code that may need such a
# language earlier, for example when people or routes are entered, calls these functions.


def learn_languages() -> None:
    """Register the languages added by the files of any task."""
    files = Task.objects.filter(kind_file__contains="languages").order_by("pk")
    for slug, text in files.values_list("kind_slug", "kind_file").distinct():
        kind_of(slug, text)


def is_language(code: str) -> bool:
    """Return whether a language code is standard, or was added by the file of a task.

    The tasks are read only if the code is unknown.
    """
    if code not in LANGUAGES:
        learn_languages()
    return code in LANGUAGES


def language_named(code: str) -> str:
    """Return the label code for a language code of any standard or a name, or the same text if it is unknown."""
    return code if is_language(code) else code_of(code) or code_named(code) or code


def unknown_code(code: str) -> str:
    """Return the message for an unknown language code."""
    return (
        f"{code!r} {languages.unknown_code(code)} A code of your own is defined in the file of a task's question, in a "
        "table [languages.CODE]."
    )


# --- changes of routes
#
# A change to the queue or the candidates immediately applies to all open tasks. A change to `never_agree` applies only
# to tasks that are opened later. Waiting units stay in their queues until they are rerouted.


def route_of(language: str) -> LanguageRoute:
    """Return the route of a language, or of `und` for posts without a detected language.

    Raise NotFound if the language has its own queue.
    """
    route = LanguageRoute.objects.filter(language=language).first()
    if route is None:
        raise NotFound(f"There is no route of {language!r}. It may have been deleted.")
    return route


def add_route(language: str, queue: str, extra_candidates: Iterable[str], *, never_agree: bool) -> LanguageRoute:
    """Add a route for a language or `und`.

    language: language that the route is for.
    queue: queue in which texts in the language wait.
    extra_candidates: languages with queues to try after the queue of `language`.
    never_agree: whether to ignore the detectors' agreement on the language, in tasks that are opened later.

    Raise InvalidAnswer if a code is unknown or the language already has a route.
    """
    language = language_named(language)
    _check([*([] if language == UND else [language])])
    values = _values(queue, extra_candidates, never_agree=never_agree)
    route, new = LanguageRoute.objects.get_or_create(language=language, defaults=values)
    if not new:
        raise InvalidAnswer(f"A route of {language} already exists. Change that route.")
    return route


@transaction.atomic
def change_route(
    language: str, queue: str, extra_candidates: Iterable[str], *, never_agree: bool
) -> tuple[LanguageRoute, list[str]]:
    """Change a route. Returns the route and the names of the fields that changed.

    Raise InvalidAnswer for an unknown code.
    """
    route = route_of(language)
    values = _values(queue, extra_candidates, never_agree=never_agree)
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


def _values(queue: str, extra_candidates: Iterable[str], *, never_agree: bool) -> dict[str, Any]:
    queue, extra = language_named(queue), list(dict.fromkeys(map(language_named, extra_candidates)))
    _check([queue, *extra])
    return {"queue": queue, "extra_candidates": extra, "never_agree": never_agree}


def _check(codes: Iterable[str]) -> None:
    if unknown := [code for code in codes if not is_language(code)]:
        raise InvalidAnswer(unknown_code(unknown[0]))


class Route(NamedTuple):
    """The columns of a LanguageRoute that affect people's work. Reading a model instead takes ten times as long."""

    queue: str
    extra_candidates: list[str]


def route_rows() -> dict[str, Route]:
    """Return the routes of all languages that have a route."""
    rows = LanguageRoute.objects.order_by().values_list("language", *Route._fields)
    return {language: Route(*columns) for language, *columns in rows}


@dataclass(frozen=True)
class Routes:
    """The LanguageRoute table as it applies to one task. The task's kind determines the queues."""

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

        A code without a route that covers several finer labels has the queue of the first label. If the task's file
        adds several languages under one code, they share a queue, because detectors cannot distinguish them.
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
        """Return the queue in which texts in a language wait in this task."""
        return self.queue_of(language) if self.kind.routing.is_routed else language

    @cached_property
    def labels(self) -> dict[str, list[str]]:
        """The languages of each queue. People who read one of the languages are readers of the queue."""
        languages_of_queue: dict[str, list[str]] = defaultdict(list)
        for language in self.task.languages or self.task.labels:
            languages_of_queue[self.queue_in(language)].append(language)
        return dict(languages_of_queue)

    def with_extras(self, candidates: Iterable[str]) -> list[str]:
        """Return the candidates, each followed by the languages to try next according to its route; no duplicates."""
        widened: dict[str, None] = {}
        for code in candidates:
            route = self.rows.get(code)
            widened.update(dict.fromkeys([code, *(route.extra_candidates if route else ())]))
        return list(widened)

    def readers(self) -> dict[str, set[int]]:
        """Return the ids of the active annotators who may work in each queue."""
        return readers_of([self])[self.task.pk].able


@dataclass(frozen=True)
class Readers:
    """The readers of one task. Each field contains the ids of active annotators for each queue.

    reads: annotators who may work on the task and read one of the queue's languages well enough.
    passed: annotators in `reads` who have passed the test; all of them if there is no test.
    agreed: annotators in `passed` who have consented to the work; all of them if it is not sensitive.
    able: annotators in `agreed` who are not paused and have not reached their quota, so that they can work now.
    """

    reads: dict[str, set[int]]
    passed: dict[str, set[int]]
    agreed: dict[str, set[int]]
    able: dict[str, set[int]]


def readers_of(all_routes: Sequence[Routes]) -> dict[int, Readers]:
    """Return the readers of each task, by the task's id, with as many statements as for one task."""
    tasks = [routes.task for routes in all_routes]
    read_in = {task.pk: list(dict.fromkeys(task.reading_languages)) for task in tasks}
    levels = _levels({code for codes in read_in.values() for code in codes})
    paused, roles = _standing(tasks)
    tested = [task for task in tasks if task.test_items]
    held = qualified_in(tested) if tested else {}
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
        outsiders_may = may_annotate(task, None)
        for language in read_in[task.pk]:
            able_to = [people for level, people in levels[language].items() if level >= task.least_level]
            people = set[int]().union(*able_to)
            people = people if outsiders_may else people & roles_here.keys()
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
        may_work = {queue: people - stopped for queue, people in agreed.items()} if stopped else agreed
        readers[task.pk] = Readers(dict(reads), passed, agreed, may_work)
    return readers


PAUSED, FULL = "paused", "full"  # a person is paused in a task; replaces the role of a member whose quota is reached


def _standing(tasks: Iterable[Task]) -> tuple[dict[int, set[int]], dict[int, dict[int, str]]]:
    """Return two dicts keyed by task: the people who are paused, and the role of each member."""
    is_full = When(quota__lte=F("answered"), then=Value(FULL))
    paused = Pause.objects.filter(task__in=tasks, lifted_at=None).order_by()
    answers = Judgment.objects.live().answers().filter(annotator=OuterRef("annotator"), unit__task=OuterRef("task"))
    number = answers.order_by().values("unit__task").annotate(number=Count("pk")).values("number")
    answered = Case(When(quota__isnull=False, then=Coalesce(Subquery(number), 0)), default=0)
    members = Membership.objects.filter(task__in=tasks).annotate(answered=answered).order_by()
    # Use a single statement, because this runs after answers.
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
    """Return whether a person may annotate in a task, provided that they read one of its languages.

    role: the person's role as a member of the task; None if they are not a member.
    """
    return role != Membership.MANAGER and not (task.members_only and role is None)


def _levels(languages: Collection[str]) -> dict[str, dict[int, set[int]]]:
    """Return the ids of the active annotators who read the languages, by language and level."""
    rows = AnnotatorLanguage.objects.filter(annotator__user__is_active=True, language__in=languages)
    levels: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for language, level, person in rows.order_by().values_list("language", "level", "annotator_id"):
        levels[language][level].add(person)
    return levels
