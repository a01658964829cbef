"""Everything that an operation may refuse, each with a sentence for the person who is refused.

Operations raise these and know nothing of HTTP; annotate/pages/middleware.py turns them into HTTP answers. The first
paragraph of a class's docstring says when it is raised, the second what to do; the documentation shows both.
"""


class Refusal(Exception):
    """An operation was refused and nothing was changed. str() is the sentence to show."""

    code = "refused"


class NotFound(Refusal):
    """The task, unit, lease, question, language or invitation does not exist, or it is somebody else's.

    Look at the list of tasks, or take the next unit.
    """

    code = "not_found"


class NotAllowed(Refusal):
    """The account lacks the right to do this, or the task does not ask this annotator.

    Read the sentence, which names what is missing; a manager can grant it.
    """

    code = "not_allowed"


class Paused(NotAllowed):
    """The annotator is paused in the task, by its rule or by a manager.

    Wait until a manager lifts the pause; other tasks stay open.
    """

    code = "paused"


class NotQualified(NotAllowed):
    """The annotator has not passed the test of the language, or new guidelines ask for it again.

    Practise and take the test first.
    """

    code = "not_qualified"


class NotAgreed(NotAllowed):
    """The work may hurt whoever does it, and the annotator has not agreed to it, or has taken that back.

    Read the warning on the page Agreement of the task, and agree there; or leave this task to others.
    """

    code = "not_agreed"


class EnoughToday(NotAllowed):
    """The annotator has done as much of work that may hurt as the task gives one person on a day.

    Go on tomorrow; the day ends at midnight in the installation's time zone.
    """

    code = "enough_today"


class InvalidAnswer(Refusal):
    """The answer is not one that the task takes, or a field of the request is missing or malformed.

    Mend the request as the sentence says and send it again; nothing was saved.
    """

    code = "invalid_answer"


class LeaseExpired(Refusal):
    """The unit was open for longer than it stays reserved (ten minutes or more), and somebody else has its place now,
    or the two hours in which a late answer still counts are over too.

    Take the next unit; the answer was not saved.
    """

    code = "lease_expired"


class AlreadyAnswered(Refusal):
    """The unit or question has been answered before, otherwise than now, or its answer was taken back or voided since.

    Undo the earlier answer if it was wrong, or go on with the next unit.
    """

    code = "already_answered"


class WrongStage(Refusal):
    """The unit has moved on meanwhile, the task is closed, or another step comes first, such as practice before a test.

    Take the next unit, or the step that the sentence names.
    """

    code = "wrong_stage"


class Outdated(Refusal):
    """The guidelines have changed since the practice or the test was begun.

    Read the new guidelines and begin anew; no try is used up.
    """

    code = "outdated"


class NothingToUndo(Refusal):
    """There is no answer or skip that could be taken back.

    Nothing needs to be done.
    """

    code = "nothing_to_undo"


class TooLateToUndo(Refusal):
    """The answer or skip is older than the ten minutes in which people can take it back.

    Change it on the page *Your answers*, as long as the task is open.
    """

    code = "too_late_to_undo"
