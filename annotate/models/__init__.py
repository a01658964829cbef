"""The rows of the database: people, tasks, work and what protects its numbers."""

from annotate.models.channel import Flag, Note, NoteRead
from annotate.models.content import ChosenConcept, Comparison, Side, Suggestion
from annotate.models.people import Annotator, AnnotatorLanguage, Invite, LanguageRequest, Preferences
from annotate.models.quality import Consent, GoldAnswer, Lot, Pause, Qualification, Trial, TrialAnswer
from annotate.models.tasks import Guidelines, Job, LanguageRoute, Task
from annotate.models.work import Backlog, Change, Judgment, Lease, Reserve, Transition, Unit
