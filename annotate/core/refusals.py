"""Everything an operation may refuse, each with a sentence for the person it is refused to.

Operations raise these and know nothing of HTTP; annotate/pages/errors.py turns them into answers, once each.
"""


class Refusal(Exception):
    """An operation was refused and nothing was changed. str() is the sentence to show."""

    code = "refused"


class NotFound(Refusal):
    code = "not_found"


class NotAllowed(Refusal):
    code = "not_allowed"


class Paused(NotAllowed):
    code = "paused"


class NotQualified(NotAllowed):
    code = "not_qualified"


class InvalidAnswer(Refusal):
    code = "invalid_answer"


class LeaseExpired(Refusal):
    code = "lease_expired"


class AlreadyAnswered(Refusal):
    code = "already_answered"


class WrongStage(Refusal):
    code = "wrong_stage"


class Outdated(Refusal):
    code = "outdated"


class NothingToUndo(Refusal):
    code = "nothing_to_undo"


class TooLateToUndo(Refusal):
    code = "too_late_to_undo"
