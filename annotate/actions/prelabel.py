"""prelabel: the detectors' votes on a corpus."""

from annotate.actions.action import Action, Outcome
from annotate.actions.options import CORPUS
from annotate.core.option import Option, flag, whole_number
from corpora.storage.layout import manifest_of
from corpora.votes.vote_run import PIECE, prelabel

OPTIONS = (
    CORPUS,
    Option("k", whole_number, 3, least=1, help="how many languages a detector names at most"),
    Option(
        "processes",
        whole_number,
        least=1,
        help="how many processes of this machine work at a time; by default one for each core, or all that Spark has "
        "where ASSAY_ENGINE is spark",
    ),
    Option(
        "again",
        flag,
        False,
        help="replace votes made by other detector versions or another k; a draw made from the old votes can then "
        "no longer be extended",
    ),
)


def run(values, progress) -> Outcome:
    name = values["corpus"]
    progress.begin(manifest_of(name).rows, "post")
    chosen = {option: values[option] for option in ("k", "processes", "again")}
    manifest = prelabel(name, **chosen, progress=progress.advance)
    agreed = sum(votes.unanimous for votes in manifest.votes)
    have = "post has" if manifest.rows == 1 else "posts have"
    told = (
        f"Corpus {name}: {manifest.rows:,} {have} votes; on {agreed:,} ({agreed / manifest.rows:.1%}) "
        "all three detectors name the same language."
    )
    return Outcome([told], data={"corpus": name, "posts": manifest.rows, "agreed": agreed})


ACTION = Action(
    "prelabel",
    "Have the three detectors name the languages of every post of a corpus. Stopped or killed, it goes on where it "
    f"was: parts that are done are kept, and of the one under way every {PIECE:,} posts; Spark does those under way "
    "once more. Run again, it does the parts that have been added since.",
    OPTIONS,
    run,
)
