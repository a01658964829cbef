"""The `open_task` action, which draws items from a corpus and opens a task that asks about them, and `extend_task`.

opening_summary.py builds the summary that both print.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from annotate.actions import opening_summary
from annotate.actions.action import TASK, ActionError, Outcome, Progress, Values, action, column
from annotate.controls.gold_answers import FIELDS as GOLD_FIELDS
from annotate.controls.gold_answers import GoldAnswerError, read_gold
from annotate.core.option import Option, codes, flag, labels, share, whole_number, words
from annotate.kinds import KINDS, Kind, record_kind
from annotate.kinds.designs import ALL, CLASSES, DESIGNS, DRAW, DRAW_OPTIONS, STREAM, Design, DrawRequest
from annotate.kinds.file_sections import guidelines_fault
from annotate.kinds.files import KindError, read_kind
from annotate.kinds.options import AGREEMENT, BLIND_SHARE, OF_AUDIT, SUGGESTIONS
from annotate.kinds.options import OPTIONS as TASK_OPTIONS
from annotate.kinds.panel_kind import takes_panel, with_panel
from annotate.models import AnnotatorLanguage
from annotate.reports.tables import many
from annotate.work import task_creation
from annotate.work.membership import EVERYBODY, MEMBERS, OPEN_TO
from annotate.work.routes import register_languages
from annotate.work.task_creation import DEPTH, Opened, TaskError
from corpora.core.languages import ARTICLE_LABELS, LANGUAGES, finer, meant
from corpora.core.voters import DEFAULT, MOST, Panel
from corpora.predictions.panels import panel_named
from corpora.predictions.predictor_labels import find_predictor, triggers
from corpora.sources.readers import named_columns
from corpora.storage.inventory import corpus_named
from corpora.storage.layout import check_posts, check_votes, manifest_of

ASKED_HERE = [slug for slug, kind in KINDS.items() if kind.answered_here]
MANY = 20  # maximum number of codes listed in a note
SIZES = ", ".join(f"{design.name} {design.size:,}" for design in DESIGNS.values() if design.size)
SIZELESS = ", ".join(design.name for design in DESIGNS.values() if design.size is None)


def as_draw_option(option: Option) -> Option:
    """Return an option of draws without its default, because each design has its own.

    The help text lists the designs that support the option.
    """
    designs = [design.name for design in DESIGNS.values() if option.name in design.options]
    design_list = " and ".join(filter(None, [", ".join(designs[:-1]), designs[-1]]))
    return replace(
        option, default=None, help=f"for the design{'s'[: len(designs) > 1]} {design_list}: {option.help_text()}"
    )


def as_task_option(option: Option) -> Option:
    """Return an option of tasks without its default, because each kind has its own (see the help text)."""
    kinds = {slug: (KINDS[slug].options, KINDS[slug].defaults) for slug in ASKED_HERE}
    kinds["a kind of your own"] = (record_kind.OPTIONS, record_kind.DEFAULTS)
    differing = {
        name: defaults[option.name]
        for name, (options, defaults) in kinds.items()
        if option.name in options and defaults.get(option.name, option.default) != option.default
    }
    return replace(option, default=None, help=option.help_text(differing))


QUESTION, KNOWN = "The question", "Known answers"
DRY_RUN = Option(
    "dry_run",
    flag,
    False,
    help="only show the work that would be created and who could do it; nothing is stored",
    group=DRAW,
)
OPTIONS = (
    Option("name", required=True, argument=True, help="the task's name in URLs and commands"),
    Option("corpus", help="the corpus to draw from", group=DRAW),
    Option(
        "kind",
        help=f"one of {', '.join(ASKED_HERE)}, or your own file such as my_kind.toml; by default the first kind that "
        "has the design",
        group=QUESTION,
    ),
    Option(
        "design",
        choices=tuple(DESIGNS),
        help="how to draw; by default uniform, which asks for the language; recall, precision and triggers ask "
        "about one language",
        group=DRAW,
    ),
    Option(
        "size",
        whole_number,
        least=1,
        help=f"the number of items to draw, overall or per language; by default {SIZES}, and all items for {SIZELESS}",
        group=DRAW,
    ),
    Option(
        "seed",
        help="any word or number; the same seed draws the same items. Random draws for quality control (audits, "
        "overlaps, decoys) use the task's secret instead",
        group=DRAW,
    ),
    Option("title", default="", help="the task's name as annotators see it", group=QUESTION),
    Option(
        "open_to",
        default=EVERYBODY,
        choices=OPEN_TO,
        help="who works on the task: everybody who reads its languages, or only the members that you add to it",
        group=QUESTION,
    ),
    Option(
        "labels",
        labels,
        default=(),
        help="the possible answers. uniform: language codes, instead of all 70 languages; balanced: declared labels, "
        'such as "CCAT ECAT GCAT MCAT" or "world news; sports". Documents with none or several of these labels are '
        "never drawn",
        group=QUESTION,
    ),
    DRY_RUN,
    Option(
        "guidelines",
        Path,
        default=(),
        several=True,
        in_a_row=True,
        shown="FILE",
        help="guidelines in Markdown, such as ads.fr.md for French, to replace the kind's own guidelines",
        group=QUESTION,
    ),
    Option(
        "gold",
        Path,
        default=(),
        several=True,
        in_a_row=True,
        shown="FILE",
        help="records with known answers: columns id, label, purpose (practice, test or queue) and explanation; rows "
        "without a purpose are ignored",
        group=KNOWN,
    ),
    column(GOLD_FIELDS, name="gold_column", group=KNOWN),
    Option(
        "reuse",
        flag,
        False,
        help="reuse existing labels and ask annotators only about the other items. For recall, precision and triggers, "
        "these are labels from other tasks; for concepts, the labels that came with the documents",
        group=KNOWN,
    ),
    Option(
        "suggest",
        default=(),
        several=True,
        shown="PREDICTOR",
        help="imported predictions whose labels annotators see beside the answers, such as mine@2; not for questions "
        f"about languages, spans and texts. For concepts, the first {DEPTH} labels of one or more ranked predictors",
        group=SUGGESTIONS,
    ),
    Option(
        "blind_share",
        share,
        help="the share of the combinations of annotator and item for which the suggestion is hidden, so that answers "
        f"can be compared; by default {BLIND_SHARE}",
        group=SUGGESTIONS,
        most=1,
    ),
    Option(
        "voters",
        words,
        default=(),
        shown='"NAME NAME"',
        help="two to seven machines that vote on each item: detectors, and imported predictions such as mine@1. If "
        "they agree, the item gets their label, and annotators audit a share of such items; by default "
        f"{' '.join(DEFAULT.voters)} for the language of posts, and none for records",
        group=AGREEMENT,
    ),
    Option(
        "agree",
        whole_number,
        least=1,
        most=MOST,
        help="how many voters must agree, more than half; by default all",
        group=AGREEMENT,
    ),
    *map(as_draw_option, DRAW_OPTIONS.values()),
    *map(as_task_option, TASK_OPTIONS.values()),
)


class _DryRun(Exception):
    """Raised to roll back the transaction of a dry run."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


def run(values: Values, progress: Progress) -> Outcome:
    """Open or extend a task. In a dry run, only summarize what would be done."""
    progress.begin(None, "item")
    size, is_dry_run, extended = values["size"], values["dry_run"], values["extended"]

    def undo(opened: Opened) -> None:
        # Summarize the complete task before it is rolled back.
        raise _DryRun(opening_summary.summary(opened, size, extended=extended, is_dry_run=True))

    try:
        opened = values["operation"](progress=progress.advance, then=undo if is_dry_run else lambda opened: None)
    except _DryRun as dry_run:
        outcome = dry_run.outcome
    else:
        # The summary takes a while. Inside the transaction, it would block other writers.
        outcome = opening_summary.summary(opened, size, extended=extended)
    return replace(outcome, warned=[*outcome.warned, *values["notes"]])


# --- A new task


def check_new(values: Values) -> dict[str, Any]:
    """Return the operation that opens the task, and notes on the draw. Raise any error known before the draw."""
    name, kind = values["name"], kind_named(values["kind"], values["design"])
    design = DESIGNS[values["design"] or kind.designs[0]]
    if values["voters"] and takes_panel(kind):
        kind = with_panel(kind)
    check_design(kind, design, values)
    corpus = corpus_named(values["corpus"])
    if design.population == STREAM:
        manifest = manifest_of(corpus.name)
        check_posts(corpus.name, manifest)
        if not values["voters"]:
            check_votes(corpus.name, manifest)
    chosen = {option: values[option] for option in design.options if values[option] is not None}
    design.check(chosen)
    if "predictor" in design.needs:
        find_predictor(corpus.name, chosen["predictor"])
    languages, notes = chosen.pop("languages", None), []
    if languages == ALL:
        languages, notes = all_languages(corpus.name, values["predictor"]) if design.asks_each else (None, [])
    languages = meant(languages, kind.knows) if languages else None
    draw = {"size": values["size"], "seed": values["seed"], "languages": languages, "chosen": chosen}
    draw["panel"] = chosen_panel(corpus.name, kind, values)
    fields = {
        "title": values["title"],
        "labels": labels_entered(kind, values["labels"]) if values["labels"] else (),
        "reuse": values["reuse"],
        "options": {option: values[option] for option in TASK_OPTIONS if values.get(option) is not None},
        "members_only": values["open_to"] == MEMBERS,
        **{name: values[name] for name in ("suggest", "blind_share")},
    }
    task_creation.unsaved_task(name, design, DrawRequest(corpus, kind, **draw), **fields)
    more: dict[str, Any] = {
        "gold": values["gold"] and read_gold(values["gold"], named_columns(values["gold_column"], GOLD_FIELDS)),
        "guidelines": values["guidelines"] and read_guidelines(values["guidelines"]),
    }
    operation = partial(task_creation.open_task, name, corpus, kind, design=design.name, **draw, **fields, **more)
    return {"operation": operation, "extended": False, "notes": notes}


def chosen_panel(corpus: str, kind: Kind, values: Values) -> Panel | None:
    """Return the panel the manager chose. None means the default panel for posts, and no panel for records."""
    names, agree = values["voters"], values["agree"]
    if agree and not names and not kind.audits_agreement:
        raise ActionError("--agree has no effect without voters. Set --voters, or remove it.", option="agree")
    panel = panel_named(corpus, names or DEFAULT.voters, agree) if names or agree else DEFAULT
    return None if panel == DEFAULT else panel


def labels_entered(kind: Kind, labels: Sequence[str]) -> Sequence[str]:
    """Return the labels the manager entered. Languages may be separated by commas, and their codes are normalized."""
    return meant(chain(*map(codes, labels)), kind.knows) if kind.routing.is_routed else labels


def all_languages(corpus: str, predictor: str) -> tuple[list[str], list[str]]:
    """Return the languages that `all` stands for in a draw by a predictor's labels, and a note on excluded languages.

    In a large corpus, a classifier for 176 languages predicts nearly all of them, most by mistake. That's why `all`
    includes only predicted languages that are on the article's label list or that an annotator reads.

    corpus, predictor: names
    """
    counts = triggers(corpus, find_predictor(corpus, predictor))
    listed = {*ARTICLE_LABELS, *AnnotatorLanguage.objects.filter(level__gt=0).values_list("language", flat=True)}
    included = sorted(code for code in counts if code in LANGUAGES and listed & {code, *finer(code)})
    excluded = sorted(code for code in counts if code in LANGUAGES and code not in included)
    if not included:
        raise ActionError(
            f"{predictor} labels no post with a language of the label list. Specify other languages with --languages."
        )
    if not excluded:
        return included, []
    more = f" and {len(excluded) - MANY} more" if len(excluded) > MANY else ""
    note = (
        f"Note: `all` covers {many(len(included), 'language')} from the label list or with readers. {predictor} also "
        f"labels {many(sum(counts[code] for code in excluded), 'post')} with {', '.join(excluded[:MANY])}{more}. To "
        "draw for these too, specify all languages with --languages."
    )
    return included, [note]


def kind_named(name_or_path: str | None, design: str | None) -> Kind:
    """Return the kind with a name, or the kind that a file defines.

    Raise ActionError if there is no such kind, or if the kind has no layout.

    name_or_path: name of a built-in kind or path of a file; None for the first built-in kind that has the design
    design: name of the design; None for any design
    """
    if name_or_path is None:
        return next(kind for kind in KINDS.values() if not design or design in kind.designs)
    if name_or_path in ASKED_HERE:
        return KINDS[name_or_path]
    if name_or_path.endswith(".toml"):
        register_languages()  # so that the file can't rename an existing language code
        kind = read_kind(Path(name_or_path))
        if kind.answered_here:
            return kind
        raise ActionError(
            f"The kind {name_or_path} has no [[layout]], so it cannot be annotated. Add [[layout]] and [[answers]] to "
            "the file."
        )
    raise ActionError(
        f"There is no kind {name_or_path!r}; available: {', '.join(ASKED_HERE)}, or the path of a .toml file."
    )


def read_guidelines(paths: Iterable[Path]) -> dict[str, str]:
    """Read guidelines in Markdown. Return a mapping from language to text.

    A file name such as guide.de.md contains the language. Otherwise, the language is English.
    """
    texts = {}
    for path in paths:
        code = path.stem.rpartition(".")[2]
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise ActionError(f"Cannot read the guidelines {path}: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise ActionError(f"The guidelines {path} are not UTF-8. Save them as UTF-8.") from error
        if fault := guidelines_fault(text):
            raise ActionError(f"The guidelines {path} {fault}.")
        texts[code if code in LANGUAGES and "." in path.stem else "en"] = text
    return texts


def check_design(kind: Kind, design: Design, values: Values) -> None:
    """Check that a kind, a design and the options are compatible.

    Raise ActionError if the kind does not support the design, if a required option is missing, or if an option is set
    that neither the kind nor the design has.
    """
    by_design = f"by the {design.spelled} design"
    if design.name not in kind.designs:
        raise ActionError(
            f"{kind.slug} tasks are not drawn {by_design}. Set --design to {', '.join(kind.designs)}, or choose "
            "another --kind."
        )
    needed = ("corpus", "seed", *design.needs, *(["labels"] if design.answers_from == CLASSES else []))
    if missing_options := [name for name in needed if not values[name]]:
        raise ActionError(f"--{missing_options[0]} is needed to open a task {by_design}.")
    if values["size"] is None and design.size == 0:
        raise ActionError(f"--size is needed to open a task {by_design}.")
    if empty_options := [DRAW_OPTIONS[name].spelled for name in design.options if values[name] == []]:
        raise ActionError(f"{empty_options[0]} is empty. Specify a value or remove the option.")
    if values["blind_share"] is not None and not values["suggest"]:
        raise ActionError("--blind-share has no effect without suggestions. Set --suggest, or remove it.")
    unsupported = unsupported_options(kind, design)
    if inapplicable := [
        option.spelled for option in OPTIONS if option.name in unsupported and values[option.name] != option.default
    ]:
        are_labels = "--languages" in inapplicable and kind.routing.is_routed
        hint = " To choose the languages that annotators can answer, use --labels." if are_labels else ""
        raise ActionError(
            f"{', '.join(inapplicable)} is not an option of {kind.slug} tasks drawn {by_design}. Remove it.{hint}"
        )


def unsupported_options(kind: Kind, design: Design) -> set[str]:
    """Return the names of the options that neither the kind nor the design has."""
    inputs = {name for control in kind.quality_controls for name in control.inputs}
    if kind.labels_are_languages:
        inputs -= {"suggest", "blind_share"}  # the answers judge machines' labels, so machines must not influence them
    is_supported = {
        **{name: name in design.options for name in DRAW_OPTIONS},
        **{name: name in kind.options for name in TASK_OPTIONS},
        **(dict.fromkeys(OF_AUDIT, False) if design.asks_all else {}),
        "languages": "languages" in design.options and (design.asks_each or not kind.routing.is_routed),
        "labels": design.answers_from == CLASSES or (kind.routing.is_routed and not design.asks_each),
        "size": "sets" not in design.options,
        "reuse": design.asks_each or "reuse" in inputs,
        **dict.fromkeys(("voters", "agree"), design.takes_panel and takes_panel(kind)),
        **{name: name in inputs for name in ("gold", "gold_column", "suggest", "blind_share")},
    }
    return {name for name, supported in is_supported.items() if not supported}


# --- The actions


def _check_extension(values: Values) -> dict[str, Any]:
    task, size = values["name"], values["size"]
    task_creation.check_extension(task, size)
    return {"operation": partial(task_creation.extend_task, task, size), "extended": True, "notes": []}


open_task_action = action(
    "open_task",
    "Draw items from a corpus, open a task that asks a kind of question about them, and queue the items that machines "
    "cannot decide for annotators. --corpus and --seed are required, and for the uniform design also --size.",
    *OPTIONS,
    refuses=(TaskError, GoldAnswerError, KindError),
    checks=check_new,
)(run)
extend_task_action = action(
    "extend_task",
    "Enlarge a task by drawing more items from the same corpus with the same seed. All other settings stay the same.",
    replace(TASK, name="name"),
    Option("size", whole_number, required=True, least=1, help="the new total of items, not the number to add"),
    DRY_RUN,
    refuses=(TaskError,),
    checks=_check_extension,
)(run)
