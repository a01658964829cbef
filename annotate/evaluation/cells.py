"""What is known of the posts of a uniform set: what detectors, people and predictors say of each."""

from typing import NamedTuple

# A label that no post is given by anybody: what a post truly is where it is none of those that count.
ANOTHER = "?"
# In the place of what a predictor says, where that is not known.
NOT_TOLD = "-"


class Cell(NamedTuple):
    """What posts of one cell of a uniform set have in common. stratum: the label on which the detectors agreed, "" if
    they did not; agreed: the class of that label; read: whether people labelled it, so that truth is not the
    detectors' own label; said: the predictor's label; other: that of a predictor with which it is compared.

    word: whose word the truth is, if one person's: `adjudicated`, or a reader's, at least at first: `audited` of posts
    of the audit, `read` of others. first: what the reader had said, where an adjudicator checked it by lot; else "".
    chance: with which that was checked.
    """

    stratum: str
    agreed: str
    read: bool
    truth: str
    said: str
    other: str = ""
    word: str = ""
    first: str = ""
    chance: float = 1.0

    @property
    def of_other(self) -> "Cell":
        """The same as it tells of the other of two predictors."""
        return self._replace(said=self.other, other=self.said)
