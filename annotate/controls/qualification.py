"""Qualification: annotators read the guidelines, practise, and pass a test before they can work in a language.

A qualification is valid for one language of a task, until the guidelines get a new major version. Annotators see the
correct answers only in practice (`answer`) and after a finished test (`missed`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.controls import pair_order
from annotate.controls.gold_answers import GoldAnswerError, check_pool
from annotate.core.draws import committed_draws, hash_order
from annotate.core.refusals import (
    AlreadyAnswered,
    InvalidAnswer,
    NotAllowed,
    NotFound,
    NotQualified,
    Outdated,
    WrongStage,
)
from annotate.kinds import Answer
from annotate.kinds.control import QualityControl, register
from annotate.kinds.interface_language import label_name, translated
from annotate.models import Annotator, GoldAnswer, Guidelines, Qualification, Task, Trial, TrialAnswer, Unit
from annotate.quality.commitments import record_draw
from annotate.quality.guideline_versions import current, in_language, newest_of
from annotate.work.permit import Permit

NONE_NEEDED, READ, PRACTICE, TEST, PASSED, FAILED = "none_needed", "read", "practice", "test", "passed", "failed"
# The steps of a qualification, with their descriptions.
STEPS = {
    NONE_NEEDED: "no test required",
    READ: "read the guidelines",
    PRACTICE: "practise",
    TEST: "take the test",
    PASSED: "passed",
    FAILED: "failed, no tries left",
}


@dataclass(frozen=True)
class Standing:
    """The status of an annotator's qualification in one language of a task, under the current guidelines.

    step: what the annotator must do next, or the outcome (one of STEPS).
    guidelines: current guidelines; None if there are none or if they were not requested.
    tries_left: number of tests that the annotator can still begin.
    trial: practice or test in progress.
    last: last test that the annotator has finished.
    practised: whether the annotator has finished practice.
    earlier: guidelines of the annotator's last practice or test; None unless a new major version has replaced them and
        the annotator hasn't begun again.
    interrupted: whether the annotator had an unfinished test when the new version came into force.
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


def languages_of(permit: Permit) -> list[str]:
    """Return the task's languages that the annotator reads, whether or not they are qualified, best-read first.

    permit: the annotator's permit for the task (work/permit.py), here and in the functions below.
    """
    if not permit.task.languages:
        return []
    return [code for queue in permit.read_queues for code in permit.routes.labels.get(queue, ())]


def states(permit: Permit, trials: Iterable[Trial] | None = None, texts: bool = False) -> list[Standing]:
    """Return the annotator's status in each language of the task that they read.

    trials: the annotator's trials in the task, with their guidelines loaded; None to load them from the database.
    texts: whether to include the current guidelines.
    """
    languages = languages_of(permit)
    if languages and trials is None and permit.task.test_items:
        trials = trials_of(permit.annotator, [permit.task])
    newest = newest_of(permit.task) if texts else {}
    return [_state(permit, language, trials or (), in_language(language, newest)) for language in languages]


def trials_of(annotator: Annotator, tasks: Iterable[Task]) -> list[Trial]:
    return list(annotator.trials.filter(task__in=list(tasks)).select_related("guidelines"))


def state(permit: Permit, language: str) -> Standing:
    """Return the annotator's status in a language, with the current guidelines.

    Raise NotFound if the task has no items in the language, and NotAllowed if the annotator does not read it.
    """
    if language not in permit.task.languages:
        raise NotFound(_("This task has no records in %(language)s.") % {"language": label_name(language)})
    if language not in languages_of(permit):
        raise NotAllowed(
            _("You are not registered as a reader of %(language)s. The manager can add it to your languages.")
            % {"language": label_name(language)}
        )
    trials = trials_of(permit.annotator, [permit.task]) if permit.task.test_items else ()
    return _state(permit, language, trials, current(permit.task, language))


def _state(permit: Permit, language: str, trials: Iterable[Trial], guidelines: Guidelines | None) -> Standing:
    task, major = permit.task, permit.majors.get(language, 0)
    if not task.test_items or not major:
        return Standing(language, NONE_NEEDED, guidelines, 0)
    language_trials = [trial for trial in trials if trial.language == language]
    current_trials = [trial for trial in language_trials if trial.guidelines.major == major]
    tests = [trial for trial in current_trials if trial.kind == Trial.TEST]
    practised = any(trial.finished_at for trial in current_trials if trial.kind == Trial.PRACTICE)
    # If both a practice round and a test are in progress, the test comes first.
    trial = max((t for t in current_trials if not t.finished_at), key=lambda t: t.kind == Trial.TEST, default=None)
    tries_left = max(0, task.tries - len(tests))
    if language in permit.passed:
        step = PASSED
    elif trial:
        step = trial.kind
    elif practised:
        step = TEST if tries_left else FAILED
    else:
        step = READ
    earlier_trials = [trial for trial in language_trials if trial.guidelines.major != major] if step == READ else []
    return Standing(
        language,
        step,
        guidelines,
        tries_left,
        trial=trial,
        last=next((trial for trial in reversed(tests) if trial.finished_at), None),
        practised=practised,
        earlier=earlier_trials[-1].guidelines if earlier_trials else None,
        interrupted=any(trial.kind == Trial.TEST and not trial.finished_at for trial in earlier_trials),
    )


def begin(permit: Permit, language: str, kind: str) -> Trial:
    """Begin a practice round or test, or return the one in progress.

    A test uses up a try as soon as it begins. If the trial began under an earlier major version of the guidelines, it
    is closed, and doesn't count as a try under the new version. The caller must have opened a transaction.

    kind: Trial.PRACTICE or Trial.TEST.
    """
    annotator, task = permit.annotator, permit.task
    standing = state(permit, language)
    if not task.is_open:
        raise WrongStage(_("This task is closed."))
    if permit.stopped:
        raise permit.stopped
    _check_step(standing, kind)
    assert standing.guidelines, "a task with a test has guidelines"
    trials_of_kind = annotator.trials.filter(task=task, language=language, kind=kind)
    for trial in trials_of_kind.filter(finished_at=None).select_related("guidelines"):
        if trial.guidelines.major == standing.guidelines.major:
            return trial
        _close(trial, passed=False)
    trial = Trial.objects.create(
        annotator=annotator,
        task=task,
        language=language,
        kind=kind,
        guidelines=standing.guidelines,
        number=trials_of_kind.filter(guidelines__major=standing.guidelines.major).count() + 1,
        started_at=timezone.now(),
    )
    pool = task.gold_answers.filter(purpose=kind, item__language=language).select_related("item").order_by("pk")
    golds = _draw(trial, pool) if kind == Trial.TEST else list(pool)
    if kind == Trial.TEST and not golds:
        raise WrongStage(
            _("There are no test questions in %(language)s yet. Please tell the manager.") % {"language": standing.name}
        )
    TrialAnswer.objects.bulk_create(
        TrialAnswer(trial=trial, gold_answer=gold, position=position, **_question_fields(trial, gold))
        for position, gold in enumerate(golds, 1)
    )
    if not golds:
        _close(trial, passed=True)  # without practice questions, reading the guidelines is enough
    return trial


def _check_step(standing: Standing, kind: str) -> None:
    if standing.step == NONE_NEEDED:
        raise WrongStage(_("This task has no test. Press Start to begin."))
    if standing.step == PASSED:
        raise WrongStage(
            _("You have passed the test in %(language)s. Press Start to begin.") % {"language": standing.name}
        )
    if kind == Trial.TEST and not standing.practised:
        raise WrongStage(_("Read the guidelines and go through the practice questions before you take the test."))
    # Practice needs no tries, and a test in progress has already used up its try.
    is_testing = standing.trial is not None and standing.trial.kind == Trial.TEST
    if kind == Trial.TEST and not standing.tries_left and not is_testing:
        raise NotQualified(
            _("You have used all your tries for the test in %(language)s. The manager can still let you work in it.")
            % {"language": standing.name}
        )


def _draw(trial: Trial, pool: QuerySet[GoldAnswer]) -> list[GoldAnswer]:
    """Draw a test's questions from the pool, preferring questions that the annotator has been asked less often."""
    task, language, person = trial.task, trial.language, trial.annotator
    earlier_answers = TrialAnswer.objects.filter(trial__annotator=person, gold_answer__in=pool.order_by())
    times_asked = Counter(earlier_answers.order_by().values_list("gold_answer", flat=True))
    by_key = {gold.item.key: gold for gold in pool}
    times_by_key = {key: times_asked[gold.pk] for key, gold in by_key.items()}
    draw_key = (person.pseudonym, language, f"{trial.guidelines.major}.{trial.number}")
    keys = committed_draws.test_questions(task.lots, draw_key, times_by_key, task.test_items)
    record_draw(task, committed_draws.TEST, draw_key, {"count": task.test_items}, list(times_by_key.items()), keys)
    return [by_key[key] for key in keys]


def next_question(trial: Trial) -> TrialAnswer | None:
    """Return the first unanswered question; None if there is none."""
    return trial.answers.filter(answered_at=None).select_related("gold_answer__item").order_by("position").first()


def answer(permit: Permit, question_id: int, label: str, *, is_sure: bool = False) -> TrialAnswer:
    """Store the answer to a question of a practice round or test.

    The answer to the last question finishes the practice round or test. An annotator who passes the test is qualified.
    Submitting the same answer again has no effect. The caller must have opened a transaction.

    label: submitted label, as parsed by the answer form.
    is_sure: whether the annotator has confirmed an unusual answer (kinds.Answer).
    """
    task = permit.task
    questions = TrialAnswer.objects.select_related("trial__guidelines", "gold_answer__item")
    question = questions.filter(pk=question_id, trial__annotator=permit.annotator, trial__task=task).first()
    if question is None:
        raise NotFound(_("You have not been asked this question."))
    trial = question.trial
    trial.task, trial.annotator = task, permit.annotator
    sides = pair_order.sides_of_question(question)
    label = sides.system_answer(Answer(label)).label if sides else label
    if question.answered_at and question.label == label:
        return question
    _check_answer(permit, question, Answer(label, is_sure=is_sure))
    question.label, question.answered_at = label, timezone.now()
    question.save(update_fields=["label", "answered_at"])
    if next_question(trial) is None:
        _finish(trial)
    return question


def _check_answer(permit: Permit, question: TrialAnswer, answer: Answer) -> None:
    """Raise a Refusal if the question can't be answered now, or if the answer is not valid."""
    task, trial = permit.task, question.trial
    unit = Unit(task=task, item=question.gold_answer.item)
    if question.answered_at:
        raise AlreadyAnswered(
            _("You have already answered %(answer)s here, and this answer counts. Continue with the next question.")
            % {"answer": task.kind.in_words(seen_label(question, question.label), unit)}
        )
    if trial.finished_at or trial.guidelines.major != permit.majors.get(trial.language):
        raise Outdated(
            _(
                "The guidelines have changed since you began, so the right answers may have changed too. This test "
                "does not count and uses none of your tries. Read the new guidelines and begin again."
            )
        )
    if question != next_question(trial):
        raise NotFound(_("You have not been asked this question yet. Answer the previous question first."))
    if permit.stopped:
        raise permit.stopped
    try:
        task.kind.rules.check(answer, unit)
    except ValueError as error:
        raise InvalidAnswer(translated(error)) from error


def task_of(annotator: Annotator, question_id: int) -> str:
    """Return the name of a question's task. Raise NotFound if the annotator was not asked this question."""
    questions = TrialAnswer.objects.filter(pk=question_id, trial__annotator=annotator)
    name = questions.values_list("trial__task__name", flat=True).first()
    if name is None:
        raise NotFound(_("You have not been asked this question."))
    return name


def _finish(trial: Trial) -> None:
    is_test = trial.kind == Trial.TEST
    _close(trial, passed=not is_test or _right(trial) >= needed(trial))
    if is_test and trial.passed and trial.finished_at:
        # The qualification may already exist, because a manager can grant it while a test is in progress.
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


def _question_fields(trial: Trial, gold: GoldAnswer) -> dict[str, Any]:
    """Return the TrialAnswer fields that the task's controls set, such as which of two systems is shown first."""
    gold.task, controls = trial.task, trial.task.hooks["trial"]
    return {name: value for control in controls for name, value in control.trial(gold, trial.annotator).items()}


def _right(trial: Trial) -> int:
    return sum(is_right(answered) for answered in _answered_questions(trial))


def is_right(answered: TrialAnswer) -> bool:
    return answered.trial.task.kind.rules.agrees(answered.label, answered.gold_answer.label)


def seen_label(question: TrialAnswer, label: str) -> str:
    """Convert a stored label to the label that the annotator sees, such as the side of a system."""
    sides = pair_order.sides_of_question(question)
    return sides.side_of(label) if sides else label


def _answered_questions(trial: Trial) -> list[TrialAnswer]:
    """Return the answered questions of a practice round or test, with their gold answers loaded."""
    answered = list(trial.answers.filter(answered_at__isnull=False).select_related("gold_answer__item"))
    for question in answered:
        question.trial = trial
    return answered


def needed(trial: Trial) -> int:
    """Return the number of right answers needed to pass this test, which can be in progress or finished."""
    return to_pass(trial.task, trial.answers.count())


def to_pass(task: Task, questions: int) -> int:
    """Return the number of right answers needed to pass a test.

    questions: number of questions in the test.
    """
    return hash_order.part_of(task.pass_mark, questions)


def questions_of_a_test(task: Task, language: str) -> int:
    """Return the number of questions in a test: the task's number, or the size of the pool if that is smaller."""
    pool = task.gold_answers.filter(purpose=GoldAnswer.TEST, item__language=language)
    return min(task.test_items, pool.count())


def missed(trial: Trial) -> list[TrialAnswer]:
    """Return the wrong answers in a finished test; an empty list if the test is in progress."""
    return [answered for answered in _answered_questions(trial) if not is_right(answered)] if trial.finished_at else []


def check_grant(task: Task, language: str) -> Guidelines:
    """Return the guidelines under which a manager can qualify an annotator without a test.

    Raise NotFound if the task has no items in the language, and InvalidAnswer if the task requires no test.
    """
    if language not in task.languages:
        raise NotFound(_("This task has no records in %(language)s.") % {"language": label_name(language)})
    guidelines = current(task, language)
    if not task.test_items or guidelines is None:
        raise InvalidAnswer("This task has no test, so there is nothing to grant.")
    return guidelines


@transaction.atomic
def grant(annotator: Annotator, task: Task, language: str, *, by: User) -> Qualification:
    """Qualify an annotator for a language without a test, under the current guidelines.

    Idempotent: a qualified annotator keeps the existing qualification.

    by: user who grants the qualification.
    """
    guidelines = check_grant(task, language)
    annotator.lock()
    qualification, _ = Qualification.objects.get_or_create(
        annotator=annotator,
        task=task,
        language=language,
        major=guidelines.major,
        defaults={"granted_by": by, "at": timezone.now()},
    )
    return qualification


# Options that determine how many test questions a task needs.
POOL_OPTIONS = {"test_items", "tries"}


class QualificationTest(QualityControl):
    """The test that annotators must pass before they can work in a language."""

    name = "test"
    switches = ("test_items",)
    tabs = (("manage-tests", "Test and gold answers"), ("manage-rule", "Pause rule"))

    def check_change(self, task: Task, changed: Sequence[str]) -> None:
        if POOL_OPTIONS.isdisjoint(changed):
            return
        try:
            # Reject the change here. Otherwise, annotators would be the ones to see the error, when they begin a test.
            check_pool(task)
        except GoldAnswerError as error:
            raise InvalidAnswer(str(error)) from error


register(QualificationTest())
