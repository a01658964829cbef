"""Routes: the queue that serves each language, and the readers of each queue."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.db import transaction

from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.kinds import kind_of
from annotate.models import AnnotatorLanguage, Consent, LanguageRoute, Pause, Task
from annotate.quality.guideline_versions import qualified_in
from corpora.core.language_codes import code_of, hint
from corpora.core.languages import LANGUAGES, UND

# --- languages that tasks' files add to the list, known to a process once it has looked for them
#
# A process learns a task's languages when it uses the task's kind. Code that needs a language earlier, for example when
# people or routes are entered, asks here.


def learn_languages() -> None:
    """Register the languages of all tasks' files, in one statement."""
    files = Task.objects.filter(kind_file__contains="languages").order_by("pk")
    for slug, text in files.values_list("kind_slug", "kind_file").distinct():
        kind_of(slug, text)


def is_language(code: str) -> bool:
    """Return whether a code is on the list or added by a task's file. The tasks are read only for an unlisted code."""
    if code not in LANGUAGES:
        learn_languages()
    return code in LANGUAGES


def language_named(code: str) -> str:
    """Return the language code for a code of any standard, or the code itself if it is unknown."""
    return code if is_language(code) else code_of(code) or code


def unknown_code(code: str) -> str:
    """Return the message for an unknown language code."""
    near = hint(code) or "write a code such as de or zh-CN"
    stop = "" if near.endswith("?") else "."
    return (
        f"{code!r} is not a language code known here; {near}{stop} A language that is not on the list is added by a "
        "file with a table [languages.CODE]: give it to add_annotators as --languages, or to open_task as --kind."
    )


# --- changes of routes
#
# Changes of queues and candidates apply to every open task from then on, `never_agree` to tasks opened later. Waiting
# units stay in their queues until they are rerouted.


def route_of(language: str) -> LanguageRoute:
    """Return the route of a language, or of `und` for posts without a detected language.

    Raises NotFound if the language has its own queue.
    """
    found = LanguageRoute.objects.filter(language=language).first()
    if found is None:
        raise NotFound(f"There is no route of {language!r}; it may have been deleted meanwhile.")
    return found


def add_route(language: str, queue: str, extra_candidates: Iterable[str], *, never_agree: bool) -> LanguageRoute:
    """Add a route for a language or `und`.

    language: language that the route is for.
    queue: queue in which its texts wait.
    extra_candidates: languages to try after it.
    never_agree: whether the detectors' agreement on it does not count, in tasks opened later.

    Raises InvalidAnswer for an unknown code, or if the language has a route already.
    """
    _check([*([] if language == UND else [language])])
    values = _values(queue, extra_candidates, never_agree=never_agree)
    route, new = LanguageRoute.objects.get_or_create(language=language, defaults=values)
    if not new:
        raise InvalidAnswer(f"There is a route of {language} already; change that one.")
    return route


@transaction.atomic
def change_route(
    language: str, queue: str, extra_candidates: Iterable[str], *, never_agree: bool
) -> tuple[LanguageRoute, list[str]]:
    """Change a route. Returns the route and the names of the fields that changed.

    Raises InvalidAnswer for an unknown code.
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


def _values(queue: str, extra_candidates: Iterable[str], *, never_agree: bool) -> dict:
    queue, extra = language_named(queue), list(dict.fromkeys(map(language_named, extra_candidates)))
    _check([queue, *extra])
    return {"queue": queue, "extra_candidates": extra, "never_agree": never_agree}


def _check(codes: Iterable[str]) -> None:
    if unknown := [code for code in codes if not is_language(code)]:
        raise InvalidAnswer(unknown_code(unknown[0]))


@dataclass(frozen=True)
class Routes:
    """The LanguageRoute table as it applies to one task, whose kind determines the queues."""

    rows: dict[str, LanguageRoute]
    task: Task

    @classmethod
    def load(cls, task: Task) -> "Routes":
        (routes,) = cls.load_all([task])
        return routes

    @classmethod
    def load_all(cls, tasks: Iterable[Task]) -> list["Routes"]:
        rows = {route.language: route for route in LanguageRoute.objects.all()}
        return [cls(rows, task) for task in tasks]

    def queue_of(self, language: str) -> str:
        """Return the queue of a language.

        A code without a route that stands for finer labels uses the queue of the first of them. Languages that the
        task's file adds under one code share a queue, since detectors cannot distinguish them.
        """
        if route := self.rows.get(language):
            return route.queue
        kind = self.task.kind
        if finer := kind.finer(language):
            return self.queue_of(finer[0])
        under = kind.under(language)
        if not under:
            return language
        first = kind.finer(under)[0]
        return self.queue_of(first) if first != language else self.rows[under].queue if under in self.rows else under

    def queue_in(self, language: str) -> str:
        """Return the queue of the task in which a language's texts wait."""
        return self.task.kind.routing.queue(language, self)

    @cached_property
    def labels(self) -> dict[str, list[str]]:
        """Queue -> its languages. The readers of a queue are the people who read one of these."""
        found: dict[str, list[str]] = defaultdict(list)
        for language in self.task.languages or self.task.labels:
            found[self.queue_in(language)].append(language)
        return dict(found)

    def with_extras(self, candidates: Iterable[str]) -> list[str]:
        """Return each candidate followed by the languages to try after it, without duplicates."""
        widened: dict[str, None] = {}
        for code in candidates:
            route = self.rows.get(code)
            widened.update(dict.fromkeys([code, *(route.extra_candidates if route else ())]))
        return list(widened)

    def readers(self) -> dict[str, set[int]]:
        """Return queue -> ids of the active annotators who may work in it."""
        return readers_of([self])[self.task.pk].able


@dataclass(frozen=True)
class Readers:
    """One task's readers, as queue -> ids of active annotators.

    reads: annotators who read one of its languages well enough.
    passed: those of them who are qualified, if there is a test.
    agreed: those of them who consented, if the work is sensitive.
    able: those of them who are not paused and so may work.
    """

    reads: dict[str, set[int]]
    passed: dict[str, set[int]]
    agreed: dict[str, set[int]]
    able: dict[str, set[int]]


def readers_of(all_routes: Sequence[Routes]) -> dict[int, Readers]:
    """Return task id -> readers, in as many statements as for one task."""
    tasks = [routes.task for routes in all_routes]
    levels = _levels(tasks)
    paused: dict[int, set[int]] = defaultdict(set)
    for task, person in Pause.objects.filter(task__in=tasks, lifted_at=None).values_list("task_id", "annotator_id"):
        paused[task].add(person)
    held = qualified_in([task for task in tasks if task.test_items])
    willing: dict[int, set[int]] = {task.pk: set() for task in tasks if task.kind.sensitive}
    if willing:
        consents = Consent.objects.filter(task__in=willing, withdrawn_at=None)
        for task, person in consents.values_list("task_id", "annotator_id"):
            willing[task].add(person)
    found = {}
    for routes in all_routes:
        task, reads = routes.task, defaultdict(set)
        wanted, read_by = set(task.read_in), task.kind.routing.read_by
        for language, level, person in levels:
            if language in wanted and level >= task.least_level:
                for queue in read_by(language, task, routes):
                    reads[queue].add(person)
        passed = dict(reads)
        if task.test_items:
            able: dict[str, set[int]] = defaultdict(set)
            for language, people in held[task.pk].items():
                able[routes.queue_in(language)] |= people
            passed = {queue: people & able[queue] for queue, people in reads.items()}
        agreed = passed
        if task.pk in willing:
            agreed = {queue: people & willing[task.pk] for queue, people in passed.items()}
        may_work = {queue: people - paused[task.pk] for queue, people in agreed.items()}
        found[task.pk] = Readers(dict(reads), passed, agreed, may_work)
    return found


def _levels(tasks: Iterable[Task]) -> list[tuple[str, int, int]]:
    """Return language, level and annotator id for the languages of the tasks, for active annotators."""
    languages = {code for task in tasks for code in task.read_in}
    rows = AnnotatorLanguage.objects.filter(annotator__user__is_active=True, language__in=languages)
    return list(rows.order_by().values_list("language", "level", "annotator_id"))
