"""Proving oneself before the work: guidelines read, practice explained item by item, and a test of gold answers.

Whoever passes may work in that language of the task, as long as the major version of the guidelines holds that they
were tested on. Who may work is routing.py's to say, which asks for a Qualification; the pages are in
qualification_views.py. What is right is told by `answer` in practice, and by `missed` after a test, never before.
"""

from collections import Counter
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from annotate.core import lottery
from annotate.core.labels import label_name
from annotate.core.refusals import (
    AlreadyAnswered,
    InvalidAnswer,
    NotAllowed,
    NotFound,
    NotQualified,
    Outdated,
    WrongStage,
)
from annotate.kinds import TASK_TYPES, name_of
from annotate.kinds.kind import Answer
from annotate.models import Annotator, GoldAnswer, Guidelines, Qualification, Task, Trial, TrialAnswer, Unit
from annotate.quality.guidelines import current
from annotate.quality.pauses import check_not_paused
from annotate.work.queue import one_at_a_time
from annotate.work.routing import Routes, qualified, queues_read_by

NONE_NEEDED, READ, PRACTICE, TEST, PASSED, FAILED = "none_needed", "read", "practice", "test", "passed", "failed"
# What comes next for a person, and in words.
STEPS = {
    NONE_NEEDED: "no test is asked for",
    READ: "read the guidelines",
    PRACTICE: "practise",
    TEST: "take the test",
    PASSED: "passed",
    FAILED: "not passed, and no tries left",
}


@dataclass(frozen=True)
class Standing:
    """Where a person stands in one language of a task, under the major version of the guidelines that holds there.

    trial: the practice or test that they are in the middle of; last: the last test that they finished. earlier: the
    version under which they had passed or begun before, if it counts no more; interrupted: they were in a test of it.
    """

    language: str
    step: str
    guidelines: Guidelines | None
    tries_left: int
    trial: Trial | None = None
    last: Trial | None = None
    practised: bool = False
    earlier: Guidelines | None = None
    interrupted: bool = False

    @property
    def name(self) -> str:
        return label_name(self.language)


def languages_of(annotator: Annotator, task: Task) -> list[str]:
    """The languages of the task in which the annotator would work once they have passed; best-read first."""
    if not TASK_TYPES[task.task_type].records:
        return []
    return [code for codes in queues_read_by(annotator, task, Routes.load()).values() for code in codes]


def states(annotator: Annotator, task: Task) -> list[Standing]:
    """Where the annotator stands in each language of the task that they read."""
    return [_state(annotator, task, language) for language in languages_of(annotator, task)]


def state(annotator: Annotator, task: Task, language: str) -> Standing:
    """Where the annotator stands in a language. NotFound where the task has none such, NotAllowed if they do not
    read it."""
    if language not in task.languages:
        raise NotFound(f"This task has no records in {label_name(language)}.")
    if language not in languages_of(annotator, task):
        raise NotAllowed(
            f"You are not down as a reader of {label_name(language)}. The manager can add it to your languages."
        )
    return _state(annotator, task, language)


def _state(annotator: Annotator, task: Task, language: str) -> Standing:
    found = current(task, language)
    if not task.test_items or found is None:
        return Standing(language, NONE_NEEDED, found, 0)
    own = list(annotator.trials.filter(task=task, language=language).select_related("guidelines"))
    held = [trial for trial in own if trial.guidelines.major == found.major]
    tests = [trial for trial in held if trial.kind == Trial.TEST]
    practised = any(trial.finished_at for trial in held if trial.kind == Trial.PRACTICE)
    # Of a test and practice that are both begun, the test.
    trial = max((t for t in held if not t.finished_at), key=lambda t: t.kind == Trial.TEST, default=None)
    tries_left = max(0, task.tries - len(tests))
    if qualified(task).filter(annotator=annotator, language=language).exists():
        step = PASSED
    elif trial:
        step = trial.kind
    elif practised:
        step = TEST if tries_left else FAILED
    else:
        step = READ
    before = [trial for trial in own if trial.guidelines.major != found.major] if step == READ else []
    return Standing(
        language,
        step,
        found,
        tries_left,
        trial=trial,
        last=next((trial for trial in reversed(tests) if trial.finished_at), None),
        practised=practised,
        earlier=before[-1].guidelines if before else None,
        interrupted=any(trial.kind == Trial.TEST and not trial.finished_at for trial in before),
    )


@transaction.atomic
def begin(annotator: Annotator, task: Task, language: str, kind: str) -> Trial:
    """Begin a practice or a test, or go on with the one that is open, in whichever tab it was begun.

    A test counts as a try as soon as it is begun. One that was begun under an earlier major version is closed, and
    counts for nothing.
    """
    one_at_a_time(annotator)
    found = state(annotator, task, language)
    if not task.is_open:
        raise WrongStage("This task is closed.")
    check_not_paused(annotator, task)
    _check_step(found, kind)
    own = annotator.trials.filter(task=task, language=language, kind=kind)
    for trial in own.filter(finished_at=None).select_related("guidelines"):
        if trial.guidelines.major == found.guidelines.major:
            return trial
        _close(trial, passed=False)
    trial = Trial.objects.create(
        annotator=annotator,
        task=task,
        language=language,
        kind=kind,
        guidelines=found.guidelines,
        number=own.filter(guidelines__major=found.guidelines.major).count() + 1,
        started_at=timezone.now(),
    )
    golds = _practice(task, language) if kind == Trial.PRACTICE else _draw(trial)
    if kind == Trial.TEST and not golds:
        raise WrongStage(f"There are no test questions in {found.name} yet. Please tell the manager.")
    TrialAnswer.objects.bulk_create(
        TrialAnswer(trial=trial, gold_answer=gold, position=position) for position, gold in enumerate(golds, 1)
    )
    if not golds:
        _close(trial, passed=True)  # nothing to practise: the guidelines have been read
    return trial


def _check_step(found: Standing, kind: str) -> None:
    if found.step == NONE_NEEDED:
        raise WrongStage("This task asks for no test. Press Start to begin.")
    if found.step == PASSED:
        raise WrongStage(f"You have passed the test in {found.name}. Press Start to begin.")
    if kind == Trial.TEST and not found.practised:
        raise WrongStage("Read the guidelines and go through the practice questions before you take the test.")
    # A practice that is open says nothing of the tries; a test that is open was counted when it was begun.
    testing = found.trial is not None and found.trial.kind == Trial.TEST
    if kind == Trial.TEST and not found.tries_left and not testing:
        raise NotQualified(
            f"You have used all your tries of the test in {found.name}. The manager can still let you work in it."
        )


def _practice(task: Task, language: str) -> list[GoldAnswer]:
    return list(task.gold_answers.filter(purpose=GoldAnswer.PRACTICE, item__language=language).order_by("pk"))


def _draw(trial: Trial) -> list[GoldAnswer]:
    """The questions of a test, by lot from the pool: first of those that the person was asked the least often."""
    task, language, person = trial.task, trial.language, trial.annotator
    pool = task.gold_answers.filter(purpose=GoldAnswer.TEST, item__language=language).select_related("item")
    asked = Counter(
        TrialAnswer.objects.filter(trial__annotator=person, gold_answer__in=pool.order_by())
        .order_by()
        .values_list("gold_answer", flat=True)
    )
    by_key = {gold.item.key: gold for gold in pool}
    seed = {
        "seed": f"{task.draw.seed}:{task.name}",
        "purpose": f"test {trial.guidelines.major}.{trial.number} of {person.pk} in {language}",
    }
    order = lottery.drawn(by_key, len(by_key), **seed)
    taken = sorted(order, key=lambda key: asked[by_key[key].pk])[: task.test_items]
    return [by_key[key] for key in lottery.drawn(taken, len(taken), **seed)]


def next_question(trial: Trial) -> TrialAnswer | None:
    """The first question without an answer; None where all have one."""
    return trial.answers.filter(answered_at=None).select_related("gold_answer__item").order_by("position").first()


@transaction.atomic
def answer(annotator: Annotator, question_id: int, label: str) -> TrialAnswer:
    """Answer a question of a practice or a test; the last one finishes it, and whoever passes the test is qualified.

    A retry with the same label changes nothing and returns the first answer.
    """
    one_at_a_time(annotator)
    questions = TrialAnswer.objects.select_related("trial__guidelines", "trial__task", "gold_answer__item")
    found = questions.filter(pk=question_id, trial__annotator=annotator).first()
    if found is None:
        raise NotFound("You have not been asked such a question.")
    trial = found.trial
    if found.answered_at:
        return _retried(found, label)
    if trial.finished_at or trial.guidelines.major != _major(trial):
        raise Outdated(
            "The guidelines have changed since you began, and with them what is right. This does not count, and uses "
            "up none of your tries: read the new guidelines, and begin anew."
        )
    if found != next_question(trial):
        raise NotFound("You have not been asked this question yet. Answer the one before it first.")
    check_not_paused(annotator, trial.task)
    task_type = TASK_TYPES[trial.task.task_type]
    task_type.check(Answer(label), Unit(task=trial.task, item=found.gold_answer.item))
    found.label, found.answered_at = label, timezone.now()
    found.save(update_fields=["label", "answered_at"])
    if next_question(trial) is None:
        _finish(trial)
    return found


def _major(trial: Trial) -> int | None:
    found = current(trial.task, trial.language)
    return found.major if found else None


def _retried(first: TrialAnswer, label: str) -> TrialAnswer:
    if first.label != label:
        raise AlreadyAnswered(
            f"You have already answered {name_of(first.label, first.trial.task)} here, and that stands. "
            "Please go on with the next question."
        )
    return first


def _finish(trial: Trial) -> None:
    if trial.kind == Trial.PRACTICE:
        _close(trial, passed=True)
        return
    _close(trial, passed=_right(trial) >= needed(trial))
    if trial.passed:
        # A manager may have granted it meanwhile.
        Qualification.objects.get_or_create(
            annotator=trial.annotator,
            task=trial.task,
            language=trial.language,
            major=trial.guidelines.major,
            defaults={"trial": trial, "at": trial.finished_at},
        )


def _close(trial: Trial, *, passed: bool) -> None:
    trial.right, trial.passed, trial.finished_at = _right(trial), passed, timezone.now()
    trial.save(update_fields=["right", "passed", "finished_at"])


def _right(trial: Trial) -> int:
    return trial.answers.filter(label=F("gold_answer__label")).count()


def needed(trial: Trial) -> int:
    """How many right answers pass a test that was begun."""
    return to_pass(trial.task, trial.answers.count())


def to_pass(task: Task, asked: int) -> int:
    """How many right answers of so many pass a test."""
    return lottery.part_of(task.pass_mark, asked)


def questions_of_a_test(task: Task, language: str) -> int:
    """How many questions a test asks: what the task says, or as many as there are."""
    pool = task.gold_answers.filter(purpose=GoldAnswer.TEST, item__language=language)
    return min(task.test_items, pool.count())


def missed(trial: Trial) -> QuerySet[TrialAnswer]:
    """What was answered wrongly in a test, to be told after its end only; nothing before."""
    if not trial.finished_at:
        return trial.answers.none()
    return trial.answers.exclude(label=F("gold_answer__label")).select_related("gold_answer__item")


def check_grant(task: Task, language: str) -> Guidelines:
    """The guidelines under which somebody can be let in; a refusal where there is no test to be spared."""
    if language not in task.languages:
        raise NotFound(f"This task has no records in {label_name(language)}.")
    found = current(task, language)
    if not task.test_items or found is None:
        raise InvalidAnswer("This task asks for no test, so there is nothing to grant.")
    return found


@transaction.atomic
def grant(annotator: Annotator, task: Task, language: str, *, by) -> Qualification:
    """Let a person work in a language without the test, under the guidelines that hold. Twice is once."""
    found = check_grant(task, language)
    one_at_a_time(annotator)
    qualification, _ = Qualification.objects.get_or_create(
        annotator=annotator,
        task=task,
        language=language,
        major=found.major,
        defaults={"granted_by": by, "at": timezone.now()},
    )
    return qualification
