"""All figures of uniform sets from a real stream, over several seeds: whether the intervals cover the truth.

A stream of posts is resampled as for the whole run, imported and prelabelled. Then, for each seed, a uniform task with
the default options is drawn from it, with checks, second opinions and audits. Simulated readers and three adjudicators
do all of it through the operations that page and API call (no HTTP). The set is exported, and used to evaluate a
detector that voted and an imported predictor that did not. Every interval of the two reports and of the audit is
compared with the known truth about the whole stream. Everything is rolled back before the next seed. There is one
process per core, each with its own stream.

For each draw, the output shows the posts for which a reader named a language other than the queue's, how many of their
labels are wrong, and the further answers, skips and decisions after such posts were sent on for confirmation.
"""

from collections.abc import Iterable
from math import inf
from pathlib import Path
from typing import NamedTuple

from benchmarks.material import Post, mixed, resample
from benchmarks.resampled import on_frames
from benchmarks.tables import share, show
from benchmarks.whole_run import PIDGIN_SHARE

# Title, and the range of the number of posts read behind a figure.
SIZES = (("30 posts read or more", 30, inf), ("5 to 29 posts read", 5, 29), ("Fewer than 5 posts read", 0, 4))


class Figure(NamedTuple):
    """A figure. kind: predictor and measure; label: "" for all; read: number of posts read behind it; low, high: None
    if it has no interval; truth: that of the stream, or None if no post of the stream counts for it. Figures are
    fractions.
    """

    seed: str
    kind: str
    label: str
    read: int
    value: float
    low: float | None
    high: float | None
    truth: float | None

    @property
    def covers(self) -> bool:
        assert self.low is not None
        assert self.high is not None
        assert self.truth is not None
        return self.low - 1e-9 <= self.truth <= self.high + 1e-9


def add_options(parser) -> None:
    parser.add_argument(
        "--stream-seeds", type=int, default=3, help="draws, each with new errors of readers (default %(default)s)"
    )
    parser.add_argument("--stream-posts", type=int, default=30_000, help="posts in a stream (default %(default)s)")
    parser.add_argument("--stream-size", type=int, default=10_000, help="posts drawn for a task (default %(default)s)")
    parser.add_argument(
        "--stream-languages", type=int, default=0, help="languages by Zipf's law (default: by Twitter's shares)"
    )
    parser.add_argument(
        "--wrong-keys",
        default="",
        help="languages that readers name by mistake, such as 'en es de da id' (default: the others that they read)",
    )
    parser.add_argument(
        "--of", default="", help="languages of which every recall is shown, such as 'da de' (default: none)"
    )
    parser.add_argument(
        "--mixed",
        type=int,
        metavar="POSTS",
        help="mix in single words, short texts and tweets, with so many posts of each of 57 languages at least "
        "(default: sentences by Twitter's shares)",
    )
    parser.add_argument("--mixed-of", type=int, metavar="POSTS", help="the same, of the languages of --of")
    parser.add_argument(
        "--rules",
        choices=("confirmed", "single", "both"),
        default="confirmed",
        help="whether a second person confirms an answer in another language, as in Assay; or the single answer stands "
        "(default %(default)s)",
    )


def run(folder: Path, options) -> None:
    seeds = [f"{options.seed}-{number}" for number in range(options.stream_seeds)]
    rules = "confirmed single" if options.rules == "both" else options.rules
    arguments = (options.stream_size, options.slip, options.adjudicator_slip, options.wrong_keys, rules)
    frames = on_frames(lambda seed: _posts(folder, seed, options), seeds, "benchmarks.stream_work", *arguments)
    runs = [run for frame in frames for run in frame]
    print(
        f"{len(seeds)} draws of {options.stream_size:,} from {len(frames)} streams of {options.stream_posts:,} posts, "
        f"{PIDGIN_SHARE:.0%} Nigerian Pidgin;\n"
        f"readers slip on {options.slip:.1%} of answers, adjudicators on {options.adjudicator_slip:.1%}.\n"
    )
    for rule in rules.split():
        report_rule(rule, [run for run in runs if run["rule"] == rule], options.of.split())


def _posts(folder: Path, seed: str, options) -> list[Post]:
    if options.mixed is None:
        return resample(folder, options.stream_posts, PIDGIN_SHARE, seed, options.stream_languages)[0]
    least = dict.fromkeys(options.of.split(), options.mixed_of or options.mixed)
    return mixed(folder, options.stream_posts, seed, least, options.mixed)


def report_rule(rule: str, runs: list[dict], shown: list[str]) -> None:
    """shown: the languages of which every recall is shown."""
    counted = ("languages", "read", "judgments", "seconded", "elsewhere", "elsewhere_wrong", "further")
    head = ["", "languages", "posts read", "judgments", "second opinions", "named another", "wrong", "further", "share"]
    rows = [[run["seed"], *(run[name] for name in counted), share(run["further"], run["judgments"])] for run in runs]
    show(f"Answers in another language: {rule}. Work", head, rows)
    figures = [Figure(*row) for run in runs for row in run["figures"]]
    report(figures)
    recalls = [figure for figure in figures if figure.kind.endswith("recall") and figure.label in shown]
    if recalls:
        _show_each("Recall (%)", recalls)


def report(figures: list[Figure]) -> None:
    for title, least, most in SIZES:
        part = [figure for figure in figures if least <= figure.read <= most]
        kinds = dict.fromkeys(figure.kind for figure in part)
        rows = [_row(kind, [figure for figure in part if figure.kind == kind]) for kind in kinds]
        head = ["", "figures", "no interval", "no such post", "held", "cover", "width in points", "off by"]
        show(title, head, [*rows, _row("all", part)])
    _show_each("Intervals that do not cover the truth (%)", [figure for figure in held(figures) if not figure.covers])


def _show_each(title: str, figures: Iterable[Figure]) -> None:
    show(
        title,
        ["", "seed", "label", "read", "value", "low", "high", "truth"],
        [[figure.kind, figure.seed, figure.label, figure.read, *_percents(figure)] for figure in figures],
    )


def held(figures: Iterable[Figure]) -> list[Figure]:
    """Return the figures that have an interval and a truth to compare it with."""
    return [figure for figure in figures if figure.low is not None and figure.truth is not None]


def _row(title: str, figures: list[Figure]) -> list[object]:
    intervals = held(figures)
    pairs = [(figure.value, figure.truth) for figure in figures if figure.truth is not None]
    return [
        title,
        len(figures),
        sum(figure.low is None for figure in figures),
        sum(figure.truth is None for figure in figures),
        len(intervals),
        share(sum(figure.covers for figure in intervals), len(intervals)),
        _mean(100 * ((figure.high or 0.0) - (figure.low or 0.0)) for figure in intervals),
        _mean(100 * (value - truth) for value, truth in pairs),
    ]


def _percents(figure: Figure) -> list[str]:
    parts = (figure.value, figure.low, figure.high, figure.truth)
    return ["-" if part is None else f"{100 * part:.2f}" for part in parts]


def _mean(values: Iterable[float]) -> str:
    listed = list(values)
    return f"{sum(listed) / len(listed):.2f}" if listed else "-"
