"""Our accuracy and precision compared with prediction-powered inference, on the same draws of generated posts.

Only this module needs ppi-python, so it is not part of `python -m benchmarks`. In a separate environment, in the folder
of the source:

    pip install . ppi-python
    DJANGO_SETTINGS_MODULE=deploy.settings python -m benchmarks.ppi_beside [DRAWS [SEED [NAMES...]]]

The draws are those of `measuring` with the same seed. The prediction is that the label on which detectors agree is the
truth (Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023, Science 382). Its weight is 1 or tuned (PPI++:
Angelopoulos, Duchi and Zrnic 2023, arXiv 2311.01453). The posts that were read are weighted by the inverse of their
probability, or each agreed label is a stratum (Fisch et al. 2024, arXiv 2406.04291). Disputed posts are a stratum that
was read completely.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple
from zlib import crc32

import numpy as np
from ppi_py import ppi_mean_ci

from annotate.evaluation.uniform import Uniform
from benchmarks.made_posts import draw, populate
from benchmarks.measuring import WORLDS
from benchmarks.measuring_work import estimates, of_second, truths
from benchmarks.tables import share, show

NAMES = (
    "agreement wrong in .1%",
    "agreement wrong in 1%",
    "agreement wrong in 5%",
    "two rare labels hide in the largest",
    "60 labels",
    "2%, unevenly",
    "5,000 posts of 20 labels, .5%",
    "nearly a voter",
)
# Name -> whether it is stratified, and the weight of the prediction (None: tuned).
THEIRS = {
    "PPI": (False, 1),
    "PPI++": (False, None),
    "stratified PPI": (True, 1),
    "stratified PPI++": (True, None),
}
OURS = "ours"
Z = 1.959964  # of 95%


class Posts(NamedTuple):
    """The posts of a draw, with numbers for labels. stratum: the agreed label, or -1 if detectors do not agree; label:
    the true label of posts that were read, and the agreed label of others; weight: posts that a read one stands for."""

    stratum: np.ndarray
    label: np.ndarray
    predicted: np.ndarray
    is_read: np.ndarray
    weight: np.ndarray


class Row(NamedTuple):
    """An interval of one method, clipped to 0 and 1. both: whether ours has one for the same figure."""

    figure: str
    method: str
    both: bool
    covers: bool
    width: float
    off: float


def compare(name: str, draws: int, seed: str) -> list[Row]:
    chance = np.random.default_rng(crc32(f"{seed} {name}".encode()))
    population = populate(WORLDS[name], chance)
    true = {"voted": truths(population, population.first), "other": truths(population, population.second)}
    rows = []
    for _ in range(draws):
        both = draw(population, WORLDS[name], chance).both
        for predictor, uniform in (("voted", both), ("other", of_second(both))):
            posts = posts_of(uniform)
            for (measure, label), measured in estimates(uniform).items():
                if measure == "recall" or measured.estimate.value is None or measured.posts < WORLDS[name].counted:
                    continue
                ours, figure, value = measured.estimate, f"{measure}, {predictor}", true[predictor][measure, label]
                has_interval = ours.has_interval
                if has_interval:
                    rows.append(_row(figure, OURS, has_interval, measured.estimate.value, ours.low, ours.high, value))
                for method, interval in theirs(posts, label):
                    rows.append(_row(figure, method, has_interval, *interval, value))
    return rows


def _row(figure: str, method: str, both: bool, value: float, low: float, high: float, true: float) -> Row:
    low, high = max(0.0, low), min(1.0, high)
    return Row(figure, method, both, low - 1e-9 <= true <= high + 1e-9, high - low, value - true)


def posts_of(uniform: Uniform) -> Posts:
    columns = [
        (int(cell.stratum or -1), int(cell.truth), int(cell.predicted), cell.annotated, uniform.weights[cell])
        for cell in uniform.posts.values()
    ]
    return Posts(*(np.array(column) for column in zip(*columns, strict=True)))


def theirs(posts: Posts, label: str) -> Iterator[tuple[str, tuple[float, float, float]]]:
    """Yield each method with value, low and high of the precision of the label, or of accuracy if the label is empty.

    Precision is a share of a known number of posts. Each of these is measured from the predicted share, as in the delta
    method for ratios (Cochran 1977, Sampling Techniques, section 2.11); other posts count zero.
    """
    is_in = posts.predicted == int(label) if label else np.full(len(posts.predicted), True)
    right = posts.predicted == posts.label
    agreed = np.where(posts.stratum < 0, posts.label, posts.stratum)
    start, inside = (posts.predicted == agreed)[is_in].mean(), is_in.mean()
    truth, guess = (np.where(is_in, hits - start, 0.0) / inside for hits in (right, posts.predicted == agreed))
    by_label = [posts.stratum == stratum for stratum in np.unique(posts.stratum)]
    for method, (stratified, tuning) in THEIRS.items():
        parts = by_label if stratified else [posts.stratum < 0, posts.stratum >= 0]
        value, error = added_up(posts, truth, guess, parts, tuning)
        yield method, (start + value, start + value - Z * error, start + value + Z * error)


def added_up(
    posts: Posts, truth: np.ndarray, guess: np.ndarray, parts: Sequence[np.ndarray], tuning: float | None
) -> tuple[float, float]:
    """Return the mean of all posts and its standard error, from the parts' means weighted by their shares. The shares
    are those of a draw, so the variance between the parts counts as well."""
    values, variances, shares = [], [], []
    for part in parts:
        if not np.any(truth[part]) and not np.any(guess[part]):
            value, error = 0.0, 0.0
        else:
            value, error = _mean(truth[part], guess[part], posts.is_read[part], posts.weight[part], tuning)
        values.append(value)
        variances.append(error**2)
        shares.append(part.mean())
    mean = np.dot(shares, values)
    between = np.dot(shares, (np.array(values) - mean) ** 2) / len(truth)
    return float(mean), float(np.sqrt(np.dot(np.square(shares), variances) + between))


def _mean(
    truth: np.ndarray, guess: np.ndarray, is_read: np.ndarray, weight: np.ndarray, tuning: float | None
) -> tuple[float, float]:
    if is_read.all():
        return truth.mean(), truth.std() / np.sqrt(len(truth))
    if not np.ptp(guess):
        tuning = 1  # nothing to tune by: ppi_py would divide by zero
    low, high = ppi_mean_ci(truth[is_read], guess[is_read], guess, alpha=0.05, lam=tuning, w=weight[is_read])
    return (low.item() + high.item()) / 2, (high.item() - low.item()) / 2 / Z


def report(name: str, rows: list[Row]) -> None:
    table = []
    for figure in dict.fromkeys(row.figure for row in rows):
        for method in (OURS, *THEIRS):
            group = [row for row in rows if (row.figure, row.method) == (figure, method)]
            shared, alone = [row for row in group if row.both], [row for row in group if not row.both]
            table.append(
                [
                    f"{figure}: {method}",
                    len(shared),
                    share(sum(row.covers for row in shared), len(shared)),
                    f"{100 * sum(row.width for row in shared) / len(shared):.2f}" if shared else "-",
                    f"{100 * sum(row.off for row in shared) / len(shared):+.2f}" if shared else "-",
                    len(alone),
                    share(sum(row.covers for row in alone), len(alone)),
                ]
            )
    heads = ["figure", "estimates", "cover", "width in points", "off by", "where ours has no interval", "cover"]
    show(name, heads, table)


def main(draws: str = "300", seed: str = "2015", *names: str) -> None:
    names = names or NAMES
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        tables = pool.map(compare, names, [int(draws)] * len(names), [seed] * len(names))
        for name, rows in zip(names, tables, strict=True):
            report(name, rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
