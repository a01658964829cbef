"""The words of questions: words that are ignored, synonyms, whole questions, and what Assay does not offer."""

from typing import NamedTuple


class Lack(NamedTuple):
    """Something that Assay does not offer.

    words: words of a query of which any asks for it; all words of an entry with spaces must occur.
    sentence: what is not offered, and what to do instead.
    page: path of the page that says more.
    """

    words: tuple[str, ...]
    sentence: str
    page: str


# Words that do not help to find the subject of a question.
STOP_WORDS = frozenset(
    """
    a about am an and any are as at be but by can could do does find for from get had has have how i if in is it its me
    my no not of on or our out over s should so some than that the their them then there these they this to up us use
    was we were what when where which who why will with without would you your
    """.split()  # noqa: SIM905 - easier to read than a list of strings
)
# Word of a query -> the words that the pages use for it.
SYNONYMS = {
    "alternative": ("another tool",),
    "alternatives": ("another tool",),
    "authentication": ("token", "account"),
    "careless": ("paused", "pause"),
    "ci": ("interval",),
    "comparison": ("another tool",),
    "contribute": ("contributing", "develop"),
    "contributing": ("develop",),
    "crash": ("fault", "stopped"),
    "crowdsourcing": ("crowd",),
    "custom": ("own",),
    "delimiter": ("semicolons",),
    "discard": ("throw away",),
    "disagreement": ("conflict", "agreement"),
    "enlarge": ("draw more posts",),
    "entities": ("spans",),
    "entity": ("spans",),
    "exit": ("ends",),
    "exits": ("ends",),
    "forgot": ("forgotten",),
    "gdpr": ("privacy",),
    "grow": ("larger", "draw more"),
    "highlight": ("spans",),
    "highlighting": ("spans",),
    "https": ("tls",),
    "huggingface": ("datasets",),
    "install": ("pip install",),
    "jupyter": ("notebook",),
    "kappa": ("alpha",),
    "latin1": ("latin",),
    "login": ("log in", "password"),
    "logon": ("log in", "password"),
    "mturk": ("crowd",),
    "ner": ("spans",),
    "plugin": ("plug-in",),
    "plugins": ("plug-ins",),
    "reset": ("forgotten",),
    "resume": ("run the command again", "resumes", "continues"),
    "rtl": ("right to left",),
    "signin": ("log in", "password"),
    "ssl": ("tls",),
    "timeout": ("lease",),
    "umlauts": ("encoding",),
    "upgrade": ("update",),
    "user": ("annotator", "account"),
    "users": ("annotators", "accounts"),
    "versus": ("vs",),
}
# Whole query without stop words -> the words that the pages use for it.
REPHRASED = {
    "annotators per item": "who decides redundancy",
    "attention check": "hide known answers",
    "attention checks": "hide known answers",
    "csv import": "columns of your file",
    "gold question": "hide known answers",
    "gold questions": "hide known answers",
    "hidden gold": "hide known answers",
    "honeypot": "hide known answers",
    "honeypots": "hide known answers",
    "import csv": "columns of your file",
    "many annotators per item": "who decides redundancy",
    "quality control": "hide known answers",
    "relation": "spans",
    "relations": "spans",
    "spammer": "careless",
    "spammers": "careless",
    "undo": "undo change answer",
    "template": "own question",
    "templates": "own question",
    "write own question": "own question",
}
_OTHER_TOOLS = "explanation/other-tools"
NOT_OFFERED = (
    Lack(
        (
            "span",
            "spans",
            "ner",
            "entity",
            "entities",
            "highlight",
            "highlighting",
            "relation",
            "relations",
            "bio tags",
        ),
        "Assay does not offer spans or relations: people label whole texts. Use INCEpTION, doccano or Label Studio.",
        _OTHER_TOOLS,
    ),
    Lack(
        ("image", "images", "audio", "video", "speech", "pdf", "bounding box"),
        "Assay does not offer images, audio or video, only texts and records. Use Label Studio or Potato.",
        _OTHER_TOOLS,
    ),
    Lack(
        ("active learning", "uncertainty sampling", "retrain", "fine tune"),
        "Assay does not offer active learning, because items chosen by a model are no sample. To read mainly where two "
        "systems differ, use a draw that compares them.",
        "how-to/measure-a-classifier",
    ),
    Lack(
        ("webhook", "webhooks", "callback", "callbacks"),
        "Assay does not offer webhooks. Ask the API for the progress at intervals.",
        "how-to/api",
    ),
    Lack(
        ("s3", "gcs", "azure", "bucket", "cloud storage"),
        "Assay does not offer connectors to cloud storage. Copy the files to the server, or upload them.",
        "how-to/set-up-in-the-browser",
    ),
    Lack(
        ("free text", "text generation", "transcription", "translate texts"),
        "Assay does not offer free text as an answer: people choose labels, grades or one of two texts.",
        "how-to/own-kind",
    ),
)
