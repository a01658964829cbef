"""The sampling designs. Each defines its options, its draw, and the contents of its gold sets.

The draws themselves are implemented in corpora/draws/, balanced_draw.py and compared_draw.py.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from annotate.core.draws.splits import DEV, TEST, TRAIN
from annotate.core.option import Option, codes, days, format_value, named_file, set_sizes, sets
from annotate.kinds.balanced_draw import sample_balanced
from annotate.kinds.compared_draw import sample_compared
from corpora.core import CorpusError
from corpora.core.voters import DEFAULT, Panel
from corpora.draws.language_draws import (
    HISTORY,
    LEAST_POSTS,
    PRECISION_SIZE,
    RECALL_SIZE,
    SHARE,
    WINDOW,
    precision_design,
    recall_design,
    sample_precision,
    sample_recall,
    sample_triggers,
)
from corpora.draws.part_draws import sample_contrasted, sample_filtered, sample_records
from corpora.draws.samples import Sample, sample_uniform
from corpora.models import Corpus
from corpora.predictions.predictor_labels import find_predictor

ALL = ["all"]


@dataclass(frozen=True)
class DrawRequest:
    """The parameters of a task's draw.

    size: requested number of units; None for all units or for the design's default number
    languages: codes of the languages to draw for; None for all
    chosen: values of the design's options
    leave_out: ids of items to leave out of the frame
    labels: the task's labels
    unread: unlabelled posts in the uniform task, as a mapping from id to the label that the voters agree on; only
        for the design `triggers`
    panel: the voters whose agreement labels units automatically, in the task or, for `triggers`, in the uniform task.
        None means the default panel for posts, and no panel for records.
    """

    corpus: Corpus
    kind: Any  # a Kind, whose module imports this one
    size: int | None
    seed: str
    languages: list[str] | None
    chosen: Mapping[str, Any]
    leave_out: Collection[str] = frozenset()
    labels: Sequence[str] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    panel: Panel | None = None


DRAW = "The draw"
# How many kept pairs and how many dropped pairs an audit of a filter draws by default.
KEPT, DROPPED = 300, 100
# Keyword in the `sets` option that allows a smaller train set if a class has too few documents.
FILL = "fill"
# Keyword in the `sets` option before names of fields. Documents with the same value in one of these fields are all in
# test, all in dev, or all in train.
APART = "apart"
# If an option has no default here, the design supplies one, or the draw is unrestricted when the option is omitted.
DRAW_OPTIONS: Mapping[str, Option] = {
    option.name: option
    for option in (
        Option(
            "languages",
            codes,
            help="codes of the languages to draw for, or `all`: the languages that records declare, or those that a "
            "predictor returns and that are on the label list or have readers",
            group=DRAW,
        ),
        Option("predictor", help=f"{', '.join(DEFAULT.voters)}, majority, or an imported NAME@VERSION", group=DRAW),
        Option("of", shown="TASK", help="the uniform task whose unread posts are drawn", group=DRAW),
        Option("history", days, HISTORY, help="the days on which authors must have posted in the language", group=DRAW),
        Option(
            "window",
            days,
            help="the days from which posts are drawn; "
            f"by default {format_value(WINDOW)} for recall and all for precision",
            group=DRAW,
        ),
        Option(
            "sets",
            sets,
            help='in balanced, documents per language, such as "test 4000 dev 1000 train 1000 2000", where each train '
            "set contains the smaller ones. `joint 200` adds a joint train and dev set with 200 documents from "
            "each language. `fill` allows smaller train sets if a class has too few documents. After `apart`, "
            "list fields: documents with equal values stay in one set. In filtered, the numbers of pairs that "
            f'the filter kept and dropped, by default "kept {KEPT} dropped {DROPPED}"',
            group=DRAW,
        ),
        Option(
            "from_indices",
            Path,
            shown="FOLDER",
            help="use published lists of ids, such as german.train.1000, as the sets, and report their faults",
            group=DRAW,
        ),
        Option(
            "systems",
            named_file,
            several=True,
            in_a_row=True,
            shown="SYSTEM",
            help="in compare, two predictors of the corpus, such as mine@1 cld2. In systems, [NAME=]FILE for each "
            "system: a file, or a folder of files such as en_model_responses.txt, with tab-separated lines of "
            "message, reference reply and up to three replies",
            group=DRAW,
        ),
    )
}


# Populations: all posts, posts by authors who have written in the language before, and posts that a predictor assigns
# to the language.
STREAM, AUTHORS, TRIGGERS = "stream", "authors", "triggers"
# If the draw determines the possible answers, they are either classes of documents or the compared systems.
CLASSES, SYSTEMS = "classes", "systems"


@dataclass(frozen=True)
class PostSets:
    """The contents of a design's gold sets.

    measures: measures that the sets can estimate, in report order; empty unless they measure a predictor of posts
    stem: stem of the file with labels and ids
    includes: function that returns whether a labelled row belongs to the set
    has_negatives: whether the sets have labels such as `not-de`
    """

    measures: tuple[str, ...] = ()
    stem: str = ""
    includes: Callable[[Mapping[str, Any]], bool] = lambda row: True
    has_negatives: bool = False


@dataclass(frozen=True)
class Design:
    """A sampling design.

    name: name of the design in draws and commands
    spelled: name in sentences, before the word `set` or `design`
    draw: function that draws the samples
    check: function that raises CorpusError if the options of a draw are invalid, without drawing anything
    options: names of the design's options (DRAW_OPTIONS)
    needs: names of the options that are required
    size: default number of units, in total or per language; 0 if the user must state it; None to draw everything
    population: STREAM, AUTHORS or TRIGGERS; "" if the units are not posts
    sets: content of the gold sets
    answers_from: CLASSES or SYSTEMS, if the draw determines the possible answers; otherwise ""
    asks_each: whether each language has its own question and its own draw
    asks_all: whether annotators label every drawn item, even if the detectors agree on its label
    takes_panel: whether the manager can choose the panel of voters
    not_extended: what to do instead of enlarging a draw; "" if draws of this design can be enlarged
    none_found: what to do if no post matches
    """

    name: str
    spelled: str
    draw: Callable[[DrawRequest], list[Sample]]
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    size: int | None = 0
    population: str = ""
    sets: PostSets = PostSets()
    answers_from: str = ""
    asks_each: bool = False
    asks_all: bool = False
    takes_panel: bool = False
    not_extended: str = ""
    none_found: str = ""
    check: Callable[[Mapping[str, Any]], object] = lambda chosen: None

    @property
    def by_author(self) -> bool:
        """Whether the sets are samples of posts by authors whom a predictor found to have written in the language."""
        return self.population == AUTHORS

    @property
    def of_uniform(self) -> bool:
        """Whether the posts are drawn from a uniform task. The sets are then only meaningful with that task's set."""
        return "of" in self.needs


def _with_predictor(sample: Callable[..., list[Sample]]) -> Callable[[DrawRequest], list[Sample]]:
    def draw(request: DrawRequest) -> list[Sample]:
        options = dict(request.chosen)
        predictor = find_predictor(request.corpus.name, options.pop("predictor"))
        return sample(
            request.corpus, request.languages, size=request.size, seed=request.seed, predictor=predictor, **options
        )

    return draw


def _sizes(request: DrawRequest, *names: str) -> dict[str, list[Any]]:
    """Parse the `sets` option. Return the values after each keyword, such as the sizes of a set.

    names: keywords that the design accepts

    Raise CorpusError if a keyword is unknown or is followed by the wrong number of values.
    """
    sizes = set_sizes(request.chosen.get("sets", ""))
    for name, numbers in sizes.items():
        if name not in names:
            raise CorpusError(f"--sets: {name} is not a valid set. Valid sets: {', '.join(names)}.")
        if len(numbers) != (name != FILL) and not (name in (TRAIN, APART) and numbers):
            raise CorpusError(
                f"--sets: {name} has {len(numbers)} sizes, but must have {'none' if name == FILL else 'one'}."
            )
    return sizes


def _balanced(request: DrawRequest) -> list[Sample]:
    sizes = _sizes(request, TEST, DEV, TRAIN, "joint", FILL, APART)
    options: dict[str, Any] = {name: value for name, value in request.chosen.items() if name != "sets"}
    options |= {
        name: numbers if name in (TRAIN, APART) else numbers[0] for name, numbers in sizes.items() if name != FILL
    }
    options |= {"short": FILL} if FILL in sizes else {}
    return sample_balanced(
        request.corpus,
        request.languages,
        seed=request.seed,
        fields=request.kind.fields,
        classes=[label for label in request.labels if label not in request.kind.answers],
        leave_out=request.leave_out,
        **options,
    )


# Advice for designs whose draws can't be enlarged, because new units would have other questions and annotators.
_LARGER = "Open another task with a larger --size and with --reuse, which keeps the existing labels."
_OTHERS = "Choose another predictor, other languages, or wider windows."

DESIGNS: Mapping[str, Design] = {
    design.name: design
    for design in (
        Design(
            "uniform",
            "uniform",
            lambda request: [
                sample_uniform(
                    request.corpus, size=request.size or 0, seed=request.seed, panel=request.panel or DEFAULT
                )
            ],
            population=STREAM,
            takes_panel=True,
            sets=PostSets(("accuracy", "recall", "precision"), "uniformly_sampled"),
        ),
        Design(
            "recall",
            "recall-oriented",
            _with_predictor(sample_recall),
            options=("languages", "predictor", "history", "window"),
            needs=("predictor", "languages"),
            asks_each=True,
            size=RECALL_SIZE,
            population=AUTHORS,
            # A post with the answer No is not in the population, so it is left out of the set.
            sets=PostSets(("recall",), "recall_oriented", lambda row: row["label"] == row["asked"]),
            not_extended=_LARGER,
            none_found=_OTHERS,
            check=lambda chosen: recall_design(
                SHARE, LEAST_POSTS, chosen.get("history", HISTORY), chosen.get("window", WINDOW)
            ),
        ),
        Design(
            "precision",
            "precision-oriented",
            _with_predictor(sample_precision),
            options=("languages", "predictor", "window"),
            needs=("predictor", "languages"),
            asks_each=True,
            size=PRECISION_SIZE,
            population=TRIGGERS,
            sets=PostSets(("precision",), "precision_oriented", has_negatives=True),
            not_extended=_LARGER,
            none_found=_OTHERS,
            check=lambda chosen: precision_design(chosen.get("window")),
        ),
        Design(
            "triggers",
            "unread-triggers",
            lambda request: _with_predictor(
                partial(sample_triggers, unread=request.unread, voters=(request.panel or DEFAULT).voters)
            )(request),
            options=("languages", "predictor", "of"),
            needs=("predictor", "of", "languages"),
            asks_each=True,
            size=None,
            population=TRIGGERS,
            sets=PostSets(("accuracy", "recall", "precision"), "unread_triggers", has_negatives=True),
            not_extended=_LARGER,
            none_found="People have already read every post that the predictor labels with one of them, or the "
            "voters agree with the predictor.",
        ),
        Design(
            "records",
            "records",
            lambda request: sample_records(
                request.corpus,
                request.languages,
                size=request.size,
                seed=request.seed,
                together=request.kind.records.together,
                leave_out=request.leave_out,
                panel=request.panel,
            ),
            options=("languages",),
            size=None,
            takes_panel=True,
            not_extended="Open another task for further records.",
        ),
        Design(
            "compare",
            "compare",
            lambda request: sample_contrasted(
                request.corpus,
                request.languages,
                labels=request.labels,
                size=request.size or 0,
                seed=request.seed,
                of_records=bool(request.kind.fields),
                leave_out=request.leave_out,
                **request.chosen,
            ),
            options=("languages", "systems"),
            needs=("systems",),
            asks_all=True,
            not_extended="Open another task with another seed.",
        ),
        Design(
            "balanced",
            "balanced",
            _balanced,
            options=("languages", "predictor", "sets", "from_indices"),
            size=None,
            answers_from=CLASSES,
            not_extended="Open another task with larger sets.",
        ),
        Design(
            "systems",
            "systems",
            lambda request: sample_compared(
                request.corpus,
                request.languages,
                size=request.size,
                seed=request.seed,
                message=request.kind.fields[0],
                reference=next(iter(request.kind.records.kept), ""),
                leave_out=request.leave_out,
                **request.chosen,
            ),
            options=("languages", "systems"),
            needs=("systems",),
            size=None,
            answers_from=SYSTEMS,
            not_extended="Open another task for further messages.",
        ),
        Design(
            "filtered",
            "filtered",
            lambda request: sample_filtered(
                request.corpus,
                request.languages,
                seed=request.seed,
                leave_out=request.leave_out,
                **{"kept": KEPT, "dropped": DROPPED}
                | {name: numbers[0] for name, numbers in _sizes(request, "kept", "dropped").items()},
            ),
            options=("languages", "sets"),
            size=None,
            not_extended="Open another task with another seed.",
        ),
    )
}
