"""Exceptions for refused operations, with a message for the user.

Operations raise these exceptions without depending on HTTP. annotate/pages/error_responses.py converts them to
responses. In each docstring, the first paragraph states when the exception is raised, and the second what to do. The
documentation shows both.
"""

from typing import Any


class Refusal(Exception):
    """The operation was refused and nothing was changed. str() is the message to show."""

    code = "refused"


class NotFound(Refusal):
    """The task, unit, lease, question, language or invitation does not exist, or belongs to somebody else.

    Check the list of tasks, or take the next unit.
    """

    code = "not_found"


class NotAllowed(Refusal):
    """The account lacks the required permission, or the task is not assigned to this annotator.

    The message names the missing permission; a manager can grant it.
    """

    code = "not_allowed"


class Paused(NotAllowed):
    """The annotator is paused in this task, by its pause rule or by a manager.

    Wait until a manager lifts the pause. Other tasks stay open.
    """

    code = "paused"


class NotQualified(NotAllowed):
    """The annotator has not passed the test for the language, or must repeat it because the guidelines have changed.

    Practise and take the test first.
    """

    code = "not_qualified"


class NotAgreed(NotAllowed):
    """The task contains sensitive content, and the annotator has not agreed to it or has withdrawn the agreement.

    Read the warning on the task's page *Agreement* and agree there, or choose another task.
    """

    code = "not_agreed"


class EnoughToday(NotAllowed):
    """The annotator has reached the task's daily limit for sensitive content.

    Continue tomorrow. The day ends at midnight in the installation's time zone.
    """

    code = "enough_today"


class QuotaReached(NotAllowed):
    """The annotator has reached the number of answers that the manager set for them in this task.

    Work on another task. A manager can raise the quota.
    """

    code = "quota_reached"


class InvalidAnswer(Refusal):
    """The task does not accept this answer, or a field of the request is missing or malformed.

    Correct the request as the message says and send it again. Nothing was saved.
    """

    code = "invalid_answer"


class LeaseExpired(Refusal):
    """The reservation of the unit (ten minutes or more) has expired and somebody else has taken over the unit, or the
    two-hour grace period for late answers is over.

    Take the next unit. The answer was not saved.
    """

    code = "lease_expired"


class AlreadyAnswered(Refusal):
    """The unit or question already has a different answer, or its answer has since been withdrawn or voided.

    Undo the earlier answer if it was wrong, or continue with the next unit.
    """

    code = "already_answered"


class WrongStage(Refusal):
    """The unit has moved to another stage, the task is closed, or another step must come first, such as practice before
    a test.

    Take the next unit, or do the step that the message names.
    """

    code = "wrong_stage"


class Outdated(Refusal):
    """The guidelines have changed since the practice or test was started.

    Read the new guidelines and start again. This does not use up an attempt.
    """

    code = "outdated"


class NothingToUndo(Refusal):
    """There is no answer or skip to undo.

    Nothing needs to be done.
    """

    code = "nothing_to_undo"


class TooLateToUndo(Refusal):
    """The answer or skip is older than the ten minutes in which it can be undone.

    Change it on the page *Your answers* while the task is open.
    """

    code = "too_late_to_undo"


# --- Invalid answers: answer forms raise this exception in English, and kinds/interface_language.py translates it.


class Wrong(ValueError):
    """An answer is invalid. `str()` returns the message in English.

    sentence: message with placeholders such as %(label)s, as in the translation catalogs.
    several: plural of the message, used unless `number` in `values` is 1.
    values: values of the placeholders.
    """

    def __init__(self, sentence: str, several: str = "", **values: Any) -> None:
        super().__init__(sentence, several, values)
        self.sentence, self.several, self.values = sentence, several, values

    def __str__(self) -> str:
        is_singular = not self.several or self.values["number"] == 1
        return (self.sentence if is_singular else self.several) % self.values
