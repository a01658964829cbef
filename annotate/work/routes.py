"""Which queue serves which language, and who reads it: the LanguageRoute table, read once and asked by the kinds."""

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

# --- The languages that tasks' files add to the list: known in this process once they have been looked for.
#
# A process learns those of a task when it touches the task's kind. Code that meets a language earlier, for example
# when people or routes are entered, asks here.


def learn_languages() -> None:
    """Give the languages of all tasks' files their names, in one statement."""
    files = Task.objects.filter(kind_file__contains="languages").order_by("pk")
    for slug, text in files.values_list("kind_slug", "kind_file").distinct():
        kind_of(slug, text)


def is_language(code: str) -> bool:
    """Whether a code is on the list or was added by a task's file. The tasks are asked only where it is not known."""
    if code not in LANGUAGES:
        learn_languages()
    return code in LANGUAGES


def language_named(code: str) -> str:
    """The code of the language that a code of any standard stands for; the code itself where it stands for none."""
    return code if is_language(code) else code_of(code) or code


def unknown_code(code: str) -> str:
    """What to say of a code that is no language's."""
    near = hint(code) or "write a code such as de or zh-CN"
    stop = "" if near.endswith("?") else "."
    return (
        f"{code!r} is not a language code known here; {near}{stop} A language that is not on the list is added by a "
        "file with a table [languages.CODE]: give it to add_annotators as --languages, or to open_task as --kind."
    )


# --- Changing which queue serves a language, and what is tried after it. How routes are read is in routes.py.
#
# Changes hold for every open task from then on; units that wait already stay in their queue until they are rerouted.


def route_of(language: str) -> LanguageRoute:
    """The route of a language, `und` for where no language is seen. NotFound if it has a queue of its own."""
    found = LanguageRoute.objects.filter(language=language).first()
    if found is None:
        raise NotFound(f"There is no route of {language!r}; it may have been deleted meanwhile.")
    return found


def add_route(language: str, queue: str, extra_candidates: Iterable[str], *, never_agree: bool) -> LanguageRoute:
    """A language, or `und`, that waits in another queue than its own, or is told more of. InvalidAnswer for an unknown
    code, and where it has a route already.
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
    """The route as it is now, and the names of what is otherwise. InvalidAnswer for an unknown code."""
    route = route_of(language)
    values = _values(queue, extra_candidates, never_agree=never_agree)
    changed = [name for name, value in values.items() if getattr(route, name) != value]
    for name in changed:
        setattr(route, name, values[name])
    route.save(update_fields=changed)
    return route, changed


def remove_route(language: str) -> LanguageRoute:
    """From now on the language has its own queue. Returns what was removed."""
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
    """The LanguageRoute table for one task, whose kind decides which queue is asked."""

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
        """A code without a route that stands for finer labels goes where the first of them goes; and languages that
        the task's file adds under one code share a queue, since detectors cannot tell them apart.
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
        """The queue of the task in which the texts of a language wait."""
        return self.task.kind.routing.queue(language, self)

    @cached_property
    def labels(self) -> dict[str, list[str]]:
        """Queue -> the languages that it stands for: its readers are the people who read one of them."""
        found: dict[str, list[str]] = defaultdict(list)
        for language in self.task.languages or self.task.labels:
            found[self.queue_in(language)].append(language)
        return dict(found)

    def with_extras(self, candidates: Iterable[str]) -> list[str]:
        """Each candidate, followed by the languages to try after it; none is repeated."""
        widened: dict[str, None] = {}
        for code in candidates:
            route = self.rows.get(code)
            widened.update(dict.fromkeys([code, *(route.extra_candidates if route else ())]))
        return list(widened)

    def readers(self) -> dict[str, set[int]]:
        """Queue -> ids of the active annotators who may work in it."""
        return readers_of([self])[self.task.pk].able


@dataclass(frozen=True)
class Readers:
    """One task's queues -> ids of active annotators. reads: those who read one of its languages well enough; passed:
    those of them who are qualified, if a test is required; agreed: those of them who agreed to it, if such work may
    hurt; able: those of them who are not paused, and so may work.
    """

    reads: dict[str, set[int]]
    passed: dict[str, set[int]]
    agreed: dict[str, set[int]]
    able: dict[str, set[int]]


def readers_of(all_routes: Sequence[Routes]) -> dict[int, Readers]:
    """By the task's key; several tasks take as many statements as one."""
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
    """Language, level and id of every active annotator who reads a language of the tasks."""
    languages = {code for task in tasks for code in task.read_in}
    rows = AnnotatorLanguage.objects.filter(annotator__user__is_active=True, language__in=languages)
    return list(rows.order_by().values_list("language", "level", "annotator_id"))
