"""The question editor: a form for a kind's TOML file, with a preview. The files are stored in the inbox."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from django.conf import settings
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import content_disposition_header, urlencode
from django.utils.translation import get_language, override

from annotate.actions.open_task import ASKED_HERE
from annotate.core import stages
from annotate.core.refusals import NotFound
from annotate.kinds import KINDS, Kind, kind_draft
from annotate.kinds.files import HERE, KindError, kind_from_text, read_kind, read_text
from annotate.kinds.forms import FORMS
from annotate.kinds.interface_language import ENGLISH, label_name
from annotate.kinds.kind import STYLES
from annotate.kinds.kind_draft import TEMPLATES, AnswerRow, Draft, FieldRow, Texts
from annotate.kinds.kind_summary import value
from annotate.kinds.options import OPTIONS
from annotate.manager_pages import inbox
from annotate.manager_pages.action_forms import label_of
from annotate.manager_pages.corpus_setup import records_address
from annotate.manager_pages.dashboard import manage_page
from annotate.pages.access import UserRequest
from annotate.pages.item_view import render_markdown
from annotate.pages.kind_preview import languages_of, preview, usual_language
from annotate.quality.guideline_versions import in_language
from annotate.work.routes import register_languages
from corpora.core.languages import LANGUAGES
from corpora.models import Vocabulary
from corpora.sources.recognition import unused_name
from corpora.storage.inventory import POSTS, corpus_rows
from corpora.storage.layout import read_manifest

FORM, TOML = "form", "toml"  # the two views of the editor
# Name of an answer form -> label. For answer forms from plug-ins, the name is the label.
FORM_LABELS = {
    "choice": "One answer from a list",
    "grades": "A grade, best first",
    "labels": "Several concepts of a vocabulary",
    "pair": "The better of two systems",
    "spans": "Marked words of a text",
    "text": "Texts that people write and review",
}
# Template -> displayed name, in page order.
TEMPLATE_LABELS = {
    "sentiment": "Sentiment",
    "topics": "Topic",
    "toxicity": "Toxicity",
    "relevance": "Relevance",
    "translation_quality": "Translation quality",
    "inference": "Natural language inference",
    "comparison": "Pairwise comparison",
    "marked_words": "Marked words",
}
NEW_ANSWER, NEW_FIELD = "answer", "field"
CONFLICTS = {stages.ADJUDICATION: "An adjudicator decides", stages.DISCARDED: "The item is left out"}


@dataclass(frozen=True)
class EditedFile:
    """A file in the editor.

    text: text of the file
    draft: content of the form; None if the text is not valid TOML
    slug: kind name
    file: name of the edited file in the inbox; "" for a new file
    corpus: corpus that the question is written for; "" if there is none
    view: FORM or TOML
    language: language of the preview; "" for the default language
    """

    text: str
    draft: Draft | None
    slug: str
    file: str = ""
    corpus: str = ""
    view: str = FORM
    language: str = ""

    @property
    def name(self) -> str:
        return f"{self.slug}.toml"

    def kind(self) -> Kind:
        """Parse the kind. Raise KindError if it is invalid, doesn't fit the corpus or would overwrite another file."""
        register_languages()
        path = inbox.folder() / self.name
        if path.parent != inbox.folder() or path.name != self.name:
            raise KindError(f"{self.slug!r} is not a valid name for a kind. Remove the slashes.", path=("slug",))
        kind = kind_from_text(path, self.text)
        if self.name != self.file and path.exists():
            raise KindError(f"The file {self.name} already exists. Choose another name.", path=("slug",))
        if corpus := _corpus(self.corpus):
            for name in kind.fields:
                if name not in corpus["fields"]:
                    fields = ", ".join(corpus["fields"]) or "none"
                    message = f"The corpus {self.corpus} has no field {name}. Available fields: {fields}."
                    raise KindError(message, path=("fields", name))
        return kind


def edit(request: UserRequest) -> HttpResponse:
    """Let the manager choose a template, edit a question and save it to the inbox.

    ?template=: name of a template or of a built-in kind
    ?file=: name of a file in the inbox
    ?corpus=: name of the corpus that the question is written for

    POST fields:
    do: `preview`, `save`, `download`, a view (`form` or `toml`), or a change to the form such as `remove-answer-2`
    """
    if request.method == "GET":
        if not request.GET.keys() & {"template", "file"}:
            corpus = _corpus(request.GET.get("corpus", ""))
            as_records = records_address(corpus["corpus"]) if corpus and corpus["holds"] == POSTS else ""
            return manage_page(
                request, "kind_templates", templates=list(_cards()), corpus=corpus, as_records=as_records
            )
        return _page(request, _open(request.GET.dict()))
    do = request.POST.get("do", "preview")
    if request.htmx and do == "save":  # htmx requests previews only, but includes the button that was pressed last
        do = "preview"
    edited, fault = _read_form(request.POST, do)
    try:
        kind = None if fault else edited.kind()
    except KindError as error:
        kind, fault = None, error
    if do == "download":
        headers = {"Content-Disposition": content_disposition_header(True, edited.name) or ""}
        return HttpResponse(edited.text, content_type="application/toml; charset=utf-8", headers=headers)
    if do == "save" and kind:
        path = inbox.write(edited.name, edited.text)
        query = {"corpus": edited.corpus, "kind": str(path)} if edited.corpus else {}
        return redirect(f"{reverse('manage-new-task')}?{urlencode(query)}")
    return _page(request, edited, fault, kind)


def _corpus(name: str) -> Mapping[str, Any] | None:
    """Return a corpus's row; None if the corpus does not exist."""
    return next((row for row in corpus_rows() if name and row["corpus"] == name), None)


def _cards() -> Iterator[tuple[str, str, Kind, bool]]:
    """Yield (name, label, kind, is_published) for each template. Kinds of published data sets have no label."""
    for name, label in TEMPLATE_LABELS.items():
        yield name, label, read_kind(TEMPLATES[name]), False
    for name in ASKED_HERE:
        if KINDS[name].source:
            yield name, "", KINDS[name], True


# --- Opening


def _open(query: Mapping[str, str]) -> EditedFile:
    """Open a file from the inbox, or a copy of a template under an unused name."""
    corpus = query.get("corpus", "")
    if file := query.get("file"):
        path = inbox.find_file(file)
        text, slug = read_text(path), path.stem
    else:
        name = query["template"]
        if name not in TEMPLATES and not (name in KINDS and KINDS[name].source):
            raise NotFound(f"The template {name!r} does not exist.")
        path = TEMPLATES.get(name, HERE / f"{name}.toml")
        text, slug = read_text(path), _unused_name(name if name in TEMPLATES else f"my_{name}")
    try:
        draft = kind_draft.read(text)
    except KindError:
        return EditedFile(text, None, slug, file or "", corpus, TOML)
    # If the guidelines are files next to the kind, the form shows and saves their texts instead of their names.
    for source in path.parent.glob("*.md"):
        for code in [code for code, entry in draft.guidelines.items() if entry == source.name]:
            draft.guidelines[code] = source.read_text(encoding="utf-8-sig", errors="replace").strip()
    if row := None if query.get("file") else _corpus(corpus):
        manifest = read_manifest(row["corpus"])
        _rename_fields(draft, row["fields"], manifest.sources[0].columns if manifest and manifest.sources else {})
    return EditedFile(kind_draft.write(text, draft), draft, slug, file or "", corpus)


def _unused_name(stem: str) -> str:
    return unused_name(stem, (path.stem for path in inbox.files()), "_")


def _rename_fields(draft: Draft, names: Collection[str], columns: Mapping[str, str]) -> None:
    """Rename fields that the corpus lacks to fields of the corpus that are not in the draft yet.

    columns: mapping from field to the file's column, which becomes the field's displayed name
    """
    spare = iter([name for name in names if name not in {row.name for row in draft.fields}])
    for row in draft.fields:
        if row.name not in names:
            row.name = next(spare, row.name)
            column = columns.get(row.name, row.name)
            row.names = row.names if column == row.name else {ENGLISH: column.replace("_", " ").capitalize()}


# --- Submitted forms


def _read_form(posted: QueryDict, do: str) -> tuple[EditedFile, KindError | None]:
    """Read the submitted file, and apply a change to it. Return the file and, if its text is not valid TOML, the error.

    do: the change, as in `edit`
    """
    text = posted.get("toml", "").replace("\r\n", "\n")
    edited = EditedFile(
        text,
        None,
        posted.get("slug", "").strip(),
        posted.get("file", ""),
        posted.get("corpus", ""),
        posted.get("view", FORM),
        posted.get("shown", ""),
    )
    try:
        if edited.view == TOML:
            draft = kind_draft.read(text)
            return replace(edited, draft=draft, view=do if do == FORM else TOML), None
        draft = _read_draft(posted)
        _apply_change(draft, do, posted.get("add-language", ""))
        written = kind_draft.write(text, draft)
        return replace(edited, text=written, draft=draft, view=do if do == TOML else FORM), None
    except KindError as error:
        return replace(edited, view=TOML), error


def _read_draft(posted: QueryDict) -> Draft:
    languages = list(dict.fromkeys([ENGLISH, *posted.getlist("language")]))
    columns = {name: [text.strip() for text in texts] for name, texts in posted.lists()}

    def column(name: str) -> list[str]:
        return columns.get(name, [])

    def texts(name: str, number: int) -> Texts:
        cells = {code: column(f"{name}-{code}")[number : number + 1] for code in languages}
        return {code: cell[0] for code, cell in cells.items() if cell and cell[0]}

    fields = zip(column("field"), column("style"), column("was"), strict=False)
    answers = zip(column("code"), column("key"), strict=False)
    return Draft(
        titles=texts("title", 0),
        form=posted.get("form", ""),
        vocabulary=posted.get("vocabulary", ""),
        fields=[FieldRow(name, style, texts("label", row), was) for row, (name, style, was) in enumerate(fields)],
        answers=[
            AnswerRow(code, key, texts("name", row), texts("meaning", row)) for row, (code, key) in enumerate(answers)
        ],
        redundancy=posted.get("redundancy", "").strip(),
        on_conflict=posted.get("on_conflict", ""),
        guidelines={code: text.replace("\r\n", "\n") for code, text in texts("guidelines", 0).items()},
        languages=languages,
        has_base="has_base" in posted,
    )


def _apply_change(draft: Draft, do: str, language: str) -> None:
    """Add, remove or move a row of the form, or add or remove a language."""
    verb, _, rest = do.partition("-")
    noun, _, value = rest.partition("-")
    rows: dict[str, list[Any]] = {NEW_ANSWER: draft.answers, NEW_FIELD: draft.fields}
    if noun == "language":
        code = language if verb == "add" else value
        draft.languages = [other for other in draft.languages if other != code or code == ENGLISH]
        if verb == "add" and code in LANGUAGES and code not in draft.languages:
            draft.languages.append(code)
        elif verb == "remove" and code != ENGLISH:
            for texts in draft.texts():
                texts.pop(code, None)
    elif noun in rows and verb == "add":
        rows[noun].append(AnswerRow() if noun == NEW_ANSWER else FieldRow(style=next(iter(STYLES))))
    elif noun in rows and value.isdecimal() and int(value) < len(rows[noun]):
        row = rows[noun].pop(int(value))
        if verb == "down":
            rows[noun].insert(int(value) + 1, row)


# --- Pages


def _page(
    request: UserRequest, edited: EditedFile, fault: KindError | None = None, kind: Kind | None = None
) -> HttpResponse:
    """Show the editor with the preview. For htmx, return only the preview and the errors.

    fault: error to show
    kind: kind that the text defines; if neither `kind` nor `fault` is passed, the text is parsed
    """
    if not (fault or kind):
        try:
            kind = edited.kind()
        except KindError as error:
            fault = error
    draft = edited.draft
    place = kind_draft.form_location(fault.path, draft) if fault and draft and edited.view == FORM else ""
    context = {
        "edited": edited,
        "fault": _sentence(fault, place) if fault else "",
        "place": place,
        **(_preview(kind, edited.language, edited.corpus) if kind else {}),
    }
    do = request.POST.get("do", "preview")
    if request.htmx and do in ("preview", "save"):
        places = _places(draft) if draft and edited.view == FORM else ("", "slug")
        return render(request, "annotate/manage/_kind_preview.html", context | {"is_update": True, "places": places})
    context |= {
        "digest": f"{crc32(repr(edited).encode()):x}",
        "is_refused": do == "save",
        "added": do.removeprefix("add-") if do.startswith("add-") else "",
        **(_form(draft, edited, kind) if draft and edited.view == FORM else {}),
    }
    return manage_page(request, "kind_editor", status=400 if do == "save" else 200, **context)


def _form(draft: Draft, edited: EditedFile, kind: Kind | None) -> dict[str, Any]:
    """Return the template context of the form. Each text is a list of (code, name of the language, text) tuples."""

    def cells(*texts: Texts) -> list[tuple[str, ...]]:
        return [(code, label_name(code), *(text.get(code, "") for text in texts)) for code in draft.languages]

    return {
        "draft": draft,
        "titles": cells(draft.titles),
        "fields": [(row, cells(row.names)) for row in draft.fields],
        "conflicts": list(_conflicts(draft.on_conflict, kind)),
        "answers": [(row, cells(row.names, row.meanings)) for row in draft.answers],
        "guideline_texts": cells(draft.guidelines),
        "forms": [(name, FORM_LABELS.get(name, name)) for name in FORMS],
        "styles": [*STYLES.items()],
        "vocabularies": sorted(set(Vocabulary.objects.values_list("name", flat=True))),
        "languages": [(code, label_name(code)) for code in draft.languages],
        "more_languages": sorted((label_name(code), code) for code in LANGUAGES if code not in draft.languages),
        "corpus_fields": (_corpus(edited.corpus) or {}).get("fields", ()),
    }


def _conflicts(chosen: str, kind: Kind | None) -> Iterator[tuple[str, str, bool]]:
    """Yield (value, text, is_selected) for each choice of “On conflict”. The default has an empty value.

    kind: kind of the draft; None if the draft has an error, so that the kind's default is unknown
    """
    usual = value(kind, "on_conflict") if kind and not chosen else ""
    if not (chosen or usual):
        yield "", "The default of the answer type", True
    for code, words in CONFLICTS.items():
        yield "" if code == usual else code, words, code in (chosen, usual)


def _places(draft: Draft) -> Iterator[str]:
    """Yield the names of the form parts that can show an error."""
    yield from ("", "slug", "title", "redundancy")
    yield from () if draft.has_base else ("form", "layout")
    yield from ["vocabulary"] if draft.needs_vocabulary else ["answers"] if draft.lists_answers else []
    yield from (f"field-{row}" for row in range(len(draft.fields)))
    yield from (f"answer-{row}" for row in range(len(draft.answers) if draft.lists_answers else 0))
    yield from (f"guidelines-{code}" for code in draft.languages)


def _sentence(fault: KindError, place: str) -> str:
    """Return an error as a sentence, with the line number unless the sentence is shown next to the field."""
    text = fault.sentence if place else str(fault)
    text = text.replace(f"{inbox.folder()}/", "")
    if place == "redundancy":
        for name in (place, "stop_early", "on_conflict"):
            text = text.replace(name, f"“{label_of(OPTIONS[name])}”")
    return text[0].upper() + text[1:]


def _preview(kind: Kind, language: str, corpus: str) -> dict[str, Any]:
    """Return the template context of the preview, which is in the item's language if a translation exists."""
    if language not in languages_of(kind):
        language = usual_language(kind)
    is_translated = language in dict(settings.LANGUAGES)
    with override(language if is_translated else get_language()):
        html = preview(kind, language, corpus if _corpus(corpus) else "", standalone=False)
    return {
        "preview": html,
        "guidelines": render_markdown(in_language(language, kind.guidelines) or ""),
        "shown": language,
    }
