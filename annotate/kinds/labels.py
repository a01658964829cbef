"""What a label says: `de` is German, `not-de` is anything but German, `und` is no single language."""

from corpora.core.languages import LANGUAGES, UND, finer

_NOT = "not-"


def negative(language: str) -> str:
    """The label of a post that is not in a language, as the published files of 2015 write it."""
    return _NOT + language


def is_negative(label: str) -> bool:
    return label.startswith(_NOT)


def answer_about(asked: str, label: str) -> str | None:
    """What a label that people gave elsewhere says to the question "Is this `asked`?"; None if it says nothing."""
    if label in (asked, negative(asked), UND):
        return label
    # Each label of a coarse code such as zh means that code, but the code does not say which label is meant.
    if label in finer(asked):
        return asked
    return None if is_negative(label) or asked in finer(label) else negative(asked)


def label_name(label: str) -> str:
    """In English: German, Not German, Undefined; an unknown code stays as it is."""
    if is_negative(label):
        return f"Not {label_name(label.removeprefix(_NOT))}"
    return "Undefined" if label == UND else LANGUAGES[label].name if label in LANGUAGES else label
