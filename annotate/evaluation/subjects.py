"""Predictors and gold sets of an evaluation, and checks that they are compatible.

Labels form one class if a predictor or a set does not distinguish them.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from annotate.goldsets.gold_set import GoldSet, read_gold_set
from annotate.kinds.designs import STREAM
from annotate.kinds.interface_language import NOT
from annotate.reports.tables import many
from corpora.core.languages import LANGUAGES
from corpora.core.languages import finer as finer_labels
from corpora.predictions.prediction_rows import EVERY_LABEL, FIELDS, Mapped, classes, read_map, read_predictions
from corpora.predictions.predictor_labels import Predictor, find_predictor, predicted_labels
from corpora.sources.compression import format_of
from corpora.sources.readers import named_columns

NAMED = 5  # a message lists at most this many ids or labels
UNFAIR_LOOK = (
    "--sequential requires a finished set of posts: while disputed posts are pending, the labelled posts are not a "
    "random sample. Wait until the round is finished, then extend the task or its audit for the next look."
)


class EvaluationError(Exception):
    """The evaluation is not possible, and nothing was written. The message explains why and what to do."""


@dataclass(frozen=True)
class Subject:
    """A predictor to measure.

    labels: function that returns the labels of the given ids. An optional second argument lists ids whose labels may be
        unknown. Ids with unknown labels are left out of the result.
    corpus: corpus that the labels come from; "" for a file.
    file: file that the labels come from; None for the corpus.
    warnings: sentences for the report about the file.
    others: for each label, the number of items outside the sets that have it, if requested.
    """

    name: str
    version: str
    mapping: Mapped
    labels: Callable[..., dict[str, str]]
    predictor: Predictor | None = None
    corpus: str = ""
    file: Path | None = None
    warnings: tuple[str, ...] = ()
    others: Counter[str] = field(default_factory=Counter)

    @property
    def full_name(self) -> str:
        return f"{self.name}@{self.version}" if self.version else self.name

    def is_same(self, other: "Subject") -> bool:
        return bool(self.predictor or self.file) and (self.predictor, self.file) == (other.predictor, other.file)

    def voted_in(self, gold: GoldSet) -> bool:
        """Return whether the predictor is one of the voters whose agreement determined labels of the set.

        Only uniform sets have such labels; in other sets, annotators give all labels. False for a file, because a file
        may bear a detector's name without coming from that detector.
        """
        return self.predictor is not None and gold.population == STREAM and self.full_name in gold.voted

    def drew(self, name: str) -> bool:
        """Return whether this predictor drew the posts of a gold set.

        name: name of the predictor that drew the posts, as name@version.
        """
        return self.predictor is not None and self.full_name == name


def subject_of_corpus(corpus: str, name: str, others: Collection[str] = ()) -> Subject:
    """Return a predictor of a corpus.

    corpus: corpus name.
    name: predictor name.
    others: ids of items outside the sets. Their labels are only counted.

    Raise CorpusError if the corpus has no such predictor.
    """
    predictor = find_predictor(corpus, name)
    # Cached because a comparison requests the same labels again.
    labels: Callable[..., dict[str, str]] = cache(partial(predicted_labels, corpus, predictor))
    counted = Counter(labels((), others).values()) if others else Counter[str]()
    return Subject(predictor.name, predictor.version, predictor.mapping, labels, predictor, corpus, others=counted)


def subject_of_file(
    path: Path,
    declared: Mapped,
    columns: dict[str, str] | None = None,
    format: str | None = None,
    sets: Collection[GoldSet] = (),
    others: Collection[str] = (),
) -> Subject:
    """Return the predictor whose labels are in a file.

    declared: the labels that each coarse label includes.
    columns: mapping from field to column of the file.
    format: format of the file; None to derive it from the file's name.
    sets: the gold sets. Their labels are accepted even if they are not languages, see `_spellings`.
    others: ids of items outside the sets, EVERY_LABEL for all items. Their labels are only counted.

    Raise CorpusError if the file has no valid predictions.
    """
    spellings = _spellings(sets)
    ids = {key for gold in sets for key in (*(row.id for row in gold.rows), *gold.unresolved_ids)}
    only = EVERY_LABEL if others is EVERY_LABEL else ids.union(others)
    predictions, summary = read_predictions(path, declared, columns=columns, format=format, also=spellings, only=only)
    predictions = {key: spellings.get(label, label) for key, label in predictions.items()}

    def labels(ids: Collection[str], also: Collection[str] = ()) -> dict[str, str]:
        if missing := [key for key in ids if key not in predictions]:
            raise EvaluationError(
                f"{path} has no label for {len(missing):,} of {len(ids):,} posts of the gold "
                f"sets{list_ids(missing)}. Add their labels (und if the predictor gives no language), or list posts "
                "that no longer exist with --vanished."
            )
        return {key: predictions[key] for key in (*ids, *also) if key in predictions}

    warnings = [f"{path.name}: {sentence}" for sentence in summary.sentences()]
    if summary.outside:
        warnings.append(f"{path.name}: ignored {many(summary.outside, 'row')} for posts outside the gold sets.")
    in_sets = {row.id for gold in sets for row in gold.rows} if others else predictions.keys()
    counted = Counter(label for key, label in predictions.items() if key not in in_sets)
    return Subject(path.name, "", classes(declared), labels, None, "", path.resolve(), tuple(warnings), counted)


def _spellings(sets: Collection[GoldSet]) -> dict[str, str]:
    """Return a mapping from a file's possible spellings to the gold sets' labels, for labels that are not languages.

    A file may use an underscore, such as ar_LATN for ar-Latn.
    """
    labels = {row.label.removeprefix(NOT) for gold in sets for row in gold.rows}
    spellings = {label: label for label in labels if label not in LANGUAGES}
    for label in list(spellings):
        language, _, rest = label.partition("-")
        if rest:
            spellings[f"{language}_{rest.upper().replace('-', '_')}"] = label
    return spellings


def subject_of(
    sets: Collection[GoldSet],
    source: str,
    *,
    corpus: str = "",
    map: Sequence[str] = (),
    column: Sequence[str] = (),
    file_format: str | None = None,
    others: Collection[str] = (),
) -> Subject:
    """Return a predictor whose labels are in a file or in the corpus.

    sets: the gold sets.
    source: path of a file, or name of a predictor.
    corpus: corpus name; "" for the corpus of the sets.
    map, column, file_format: options for reading a file.
    others: ids of items whose labels are only counted; items in the sets are left out.

    Raise EvaluationError if `source` is not a file and the corpus is unknown or is not the corpus of the sets.
    """
    if is_file(source):
        return subject_of_file(Path(source), read_map(map), named_columns(column, FIELDS), file_format, sets, others)
    sets_corpus = next((gold.corpus for gold in sets if gold.corpus), "")
    if corpus and sets_corpus and corpus != sets_corpus:
        raise EvaluationError(f"The gold sets are from corpus {sets_corpus}, not {corpus}. Remove or correct --corpus.")
    check_corpus(source, corpus or sets_corpus)
    outside = frozenset(others).difference(row.id for gold in sets for row in gold.rows)
    return subject_of_corpus(sets_corpus or corpus, source, outside)


def check_corpus(source: str, corpus: str) -> None:
    """Raise EvaluationError if there is no corpus to look up the predictor in."""
    if not corpus:
        raise EvaluationError(
            f"The file {source} does not exist, and the gold set does not name a corpus in which to look it up as a "
            "predictor. Specify the corpus with --corpus, or the path of an existing file."
        )


def is_file(source: str) -> bool:
    """Return whether this is a file, not a predictor's name: either the file exists, or it looks like a path."""
    path = Path(source)
    return path.exists() or len(path.parts) > 1 or format_of(path) is not None


def list_ids(ids: list[str]) -> str:
    return f": {', '.join(ids)}" if len(ids) <= NAMED else f", the first: {', '.join(ids[:NAMED])}"


# --- sets


def read_sets(folders: Collection[Path], *, allow_erased: bool, unfinished: bool) -> list[GoldSet]:
    """Read the gold sets in these folders and check that they can be combined.

    Raise GoldSetError if a folder is not a gold set, and EvaluationError if the sets cannot be used.
    """
    sets: list[GoldSet] = []
    for folder in folders:
        gold = read_gold_set(folder, allow_erased=allow_erased)
        for other in sets:
            _check_pair(other, gold)
        if not (gold.finished or unfinished):
            raise EvaluationError(
                f"The gold set {gold.name} in {folder} is unfinished: some posts have no label yet, and disputed "
                "posts are harder than the others. Export it again when it is finished, or use --unfinished to "
                "measure anyway."
            )
        if not (gold.rows or gold.erased):
            raise EvaluationError(
                f"The gold set {gold.name} in {folder} has no labelled posts, so nothing can be measured. Remove it, "
                "or export it again after people have labelled some."
            )
        sets.append(gold)
    for gold in sets:
        if gold.parent and not any(other.population == STREAM and other.name == gold.parent for other in sets):
            raise EvaluationError(
                f"{gold.folder} contains only the posts of the uniform set {gold.parent} on which a predictor "
                "disagrees with the detectors, so it cannot be measured without that set. Add the uniform set with "
                "--gold."
            )
    return sets


def _check_pair(other: GoldSet, gold: GoldSet) -> None:
    if other.folder.resolve() == gold.folder.resolve() or (other.digest, other.design) == (gold.digest, gold.design):
        raise EvaluationError(f"{other.folder} and {gold.folder} are the same gold set. Specify it only once.")
    if other.population == STREAM and gold.population == STREAM:
        raise EvaluationError(
            f"{other.folder} and {gold.folder} are both uniform sets, but an evaluation can use only one. To add "
            "posts to one draw, extend the task with `assay extend_task`."
        )
    if other.corpus and gold.corpus and other.corpus != gold.corpus:
        raise EvaluationError(
            f"{other.folder} is from corpus {other.corpus}, but {gold.folder} is from corpus {gold.corpus}. Evaluate "
            "each corpus separately."
        )


# --- classes


def accepted_classes(codes: Iterable[str], folded: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return, for each coarse code, the classes that are correct for posts with this code.

    For example, if annotators were asked "Is this Chinese?" about a post, both zh-CN and zh-TW are correct for it.

    codes: labels of the gold sets, and languages that annotators were asked about.
    folded: mapping from label to class.

    Raise EvaluationError if a predictor's class mixes labels that a code includes with other labels.
    """
    by_code = {}
    for code in sorted(set(codes)):
        finer = set(finer_labels(code))
        if not finer:
            continue
        for label, holder in sorted(folded.items()):
            if label not in finer and holder != code and any(folded.get(other) == holder for other in finer):
                raise EvaluationError(
                    f"The predictor's class {holder} contains {label} in addition to labels of {code}, which people "
                    f"were asked about. Remove {label} from the class {holder}, or remove the gold set that asks "
                    f"about {code}."
                )
        by_code[code] = frozenset({folded.get(label, label) for label in finer} - {code})
    return by_code
