"""Simple text classifiers and text retrieval, used as baselines.

Scores are reproducible for the same texts in the same order: solvers have fixed seeds and run in a single thread, and
random labels are drawn by hashes of ids.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from annotate.core.aggregation.answer_table import Floats
from annotate.core.draws.hash_order import by_seed, uniform_number
from annotate.core.measures.generated_texts import MissingExtra
from corpora.core.graphemes import UNSPACED

# Each character of a script without spaces counts as a word.
WORDS = {"token_pattern": rf"[{UNSPACED}]|[^\W{UNSPACED}]+", "ngram_range": (1, 2)}
CHARACTERS = {"analyzer": "char", "ngram_range": (1, 4)}
C = 10.0  # inverse strength of the regularization
MOST_LABELS = 100  # maximum number of ranked labels per document
MOST_TEXTS = 3  # maximum number of retrieved texts per document
BATCH_SIZE = 500  # number of texts compared with the training texts at once

Scores = Mapping[str, float]


class Document(NamedTuple):
    """A training or test document.

    labels: its labels; empty if unknown.
    apart: field values that documents of different splits must not share.
    """

    id: str
    language: str
    text: str
    labels: tuple[str, ...]
    split: str = ""
    apart: tuple[str, ...] = ()


class Problem(NamedTuple):
    """Training documents and the documents to predict.

    multilabel: whether a document can have several labels.
    by_character: whether to use character n-grams instead of words, which suits labels that are languages.
    seed: seed for labels drawn at random.
    """

    train: Sequence[Document]
    test: Sequence[Document]
    multilabel: bool = False
    by_character: bool = False
    seed: str = ""


def check_installed() -> None:
    """Raise MissingExtra if scikit-learn is not installed."""
    if find_spec("sklearn") is None:
        raise MissingExtra("Measuring baselines", "scikit-learn", "baselines")


def best(scores: Scores) -> str:
    """Return the label with the highest score. Ties go to the first label in alphabetical order."""
    return min(scores, key=lambda label: (-scores[label], label))


def majority(problem: Problem) -> list[Scores]:
    """Give every document the same scores: each label's share of the training documents."""
    counts = Counter(label for document in problem.train for label in document.labels)
    shares = {label: number / len(problem.train) for label, number in counts.items()}
    return [shares] * len(problem.test)


def frequency(problem: Problem) -> list[Scores]:
    """Draw each document's label at random, by the labels' frequencies in the training documents."""
    labels = sorted(document.labels[0] for document in problem.train)
    lots = by_seed(problem.seed)
    return [
        {labels[int(uniform_number(lots, "frequency", document.id) * len(labels))]: 1.0} for document in problem.test
    ]


def _vectorize(problem: Problem) -> tuple[Any, Any]:
    """Return the TF-IDF vectors of the training and of the test documents."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    options: Mapping[str, Any] = CHARACTERS if problem.by_character else WORDS
    vectorizer = TfidfVectorizer(sublinear_tf=True, **options)
    train = vectorizer.fit_transform(document.text for document in problem.train)
    return train, vectorizer.transform(document.text for document in problem.test)


def tfidf(problem: Problem) -> list[Scores]:
    """Predict labels by logistic regression on TF-IDF weights; multi-label problems get one classifier per label.

    Falls back to `majority` if the training documents have no words or only one label.
    """
    from threadpoolctl import threadpool_limits

    labels = sorted({label for document in problem.train for label in document.labels})
    if len(labels) < 2 or not problem.test:
        return majority(problem)
    with threadpool_limits(1):
        try:
            train, test = _vectorize(problem)
        except ValueError:  # scikit-learn rejects texts without words
            return majority(problem)
        table = (_one_vs_rest if problem.multilabel else _multinomial)(problem, labels, train, test)
    most = MOST_LABELS if problem.multilabel else len(labels)
    order = np.argsort(-table, axis=1, kind="stable")[:, :most]
    return [{labels[index]: float(row[index]) for index in indices} for row, indices in zip(table, order, strict=True)]


def _multinomial(problem: Problem, labels: Sequence[str], train: Any, test: Any) -> Floats:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=C, solver="lbfgs", max_iter=1000, random_state=0)
    model.fit(train, [document.labels[0] for document in problem.train])
    return np.asarray(model.predict_proba(test), dtype=np.float64)  # columns in `labels` order: both are sorted


def _one_vs_rest(problem: Problem, labels: Sequence[str], train: Any, test: Any) -> Floats:
    from sklearn.linear_model import LogisticRegression

    table = np.ones((len(problem.test), len(labels)))
    for index, label in enumerate(labels):
        has_label = np.array([label in document.labels for document in problem.train])
        if not has_label.all():
            model = LogisticRegression(C=C, solver="liblinear", max_iter=1000, random_state=0)
            table[:, index] = model.fit(train, has_label).predict_proba(test)[:, 1]
    return table


def nearest(problem: Problem) -> list[Scores]:
    """Return the labels of the nearest training texts by cosine similarity of TF-IDF weights, best first.

    Ties go to the earlier training text.
    """
    try:
        train, test = _vectorize(problem)
    except ValueError:
        return majority(problem)
    predictions: list[Scores] = []
    for start in range(0, len(problem.test), BATCH_SIZE):
        cosines = (test[start : start + BATCH_SIZE] @ train.T).toarray()
        for row in cosines:
            scores: dict[str, float] = {}
            for index in np.argsort(-row, kind="stable"):
                scores.setdefault(problem.train[index].labels[0], float(row[index]))
                if len(scores) == MOST_TEXTS:
                    break
            predictions.append(scores)
    return predictions


Model = Callable[[Problem], list[Scores]]
# The title and model of each baseline, by name.
MAJORITY: tuple[str, Model] = ("most frequent label", majority)
LABEL_MODELS: Mapping[str, tuple[str, Model]] = {
    "majority": MAJORITY,
    "frequency": ("labels drawn by their frequency", frequency),
    "tfidf": ("TF-IDF, logistic regression", tfidf),
}
MULTILABEL_MODELS: Mapping[str, tuple[str, Model]] = {
    "majority": ("most frequent labels", majority),
    "tfidf": ("TF-IDF, one logistic regression per label", tfidf),
}
TEXT_MODELS: Mapping[str, tuple[str, Model]] = {
    "majority": ("most frequent texts", majority),
    "nearest": ("text of the nearest training item by TF-IDF", nearest),
}
