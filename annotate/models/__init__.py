"""The rows of the database: people, tasks, work and what protects its numbers."""

from annotate.models.channel import Flag, Note, NoteRead
from annotate.models.concepts import ChosenConcept, Suggestion
from annotate.models.jobs import Job
from annotate.models.people import Annotator, AnnotatorLanguage, Invite, LanguageRequest, Preferences
from annotate.models.preferences import Comparison, Side
from annotate.models.quality import Consent, GoldAnswer, Lot, Pause, Qualification, Trial, TrialAnswer
from annotate.models.tasks import Guidelines, LanguageRoute, Task
from annotate.models.work import Backlog, Change, Judgment, Lease, Reserve, Transition, Unit

__all__ = [
    "Annotator",
    "AnnotatorLanguage",
    "Backlog",
    "Change",
    "ChosenConcept",
    "Comparison",
    "Consent",
    "Flag",
    "GoldAnswer",
    "Guidelines",
    "Invite",
    "Job",
    "Judgment",
    "LanguageRequest",
    "LanguageRoute",
    "Lease",
    "Lot",
    "Note",
    "NoteRead",
    "Pause",
    "Preferences",
    "Qualification",
    "Reserve",
    "Side",
    "Suggestion",
    "Task",
    "Transition",
    "Trial",
    "TrialAnswer",
    "Unit",
]
