"""Posts that a predictor labels X but that nobody annotated, because another predictor drew the precision-oriented set.

For example, if predictor v1 drew the set of German posts, the set contains only those of v2's German posts that v1 also
labels German (see the Venn diagram in the article, section "Precision"). The rest of v2's German posts can be counted,
but their true labels are unknown.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from annotate.core.measures.figure_rows import Row, row
from annotate.evaluation.joined_sets import Joined, KeptRows
from annotate.evaluation.subjects import Subject, subject_of_corpus
from annotate.kinds.designs import STREAM
from corpora.core import CorpusError
from corpora.predictions.predictor_labels import count_differing, find_predictor, triggers

T = TypeVar("T")
SHOWN = 10  # a warning lists at most this many languages


def list_predictors(predictors: Iterable[str]) -> str:
    return ", ".join(predictor or "a predictor that the set does not name" for predictor in sorted(predictors))


def warnings(subject: Subject, joined: Joined) -> list[str]:
    sentences = []
    if foreign := joined.foreign:
        languages = sorted(foreign)
        rest = f" and {len(languages) - SHOWN} more languages" if len(languages) > SHOWN else ""
        predictors = list_predictors(set().union(*foreign.values()))
        sentences.append(
            f"The precision-oriented posts for {', '.join(languages[:SHOWN])}{rest} were drawn by {predictors}, not by "
            f"{subject.full_name}. They include no posts that only {subject.full_name} labels with these languages, so "
            "its precision on those posts is unknown and its figures are approximate."
        )
        if not (joined.marks_annotated or subject.corpus):
            sentences.append(
                f"Posts that {subject.full_name} labels with these languages but that nobody has read cannot be "
                "counted. Add an exported uniform set that marks the posts people read, or import the predictions "
                "with import_predictions."
            )
    if joined.undecided:
        classes = (
            f"{coarse} (asked about {', '.join(sorted(finer))})" for coarse, finer in sorted(joined.undecided.items())
        )
        sentences.append(
            f"{subject.full_name} merges labels that people were asked about separately, and the answer not-X does not "
            "show whether a post has one of the other merged labels. Those posts are left out of precision: "
            f"{'; '.join(classes)}."
        )
    return sentences


def count_unseen(subject: Subject, joined: Joined, kept: KeptRows) -> tuple[str, list[Row]]:
    """Count the predictor's posts for each label whose precision-oriented set was drawn by another predictor.

    Returns where posts were counted ("uniform set", or else "corpus") and rows for each such label: the number of posts
    never shown to an annotator, and the number that the other predictor labels differently. A post was shown if it is
    in one of the sets, unless it is there only because the detectors agreed.

    Returns "" and no rows if there is no such label, or if neither a uniform set nor a corpus is available.
    """
    foreign = {language: sorted(predictors) for language, predictors in sorted(joined.foreign.items())}
    if not foreign or not (joined.marks_annotated or subject.corpus):
        return "", []
    if joined.marks_annotated:
        over, counted = "uniform set", _over_uniform(joined, kept, foreign)
    else:
        over, counted = "corpus", _over_corpus(subject, joined, foreign)
    rows: list[Row] = []
    for label, (posts, never, outside) in counted.items():
        figures = {"never_shown": never / posts if posts else None, "posts_never_shown": never, "outside": outside}
        note = "" if posts else "no post"
        rows += [row(measure, {"label": label}, value, posts, note) for measure, value in figures.items()]
    return over, rows


# For each language, the number of posts that the predictor gives this label, how many of them were never shown, and how
# many the predictor that drew the set labels differently (None if unknown).
Counted = dict[str, tuple[int, int, int | None]]


def _over_uniform(joined: Joined, kept: KeptRows, foreign: Mapping[str, list[str]]) -> Counted:
    assert joined.labelled is not None
    posts = joined.labelled.posts
    shown_ids = {row.id for gold, rows in kept if gold.population != STREAM for row in rows}
    by_label = {
        language: [key for key, cell in posts.items() if joined.coarsen(cell.predicted, language) == language]
        for language in foreign
    }
    corpus = next((gold.corpus for gold, _ in kept if gold.corpus), "")
    all_keys = tuple(key for keys in by_label.values() for key in keys)

    def labels_by(predictor: str) -> Mapping[str, str] | None:
        return (
            _read_or_none(lambda: subject_of_corpus(corpus, predictor).labels(all_keys))
            if corpus and predictor
            else None
        )

    labels = {predictor: labels_by(predictor) for predictor in set().union(*foreign.values())}
    counts: Counted = {}
    for language, keys in by_label.items():
        never = sum(key not in shown_ids and not posts[key].annotated for key in keys)
        other_labels = [labels[predictor] for predictor in foreign[language]]
        outside = None
        if all(predictions is not None for predictions in other_labels):
            predicted = (
                [joined.fold.get(predictions[key], predictions[key]) for predictions in other_labels if predictions]
                for key in keys
            )
            outside = sum(all(joined.coarsen(label, language) != language for label in labels) for labels in predicted)
        counts[language] = len(keys), never, outside
    return counts


def _read_or_none(read: Callable[[], T]) -> T | None:
    """Return the result of a function that reads the corpus, or None if the corpus no longer has the data."""
    try:
        return read()
    except CorpusError:
        return None


def _over_corpus(subject: Subject, joined: Joined, foreign: Mapping[str, list[str]]) -> Counted:
    assert subject.predictor is not None
    ours, label_counts = subject.predictor, Counter[str]()
    for label, posts in triggers(subject.corpus, ours).items():
        label_counts[joined.fold.get(label, label)] += posts
    shown_counts = Counter(joined.predictions.values())
    outside: dict[str, dict[str, int] | None] = {}
    for predictors in foreign.values():
        if len(predictors) == 1 and predictors[0] not in outside:
            look = lambda name=predictors[0]: count_differing(  # noqa: E731
                subject.corpus, ours, find_predictor(subject.corpus, name)
            )
            outside[predictors[0]] = _read_or_none(look) if predictors[0] else None
    # Labels in the corpus are compared before merging, so the number is unknown for a class of several labels.
    classes = {*joined.fold.values(), *joined.accepted}
    counts: Counted = {}
    for language, predictors in foreign.items():
        differing = outside[predictors[0]] if len(predictors) == 1 and language not in classes else None
        merged_labels = {language, *joined.accepted.get(language, ())}
        posts, shown = (sum(counter[label] for label in merged_labels) for counter in (label_counts, shown_counts))
        counts[language] = posts, max(0, posts - shown), None if differing is None else differing.get(language, 0)
    return counts
