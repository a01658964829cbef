"""The preview of a kind: an HTML page with a sample item, rendered with the queue's templates."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import mark_safe

from annotate.actions.action import ActionError, Outcome, action
from annotate.controls.pair_order import reply_sets
from annotate.core.option import Option
from annotate.kinds import Kind
from annotate.kinds.files import KindError, read_kind
from annotate.kinds.kind import DOCUMENT
from annotate.kinds.kind_summary import summary_of
from annotate.models import Lease, Task, Unit
from annotate.pages import item_view
from annotate.quality.guideline_versions import in_language
from annotate.work.backlog import Progress
from annotate.work.permit import Permit, Reading
from annotate.work.routes import Routes
from corpora.core.arrow import pq
from corpora.core.languages import LANGUAGES
from corpora.models import Item
from corpora.storage.layout import corpus_dir, fetch_manifest, write_atomically

STATIC = Path(__file__).parents[1] / "static"
POST = "This is a sample post. Real posts are shown here."
CLASSES = ("sports", "politics")  # sample labels for kinds that get their labels from the draw
# Field -> sample text, for fields of the templates and of the built-in kinds.
EXAMPLES = {
    "body": "From June, two airlines will fly to Rome every day. Tickets cost from €39.",
    "comment": "Nobody asked for your opinion, genius.",
    "description": "Daily flights to Rome. Book today, and change the date for free.",
    "hypothesis": "A man is making music.",
    "message": "Has anybody tried the new café at the station?",
    "passage": "Two airlines fly to Rome every day. The flight takes two hours.",
    "premise": "A man plays the guitar on a stage.",
    "prompt": "How do I keep basil alive indoors?",
    "query": "flights to rome",
    "question": "How long does the flight to Rome take?",
    "reply": "Yes, the cakes are good, but the queue is long.",
    "review": "The battery lasts two days, but the screen scratches easily.",
    "snippet": "Compare daily flights to Rome, from all airlines.",
    "source": "Der Zug hat zehn Minuten Verspätung.",
    "title": "Daily flights to Rome from June",
    "translation": "The train is ten minutes late.",
}
# Number of files, and of rows in each, that are searched for an item in the preview's language.
FEW_PARTS, FEW_ROWS = 20, 50
READ = 4  # number of languages that the sample annotator reads, if the labels are languages


def preview(kind: Kind, language: str, corpus: str = "", *, standalone: bool = True) -> str:
    """Return the preview of a kind's page as HTML.

    language: language of the sample record, or the language that the question names
    corpus: corpus to take the sample record from, if its fields fit; "" for an invented record
    standalone: whether to embed the styles, so that the HTML file doesn't need a server
    """
    permit = _permit(kind, language)
    record = _first_item(corpus, kind, language) if corpus else None
    item = record or _item(kind, language)
    unit = Unit(task=permit.task, item=item, asked=language if kind.labels_are_languages else "")
    text = in_language(language, kind.guidelines)
    context = {
        "task": permit.task,
        "corpus": corpus if record else "",
        "noun": kind.noun,
        "progress": Progress(0, 0, 1),
        "guidelines": item_view.render_guidelines(text or ""),
        "style": _styles(kind) if standalone else "",
        **_question(Lease(unit=unit), permit),
    }
    return render_to_string("annotate/preview.html", context)


def _styles(kind: Kind) -> str:
    """Return the style sheets of the queue and of the kind's form."""
    names = ["annotate/assay.css", *(name for name in kind.form.assets if name.endswith(".css"))]
    files = (STATIC / name for name in names)
    styles = "\n".join(file.read_text(encoding="utf-8") for file in files if file.exists())
    return mark_safe(styles)  # noqa: S308 - our own files


def _question(lease: Lease, permit: Permit) -> dict[str, Any]:
    """Return the template context of the question.

    A placeholder replaces the concept picker, because its vocabularies are in the database, which previews don't read.
    """
    kind, item = permit.task.kind, lease.unit.item
    sides = next(filter(None, (control.invented_sides(kind) for control in kind.hooks["invented_sides"])), None)
    if not (kind.form.preview or sides):
        return item_view.question(lease, permit)
    context = {**item_view.record(item, kind), **reply_sets(sides, item, kind), **kind.pages.ask(lease.unit, permit)}
    return {"lease": lease, "question": kind.form.preview or kind.pages.question, **context}


def usual_language(kind: Kind) -> str:
    """Return a preview's default language: the kind's first language, or English, or the first label."""
    return next((code for code in [*kind.languages, "en", *kind.labels] if code in languages_of(kind)), "en")


def languages_of(kind: Kind) -> Sequence[str]:
    """Return a preview's possible languages: the kind's own languages, then its labels.

    If the labels are not languages, all languages follow instead.
    """
    return [*kind.languages, *(kind.labels if kind.labels_are_languages else LANGUAGES)]


def _permit(kind: Kind, language: str) -> Permit:
    """Return a sample annotator's permit for an unsaved task.

    The annotator reads `language` and, if the labels are languages, a few others.
    """
    reads = list(dict.fromkeys([language, *kind.languages, *kind.labels]))[:READ]
    labels = [*(CLASSES if kind.answers_from_draw else ()), *kind.labels]
    task = Task(name=kind.slug, title=kind.title, kind_slug=kind.slug, kind_file=kind.source, labels=labels)
    if not kind.labels_are_languages:
        task.languages, reads = [language], [language]
    return Permit(
        annotator=None,  # type: ignore[arg-type] # a preview never uses the annotator
        task=task,
        reading=Reading(Routes({}, task), dict.fromkeys(reads, 5), reads),
        is_paused=False,
    )


def _item(kind: Kind, language: str) -> Item:
    fields = {name: _sample_text(name, block.style) for block in kind.layout for name in block.fields}
    return Item(key="1", language=language if fields else "", fields=fields, text="\n".join(fields.values()) or POST)


def _first_item(corpus: str, kind: Kind, language: str) -> Item | None:
    """Return a corpus's first item, preferably in this language; None if the corpus lacks one of the kind's fields."""
    manifest = fetch_manifest(corpus)
    if manifest is None or not manifest.parts or not set(kind.fields) <= set(manifest.fields):
        return None
    names = ["text", "language", *kind.fields] if manifest.fields else ["text"]
    rows: list[dict[str, Any]] = []
    for part in manifest.parts[:FEW_PARTS]:
        batches = pq.ParquetFile(corpus_dir(corpus) / "parts" / part.name).iter_batches(FEW_ROWS, columns=names)
        rows += next(batches).to_pylist()
    row = next((row for row in rows if row.get("language") == language), rows[0])
    fields = {name: row[name] or "" for name in kind.fields}
    return Item(key="1", language=row.get("language") or "", fields=fields, text=row["text"])


def _sample_text(name: str, style: str) -> str:
    """Return a sample sentence for a field, or a text that needs scrolling if the field has document style."""
    sentence = EXAMPLES.get(name) or f"Example {name.replace('_', ' ')}."
    return "\n".join([" ".join([sentence] * 8)] * 10) if style == DOCUMENT else sentence


# --- The action check_kind, which describes the kind in a file, and writes the page that annotators will see


# The page's template contains this mark. Files without the mark are not overwritten.
MARK = '<meta name="generator" content="check_kind">'


@action(
    "check_kind",
    "Describe the kind that a TOML file defines, and write the page that annotators will see with an example record.",
    Option("file", Path, required=True, argument=True, help="the TOML file of the kind, such as my_kind.toml"),
    Option("out", Path, shown="PAGE", help="the file to write the page to (default: FILE with the suffix .html)"),
    Option("language", shown="CODE", help="the language of the example record or of the question"),
    refuses=(KindError,),
    on_files=True,
)
def check_kind_action(values: Mapping[str, Any], progress: object) -> Outcome:
    file, language = values["file"], values["language"]
    kind = read_kind(file)
    data = {"kind": kind.slug, "told": summary_of(kind), "page": None}
    if not kind.answered_here:
        return Outcome([summary_of(kind)], data=data)
    available = languages_of(kind)
    if language and language not in available:
        raise ActionError(f"This kind does not support --language {language}. Valid languages: {', '.join(available)}.")
    path = values["out"] or file.with_suffix(".html")
    try:
        if path.exists() and MARK not in path.read_text(encoding="utf-8", errors="replace"):
            raise ActionError(f"{path} was not written by check_kind. Move it, or choose another file with --out.")
        write_atomically(path, preview(kind, language or usual_language(kind)))
    except OSError as error:
        raise ActionError(f"{path} cannot be written: {error.strerror}.") from error
    return Outcome([summary_of(kind), f"The page is in {path}."], data=data | {"page": path})
