"""The database models: annotators, tasks, units of work and quality control."""

from annotate.models.people import Annotator, AnnotatorLanguage, Invite, LanguageRequest, Preferences
from annotate.models.quality import (
    ChosenConcept,
    Comparison,
    Consent,
    Flag,
    GoldAnswer,
    Lot,
    Note,
    NoteRead,
    Pause,
    Qualification,
    Side,
    Suggestion,
    Trial,
    TrialAnswer,
)
from annotate.models.tasks import Delivery, Guidelines, Job, LanguageRoute, Membership, Share, Task, Webhook
from annotate.models.work import Backlog, Change, Judgment, Lease, Reserve, Transition, Unit
