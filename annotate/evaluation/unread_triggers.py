"""Posts that a predictor labels X but that nobody read, because a different predictor drew the precision-oriented set.

For example, if predictor v1 drew the set of German posts, the set contains only those of v2's German posts that v1 also
labels German (see the Venn diagram in the article, section "Precision"). The rest of v2's German posts can be counted,
but people's labels of them are unknown.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from annotate.core.measures.figure_rows import Row, row
from annotate.evaluation.joined_sets import Joined
from annotate.evaluation.subjects import Subject, of_corpus
from annotate.goldsets.gold_set import GoldRow, GoldSet
from annotate.kinds.designs import STREAM
from corpora.core import CorpusError
from corpora.predictions.predictor_labels import find_predictor, labels_where, triggers

Left = list[tuple[GoldSet, list[GoldRow]]]
T = TypeVar("T")
SHOWN = 10  # a warning lists at most this many languages


def spelled(predictors: Iterable[str]) -> str:
    return ", ".join(predictor or "a predictor that the set does not name" for predictor in sorted(predictors))


def warnings(subject: Subject, joined: Joined) -> list[str]:
    sentences = []
    if foreign := joined.strangers:
        languages = sorted(foreign)
        rest = f" and {len(languages) - SHOWN} more languages" if len(languages) > SHOWN else ""
        sentences.append(
            f"The precision-oriented posts for {', '.join(languages[:SHOWN])}{rest} were drawn by "
            f"{spelled(set().union(*foreign.values()))}, not by {subject.spelled}. They include no posts that only "
            f"{subject.spelled} labels with these languages, so its precision on those posts is unknown and its "
            "figures are approximate."
        )
        if not (joined.tells_read or subject.corpus):
            sentences.append(
                f"Posts that {subject.spelled} labels with these languages but that nobody has read cannot be "
                "counted. Add an exported uniform set that marks the posts people read, or import the predictions "
                "with import_predictions."
            )
    if joined.undecided:
        classes = (
            f"{coarse} (asked about {', '.join(sorted(finer))})" for coarse, finer in sorted(joined.undecided.items())
        )
        sentences.append(
            f"{subject.spelled} merges labels that people were asked about separately, and the answer not-X does not "
            "show whether a post has one of the other merged labels. Those posts are left out of precision: "
            f"{'; '.join(classes)}."
        )
    return sentences


def unseen(subject: Subject, joined: Joined, left: Left) -> tuple[str, list[Row]]:
    """Count posts to which the predictor gives a label whose precision-oriented set a different predictor drew.

    Returns where posts were counted, which is the uniform set or otherwise the corpus, and rows for each such label.
    The rows state how many of the posts were shown to nobody, and how many the other predictor labels differently. A
    post was shown if it is in one of the sets, unless it is there only because the detectors agreed.

    Returns "" and no rows if there is no such label, or if neither a uniform set nor a corpus is available.
    """
    foreign = {language: sorted(predictors) for language, predictors in sorted(joined.strangers.items())}
    if not foreign or not (joined.tells_read or subject.corpus):
        return "", []
    if joined.tells_read:
        over, counted = "uniform set", _over_uniform(joined, left, foreign)
    else:
        over, counted = "corpus", _over_corpus(subject, joined, foreign)
    rows: list[Row] = []
    for label, (posts, never, outside) in counted.items():
        figures = {"never_shown": never / posts if posts else None, "posts_never_shown": never, "outside": outside}
        note = "" if posts else "no post"
        rows += [row(measure, {"label": label}, value, posts, note) for measure, value in figures.items()]
    return over, rows


# For each language, the number of posts to which the predictor gives this label, how many of them were shown to nobody,
# and how many the predictor that drew the set labels differently (None if unknown).
Counted = dict[str, tuple[int, int, int | None]]


def _over_uniform(joined: Joined, left: Left, foreign: Mapping[str, list[str]]) -> Counted:
    assert joined.labelled is not None
    posts = joined.labelled.posts
    shown_ids = {row.id for gold, rows in left if gold.population != STREAM for row in rows}
    by_label = {
        language: [key for key, cell in posts.items() if joined.within(cell.said, language) == language]
        for language in foreign
    }
    corpus = next((gold.corpus for gold, _ in left if gold.corpus), "")
    all_keys = tuple(key for keys in by_label.values() for key in keys)

    def labels_by(predictor: str) -> Mapping[str, str] | None:
        return _known(lambda: of_corpus(corpus, predictor).labels(all_keys)) if corpus and predictor else None

    labels = {predictor: labels_by(predictor) for predictor in set().union(*foreign.values())}
    counts: Counted = {}
    for language, keys in by_label.items():
        never = sum(key not in shown_ids and not posts[key].read for key in keys)
        other_labels = [labels[predictor] for predictor in foreign[language]]
        outside = None
        if all(predictions is not None for predictions in other_labels):
            predicted = (
                [joined.fold.get(predictions[key], predictions[key]) for predictions in other_labels if predictions]
                for key in keys
            )
            outside = sum(all(joined.within(label, language) != language for label in labels) for labels in predicted)
        counts[language] = len(keys), never, outside
    return counts


def _known(read: Callable[[], T]) -> T | None:
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
    shown_counts = Counter(joined.said.values())
    outside: dict[str, dict[str, int] | None] = {}
    for predictors in foreign.values():
        if len(predictors) == 1 and predictors[0] not in outside:
            look = lambda name=predictors[0]: labels_where(subject.corpus, ours, find_predictor(subject.corpus, name))  # noqa: E731
            outside[predictors[0]] = _known(look) if predictors[0] else None
    # Labels are compared in the corpus before they are merged, so the number is unknown for a class of several labels.
    classes = {*joined.fold.values(), *joined.asked}
    counts: Counted = {}
    for language, predictors in foreign.items():
        differing = outside[predictors[0]] if len(predictors) == 1 and language not in classes else None
        merged_labels = {language, *joined.asked.get(language, ())}
        posts, read = (sum(counter[label] for label in merged_labels) for counter in (label_counts, shown_counts))
        counts[language] = posts, max(0, posts - read), None if differing is None else differing.get(language, 0)
    return counts
