"""export_pairs: the pairs of a corpus that are kept, their splits and their response set, into a folder."""

from pathlib import Path

from annotate.actions.action import CORPUS, Action, ActionError, Outcome
from annotate.core.option import Option, sizes, whole_number
from annotate.goldsets.formats.mrs import Responses, Struck, export_pairs, read_struck
from annotate.goldsets.set_folder import ExportError
from annotate.reports.tables import many
from corpora.threads.pair_sets import SHARES, SPLITS, Plan

RESPONSE_SET, THE_SPLITS = "The response set", "The splits"
OPTIONS = (
    CORPUS,
    Option(
        "out", Path, required=True, shown="FOLDER", help="the folder to write; it replaces an earlier export of pairs"
    ),
    Option("seed", required=True, help="the seed of the splits and of the order within them"),
    Option(
        "least_pairs",
        whole_number,
        1,
        least=1,
        shown="NUMBER",
        help="leave out languages with fewer pairs",
    ),
    Option(
        "splits",
        sizes,
        default=(),
        shown="SHARES",
        help="the shares of train, valid and test in every language, as whole numbers; without it "
        f"{' '.join(map(str, SHARES))}",
        group=THE_SPLITS,
    ),
    Option(
        "apart",
        default="message",
        choices=("message", "thread"),
        help="keep equal messages, or whole threads, in one split",
        group=THE_SPLITS,
    ),
    Option(
        "least",
        whole_number,
        20,
        least=1,
        shown="NUMBER",
        help="the number of pairs from which on a reply is in the response set",
        group=RESPONSE_SET,
    ),
    Option("of", default="all", choices=("all", "train"), help="the pairs that are counted for it", group=RESPONSE_SET),
    Option(
        "most",
        whole_number,
        50_000,
        least=1,
        shown="NUMBER",
        help="the maximum number of replies per language, most frequent first",
        group=RESPONSE_SET,
    ),
    Option(
        "strike",
        Path,
        shown="FILE",
        help="replies to exclude: tab-separated lines of reply and reason, or language, reply and reason",
        group=RESPONSE_SET,
    ),
)


def run(values, progress) -> Outcome:
    corpus, out, shares = values["corpus"], values["out"], tuple(values["splits"]) or SHARES
    if len(shares) != len(SPLITS) or min(shares) < 0 or not sum(shares):
        raise ActionError(
            f"--splits is {' '.join(map(str, shares))!r}; write three whole numbers for train, valid and test, such as "
            '"80 10 10".'
        )
    struck = read_struck(values["strike"]) if values["strike"] else Struck()
    plan = Plan(values["seed"], shares, values["least_pairs"], values["apart"])
    manifest = export_pairs(corpus, out, plan, Responses(values["least"], values["most"], values["of"], struck))
    languages = manifest["languages"]
    counts = {split: sum(row[split] for row in languages) for split in SPLITS}
    replies = sum(row["responses"] for row in languages)
    told = (
        f"{many(sum(counts.values()), 'pair')} in {many(len(languages), 'language')} written to {out}: "
        f"{', '.join(f'{split} {count:,}' for split, count in counts.items())}; "
        f"{'1 reply' if replies == 1 else f'{replies:,} replies'} in the response set."
    )
    warned = []
    if not manifest["corpus"]["text_may_leave"]:
        warned.append("The licence keeps the text here: there are ids, languages and scores only, and no response set.")
    if unseen := manifest["response_set"]["unseen"]:
        replies_told = "1 reply" if len(unseen) == 1 else f"{len(unseen):,} replies"
        first = unseen[0]
        warned.append(
            f"Note: {replies_told} of {values['strike']} would not have been in the response set; the first is in line "
            f"{first['line']:,}: {first['reply'][:60]}."
        )
    if not manifest["filter"]["scorers"]:
        warned.append("Note: no scores were imported, so no pair was dropped; see import_scores.")
    return Outcome([told], warned, manifest)


ACTION = Action(
    "export_pairs",
    "Write the pairs of a corpus that no scorer drops: MRS's published folders in random splits, the set of "
    "frequent replies, JSONL, Parquet, what was left out and why, and a card with the count of every step.",
    OPTIONS,
    run,
    (ExportError,),
)
