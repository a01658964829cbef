"""Fixtures for the tests of annotate/: people, and tasks with votes that the test chooses."""

import itertools

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from annotate.controls.gold_answers import store
from annotate.kinds import KINDS, Answer
from annotate.kinds.interface_language import negative
from annotate.kinds.options import OPTIONS
from annotate.kinds.panel_kind import with_panel
from annotate.models import Annotator, AnnotatorLanguage, Judgment, Task
from annotate.quality.guideline_versions import add_first
from annotate.work import task_creation
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from annotate.work.task_creation import GoldRow
from annotate.work.unit_entry import add_units
from corpora.models import Corpus, Draw, Item
from tests.annotate.acts import NO_CHECKS
from tests.annotate.corpus import demo_corpus, prelabelled, small  # noqa: F401 - fixtures
from tests.annotate.hands import at_work  # noqa: F401 - fixture
from tests.running import DATA, install


@pytest.fixture
def installed(migrated, tmp_path):
    """A folder with an installation. The tables are copied, because creating them takes seconds."""
    install(tmp_path / DATA, migrated)
    return tmp_path


LONG = "a text that is long enough for agreement to count, number {}"


def votes(*firsts, detectors=("langid", "cld2", "fasttext")):
    """Return the votes of the three detectors. Each argument is a detector's ranking, such as "de en"."""
    return {
        detector: [[code, round(0.9 - 0.2 * rank, 2)] for rank, code in enumerate(ranking.split())]
        for detector, ranking in zip(detectors, firsts, strict=True)
    }


DISPUTED = ("de en", "en de", "de")
AGREED = ("de", "de", "de")


def make_person(username, languages="", **fields):
    user = User.objects.create_user(username, password="a long password")
    annotator = Annotator.objects.create(user=user, **fields)
    for word in languages.split():
        code, _, level = word.partition(":")
        AnnotatorLanguage.objects.create(annotator=annotator, language=code, level=int(level or 5))
    return annotator


@pytest.fixture
def person(db):
    """Return a function: person("ann", "de:5 en:4", adjudicates=True) creates an annotator who can log in."""
    return make_person


@pytest.fixture
def ada(db):
    return make_person("ada", adjudicates=True)


@pytest.fixture
def eve(db):
    return make_person("eve", adjudicates=True)


@pytest.fixture
def ann(person, request):
    """A reader of German, or of the languages in ANN_READS of the module. A module can override this fixture."""
    return person("ann", getattr(request.module, "ANN_READS", "de"))


@pytest.fixture
def as_ann(client, ann):
    """A client that is logged in as Ann."""
    client.force_login(ann.user)
    return client


@pytest.fixture
def as_ada(client, ada):
    client.force_login(ada.user)
    return client


@pytest.fixture
def as_eve(client, eve):
    client.force_login(eve.user)
    return client


def make_manager():
    return User.objects.create_superuser("manager", password="a long password")


@pytest.fixture
def manager(db):
    return make_manager()


@pytest.fixture
def desk(client, manager):
    """A client that is logged in as a superuser."""
    client.force_login(manager)
    return client


def stored_task(name, kind, fields):
    """Save a task of a kind with the kind's options. fields: fields of the task, and options with other values."""
    defaults = {option: OPTIONS[option].default for option in kind.options} | dict(kind.defaults)
    of_task = (*kind.options, "never_agree", "voters", "agree")
    columns = {name: value for name, value in fields.items() if name not in OPTIONS and name not in of_task}
    task = Task(name=name, kind_slug=kind.slug, kind_file=kind.source, **({"title": kind.title} | columns))
    task.labels = task.labels or list(kind.labels)
    task.options = defaults | {name: value for name, value in fields.items() if name in of_task}
    task.full_clean()
    task.save()
    return task


def stored_draw(corpus, size, **fields):
    """Save a draw with `size` of twice as many items."""
    numbers = {"size": size, "asked": size, "parts": 1, "frame_size": 2 * size}
    return Draw.objects.create(**{"corpus": corpus, "seed": "1", "frame_digest": "0" * 64} | numbers | fields)


def task_maker():
    """Return a function: make([DISPUTED, AGREED], redundancy=3) opens a task with a unit for each entry.

    An entry is the three rankings, or a dict of an Item's fields, including votes. With asked="de", the task asks
    "Is this German?" about posts from a precision-oriented draw. With decoys=2, the last two posts are decoys.
    """
    numbers = itertools.count(1)

    def make(entries, *, name="task", asked="", decoys=0, kind=None, **knobs):
        corpus, _ = Corpus.objects.get_or_create(name="corpus")
        items = []
        for entry in entries:
            number = next(numbers)
            fields = entry if isinstance(entry, dict) else {"votes": entry}
            fields = {"key": str(number), "text": LONG.format(number), "letters": 40} | fields
            fields["votes"] = votes(*fields["votes"])
            items.append(Item(corpus=corpus, **fields))
        Item.objects.bulk_create(items)
        design, predictor = ("precision", "cld2") if asked else ("uniform", "")
        draw = stored_draw(corpus, len(items), design=design, language=asked, predictor=predictor)
        labels = [asked] if asked else ["de", "en", "fr", "he", "ar", "zh-CN", "zh-TW", "hi", "hi-Latn"]
        # By default, there are no audits, checks or other additional work.
        fields = {"title": "Which language?", "labels": labels, "audit_share": 0.0, "audit_least": 0, **NO_CHECKS}
        task = stored_task(name, kind or KINDS["verify" if asked else "language"], fields | knobs)
        add_first(task, {"en": "Read."})
        task.draws.add(draw)
        hidden = {item.pk: negative(asked) for item in items[len(items) - decoys :]}
        add_units(task, items, asked=asked, known_answers=hidden)
        return task

    return make


@pytest.fixture
def make_task(db):
    return task_maker()


def records_task_maker():
    """Return a function: make("qa_match", 4, gold={"queue": ["1", "0"]}) opens a task with 4 records per language.

    gold: the labels of the gold answers in each language, by purpose. The text of a record contains its number.
    panel: for each record, the labels of the voters a@1, b@1 and c@1, such as "1 1 0"; replaces `count`
    """
    numbers = itertools.count(1)

    def make(task_type="qa_match", count=2, *, languages=("en",), gold=None, name="crowd", panel=(), **knobs):
        kind = with_panel(KINDS[task_type]) if panel else KINDS[task_type]
        if panel:
            knobs = {"voters": ["a@1", "b@1", "c@1"], "agree": 3, "audit_share": 0.0, "audit_least": 0} | knobs
        corpus, _ = Corpus.objects.get_or_create(name="records")
        task = stored_task(name, kind, {"languages": list(languages), "test_items": 0, "gold_share": 0.0} | knobs)
        add_first(task, {"en": "Read."})

        def item(language, labels=""):
            votes = {f"{voter}@1": [[label, 0.9]] for voter, label in zip("abc", labels.split(), strict=False)}
            key = f"{language}-{next(numbers)}"
            fields = {field: f"the {field} of {key}" for field in kind.fields}
            text = "\n".join(fields.values())
            return Item.objects.create(
                corpus=corpus, key=key, language=language, fields=fields, text=text, votes=votes, letters=0
            )

        for language in languages:
            task.draws.add(stored_draw(corpus, count, design="records", language=language))
        entries = [
            (item(language), label, purpose)
            for language in languages
            for purpose, labels in (gold or {}).items()
            for label in labels
        ]
        rows = [GoldRow(gold.key, label, purpose, f"Because of {label}.") for gold, label, purpose in entries]
        hidden = store(task, rows, [gold for gold, _, _ in entries])
        answers = {gold.pk: label for gold, label in hidden.items()}
        add_units(task, list(hidden), known_answers=answers, honeypots=True)
        add_units(task, [item(language, labels) for language in languages for labels in panel or [""] * count])
        return task

    return make


@pytest.fixture
def make_records_task(db):
    return records_task_maker()


def extend_by(monkeypatch, task, added, before=lambda: None):
    """Make the next extension of a task draw items with these fields. `before` is called before they are stored."""

    def record(sample):
        before()
        items = [
            {"key": f"added {n}", "text": LONG.format(f"added {n}"), "letters": 40} | fields
            for n, fields in enumerate(added)
        ]
        corpus = task.draw.corpus
        return task.draw, Item.objects.bulk_create(
            Item(corpus=corpus, **{**fields, "votes": votes(*fields["votes"])}) for fields in items
        )

    monkeypatch.setattr(task_creation, "sample_uniform", lambda corpus, **options: None)
    monkeypatch.setattr(task_creation, "record", record)


@pytest.fixture
def judged():
    """Return a function: judged(annotator, unit, "de") stores an answer directly, for tests that only read."""

    def make(annotator, unit, label="de", **fields):
        now = timezone.now()
        times = {"opened_at": now, "expires_at": now, "closed_at": now}
        where = {"place": 1 + unit.leases.count(), "round": 1, "queue": "de"}
        lease = unit.leases.create(annotator=annotator, outcome="answered", **where, **times)
        return Judgment.objects.create(
            unit=unit, annotator=annotator, lease=lease, kind="answer", label=label, answered_at=now, **fields
        )

    return make


@pytest.fixture
def skipped(make_task):
    """Return a function: skipped(2) creates a task with the posts 1 and 2, both skipped by their only reader."""

    def make(count=1, **options):
        task = make_task([DISPUTED] * count, **{"rounds": 1} | options)
        reader = Annotator.objects.filter(user__username="reader").first() or make_person("reader", "de")
        while lease := take(reader, task):
            skip(reader, lease.pk)
        return task

    return make


@pytest.fixture
def differed(make_records_task, person):
    """Return a case on which three people gave different answers, and the three people."""
    task = make_records_task("web_ranking", 1, on_conflict="ADJUDICATION")
    three = [person(f"p{number}", "en", adjudicates=number == 0) for number in range(3)]
    for annotator, label in zip(three, "430", strict=True):
        judge(annotator, take(annotator, task).pk, Answer(label))
    return task, three


@pytest.fixture
def readers(person):
    """Return a function: readers("ann bea cem") creates annotators who read German."""
    return lambda names: [person(name, "de") for name in names.split()]
