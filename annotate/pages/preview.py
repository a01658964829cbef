"""The page of a kind with an invented record, as one HTML file: the queue's own templates, with no server behind."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import mark_safe

from annotate.figures.personal_progress import Progress
from annotate.kinds import Kind
from annotate.kinds.kind import DOCUMENT
from annotate.models import Lease, Task, Unit
from annotate.pages import showing
from annotate.quality.guidelines import in_language
from annotate.quality.sides import Sides
from annotate.work.permit import Permit
from annotate.work.routes import Routes
from corpora.core.languages import LANGUAGES
from corpora.models import Item

STYLES = Path(__file__).parents[1] / "static/annotate/assay.css"
POST = "This post was invented, to show where posts stand."
CONCEPTS = "annotate/_preview_concepts.html"
CLASSES = ("sports", "politics")  # where a draw names them
# What two systems suggest.
SETS = (["Yes, that is fine.", "Thank you!", "I will let you know."], ["No.", "Which one?", "See you then."])
READ = 4  # languages that the invented person reads, where languages are what is answered


def preview(kind: Kind, language: str, *, alone: bool = True) -> str:
    """HTML that needs nothing else; not alone: that the server sends, with its style beside it. language: that of the
    record, or the one asked about.
    """
    permit = _permit(kind, language)
    unit = Unit(task=permit.task, item=_item(kind, language), asked=language if kind.labels_are_languages else "")
    text = in_language(language, kind.guidelines)
    context = {
        "task": permit.task,
        "noun": kind.noun,
        "progress": Progress(0, 0, 1),
        "guidelines": showing.markdown(text or ""),
        "style": mark_safe(STYLES.read_text(encoding="utf-8")) if alone else "",  # noqa: S308 - the house's own
        **_question(Lease(unit=unit), permit),
    }
    return render_to_string("annotate/preview.html", context)


def _question(lease: Lease, permit: Permit) -> dict[str, Any]:
    """Of concepts the place where they are looked up: what is in a vocabulary, the database alone says."""
    kind, item = permit.task.kind, lease.unit.item
    if kind.thesaurus:
        return {"lease": lease, "question": CONCEPTS, **showing.record(item, kind)}
    if kind.form.SIDED:
        two = showing.sets(Sides(kind.form, "", "", SETS), item, kind)
        asked = kind.ask(lease.unit, permit)
        return {"lease": lease, "question": kind.template, **showing.record(item, kind), **two, **asked}
    return showing.question(lease, permit)


def usual_language(kind: Kind) -> str:
    """A language that the kind adds, or English."""
    return next((code for code in [*kind.languages, "en", *kind.labels] if code in languages_of(kind)), "en")


def languages_of(kind: Kind) -> Sequence[str]:
    """The languages of which one may be chosen: the labels if they are languages, else all languages."""
    return [*kind.languages, *(kind.labels if kind.labels_are_languages else LANGUAGES)]


def _permit(kind: Kind, language: str) -> Permit:
    """The permit of somebody who reads the language and, if languages are answered, some more; the task is
    not saved.
    """
    reads = list(dict.fromkeys([language, *kind.languages, *kind.labels]))[:READ]
    labels = [*(CLASSES if kind.answers_from_draw else ()), *kind.labels]
    task = Task(name=kind.slug, title=kind.title, kind_slug=kind.slug, kind_file=kind.source, labels=labels)
    if not kind.labels_are_languages:
        task.languages, reads = [language], [language]
    return Permit(
        annotator=None,
        task=task,
        routes=Routes({}, task),
        levels=dict.fromkeys(reads, 5),
        is_paused=False,
        majors={},
        passed=frozenset(),
    )


def _item(kind: Kind, language: str) -> Item:
    fields = {name: _invented(name, kind.noun, block.style) for block in kind.layout for name in block.fields}
    return Item(key="1", language=language if fields else "", fields=fields, text="\n".join(fields.values()) or POST)


def _invented(name: str, noun: str, style: str) -> str:
    """A sentence, or a document that is longer than a window."""
    sentence = f"The {name.replace('_', ' ')} of an invented {noun}."
    return "\n".join([" ".join([sentence] * 8)] * 10) if style == DOCUMENT else sentence
