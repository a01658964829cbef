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


def spelled(others: Iterable[str]) -> str:
    return ", ".join(other or "a predictor that the set does not name" for other in sorted(others))


def warnings(subject: Subject, joined: Joined) -> list[str]:
    said = []
    if foreign := joined.strangers:
        languages = sorted(foreign)
        more = f" and {len(languages) - SHOWN} more languages" if len(languages) > SHOWN else ""
        said.append(
            f"The precision-oriented posts of {', '.join(languages[:SHOWN])}{more} were drawn by "
            f"{spelled(set().union(*foreign.values()))}, not by {subject.spelled}. They hold none of the "
            f"posts that only {subject.spelled} labels so: its precision there is unknown, and its figures are rough."
        )
        if not (joined.tells_read or subject.corpus):
            said.append(
                f"The posts that {subject.spelled} labels so and that no person was shown cannot be counted here: "
                "give a uniform set that was exported and tells which of its posts people have read, or register the "
                "predictions with import_predictions."
            )
    if joined.undecided:
        classes = (
            f"{coarse}, of which {', '.join(sorted(finer))} was asked"
            for coarse, finer in sorted(joined.undecided.items())
        )
        said.append(
            f"{subject.spelled} takes labels together that people were asked about one by one, and not-X does not say "
            f"whether a post has another of these labels. Those posts are left out of precision: {'; '.join(classes)}."
        )
    return said


def unseen(subject: Subject, joined: Joined, left: Left) -> tuple[str, list[Row]]:
    """Count posts to which the predictor gives a label whose precision-oriented set a different predictor drew.

    Returns where posts were counted, which is the uniform set or otherwise the corpus, and rows for each such label.
    The rows state how many of the posts no person was shown, and how many the different predictor labels differently. A
    post was shown if it is in one of the sets, unless it is there only because the detectors agreed.

    Returns "" and no rows if there is no such label, or if neither a uniform set nor a corpus is available.
    """
    foreign = {language: sorted(others) for language, others in sorted(joined.strangers.items())}
    if not foreign or not (joined.tells_read or subject.corpus):
        return "", []
    if joined.tells_read:
        over, counted = "uniform set", _over_uniform(joined, left, foreign)
    else:
        over, counted = "corpus", _over_corpus(subject, joined, foreign)
    rows: list[Row] = []
    for label, (said, never, outside) in counted.items():
        figures = {"never_shown": never / said if said else None, "posts_never_shown": never, "outside": outside}
        rows += [
            row(measure, {"label": label}, None, said, "" if said else "no post") | {"value": value}
            for measure, value in figures.items()
        ]
    return over, rows


# For each language, the number of posts to which the predictor gives this label, how many of them no person was shown,
# and how many the predictor that drew the set labels differently (None if unknown).
Counted = dict[str, tuple[int, int, int | None]]


def _over_uniform(joined: Joined, left: Left, foreign: Mapping[str, list[str]]) -> Counted:
    assert joined.labelled is not None
    posts = joined.labelled.posts
    shown = {row.id for gold, rows in left if gold.population != STREAM for row in rows}
    by_label: dict[str, list[str]] = {language: [] for language in foreign}
    for key, cell in posts.items():
        for language, keys in by_label.items():
            if joined.within(cell.said, language) == language:
                keys.append(key)
    corpus = next((gold.corpus for gold, _ in left if gold.corpus), "")
    every = [key for language in foreign for key in by_label[language]]

    def labels_by(other: str) -> Mapping[str, str] | None:
        return _known(lambda: of_corpus(corpus, other).labels(every)) if corpus and other else None

    labels = {other: labels_by(other) for other in {other for others in foreign.values() for other in others}}
    found: Counted = {}
    for language, keys in by_label.items():
        never = sum(key not in shown and not posts[key].read for key in keys)
        theirs = [labels[other] for other in foreign[language]]
        outside = None
        if all(each is not None for each in theirs):
            said = ([joined.fold.get(each[key], each[key]) for each in theirs if each] for key in keys)
            outside = sum(all(joined.within(label, language) != language for label in labels) for labels in said)
        found[language] = len(keys), never, outside
    return found


def _known(read: Callable[[], T]) -> T | None:
    """Return the result of a function that reads the corpus, or None if the corpus no longer has the data."""
    try:
        return read()
    except CorpusError:
        return None


def _over_corpus(subject: Subject, joined: Joined, foreign: Mapping[str, list[str]]) -> Counted:
    assert subject.predictor is not None
    by, said = subject.predictor, Counter[str]()
    for label, posts in triggers(subject.corpus, by).items():
        said[joined.fold.get(label, label)] += posts
    shown = Counter(joined.said.values())
    outside: dict[str, dict[str, int] | None] = {}
    for others in foreign.values():
        if len(others) == 1 and others[0] not in outside:
            apart = lambda other=others[0]: labels_where(subject.corpus, by, find_predictor(subject.corpus, other))  # noqa: E731
            outside[others[0]] = _known(apart) if others[0] else None
    # Labels are compared in the corpus before they are merged, so the number is unknown for a class of several labels.
    classes = {*joined.fold.values(), *joined.asked}
    found: Counted = {}
    for language, others in foreign.items():
        differing = outside[others[0]] if len(others) == 1 and language not in classes else None
        taken = {language, *joined.asked.get(language, ())}
        posts, read = (sum(counter[label] for label in taken) for counter in (said, shown))
        found[language] = posts, max(0, posts - read), None if differing is None else differing.get(language, 0)
    return found
