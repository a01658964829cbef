"""Opening and extending tasks by the command, on a real corpus and the real detectors' votes."""

import json
import re
from collections import Counter
from dataclasses import replace

import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.kinds import Answer
from annotate.kinds.language import KIND
from annotate.models import Judgment, LanguageRoute, Task, Transition, Unit
from annotate.quality.guideline_versions import current
from annotate.work import task_creation
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from annotate.work.task_creation import TaskError
from corpora.models import Corpus, Draw, Item
from corpora.storage.layout import manifest_of, write_manifest
from tests.annotate.corpus import NAME, import_posts

POSTS = 1525
NONE_OF_UNIFORM = "is not an option of language tasks drawn by the uniform design. Remove it."


@pytest.fixture
def open_task(demo_corpus, capsys):
    """open_task("t", 100, "--rounds", "3") runs the command with seed 7; returns its output and its warnings.

    Nobody audits what the detectors agree on, unless a test asks for it.
    """

    def run(name, size, *options, seed="7", corpus=NAME, audit=False):
        capsys.readouterr()
        options = [*options, *([] if audit else ["--audit-share=0", "--audit-least=0"])]
        call_command("open_task", name, "--size", str(size), "--seed", seed, "--corpus", corpus, *options)
        return capsys.readouterr()

    return run


@pytest.fixture
def extend(capsys):
    def run(name, size, *options):
        capsys.readouterr()
        call_command("extend_task", name, "--size", str(size), *options)
        return capsys.readouterr()

    return run


def keys(task):
    return list(Task.objects.get(name=task).units.order_by("position").values_list("item__key", flat=True))


def printed_counts(out):
    match = re.search(
        r"([\d,]+) posts (?:drawn|added); ([\d,]+) agreed, ([\d,]+) queued .*, ([\d,]+) cop(?:y|ies)", out
    )
    return tuple(int(number.replace(",", "")) for number in match.groups())


def everything():
    return {model.__name__: model.objects.count() for model in (Corpus, Draw, Item, Task, Unit, Transition)}


# --- opening


def test_a_task_is_drawn_opened_and_routed_and_the_counts_add_up(open_task):
    out = open_task("t", 600).out
    drawn, agreed, queued, copies = printed_counts(out)
    assert drawn == agreed + queued + copies == 600
    # An audit with no posts is not mentioned.
    assert "The detectors' agreement is used for " in out
    assert "or in languages whose route excludes it.\n" in out
    task = Task.objects.get()
    waiting = task.units.waiting_copies().count()
    assert (f"({waiting} wait" in out) == bool(waiting)
    by_stage = {"AGREED": agreed, "QUEUED": queued} | ({"COPIED": copies} if copies else {})
    assert Counter(task.units.values_list("stage", flat=True)) == by_stage
    assert list(task.units.order_by("position").values_list("position", flat=True)) == list(range(1, 601))
    assert min(agreed, queued) > 50
    assert (task.draw.seed, task.draw.size, task.draw.frame_size) == ("7", 600, POSTS)
    assert (task.draw.chance, task.draw.extends) == (600 / POSTS, None)
    for unit in task.units.select_related("item"):
        if unit.stage == stages.AGREED:
            assert {ranked[0][0] if ranked else None for ranked in unit.item.votes.values()} == {unit.label}
            assert unit.item.letters >= 20
        elif unit.stage == stages.QUEUED:
            assert unit.candidates
            assert (unit.round, unit.visited) == (1, [unit.language])


def test_without_options_the_task_is_the_articles(open_task):
    open_task("t", 20, audit=True)
    task = Task.objects.get()
    assert task.labels == sorted(KIND.labels)
    assert len(task.labels) == 70
    assert (task.title, current(task).text) == (KIND.title, KIND.guidelines["en"])
    assert current(task).version == "1.0"
    assert (task.redundancy, task.rounds, task.skip_limit, task.least_level) == (1, 2, 1, 4)
    assert task.never_agree == ["bs", "hr", "sr"]
    assert (task.audit_share, task.audit_least, task.audit_recheck, task.audit_limit) == (0.15, 5, 0.3, 0.15)


def test_every_knob_can_be_set(open_task, tmp_path):
    guidelines = tmp_path / "guidelines.md"
    guidelines.write_text("# Só isto\n", encoding="utf-8")
    numbers = ["--redundancy=3", "--rounds=4", "--skip-limit=2", "--least-level=3"]
    texts = ["--labels", "pt es, de pt", "--title", "Which?", "--guidelines", str(guidelines)]
    audit = ["--audit-share=1/8", "--audit-least=2", "--audit-recheck=25%", "--audit-limit", "0.7"]
    open_task("t", 20, *numbers, *texts, *audit, audit=True)
    task = Task.objects.get()
    assert (task.redundancy, task.rounds, task.skip_limit, task.least_level) == (3, 4, 2, 3)
    assert (task.labels, task.title, current(task).text) == (["de", "es", "pt"], "Which?", "# Só isto\n")
    assert (task.audit_share, task.audit_least, task.audit_recheck, task.audit_limit) == (0.125, 2, 0.25, 0.7)
    assert set(task.units.values_list("redundancy", flat=True)) == {3}


SAYING_NOTHING = [
    "LIVERPOOL ARSENAL CHELSEA EVERTON",
    '"BARACK OBAMA" (ANGELA MERKEL)',
    "NO PROBLEM SUPER HOTEL TAXI BERLIN",
    "HAHAHAHAHAHAHAHAHAHAHAHA",
    "hahahahahahahahahahahahaha 😂😂",
    "ハハハハハハハハハハハハハハハハハハハハハハハハ",
    "하하하하하하하하하하하하하하하하하하하하하하하하",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "#throwback #thursday #nofilter",
    "#любовь #счастье #друзья #лето #море",
    "#日本 #東京 #写真好きな人と繋がりたい #ファインダー越しの私の世界",
    "L\u200bI\u200bV\u200bE\u200bR\u200bP\u200bO\u200bO\u200bL ARSENAL CHELSEA EVERTON",
]
SAYING_SOMETHING = {
    "\u200f‏שלום לכולם מה שלומכם היום": "he",
    "ﺍﻟﺴﻼﻡ ﻋﻠﻴﻜﻢ ﻭﺭﺣﻤﺔ ﺍﻟﻠﻪ ﻭﺑﺮﻛﺎﺗﻪ": "ar",
    "𝓖𝓾𝓽𝓮𝓷 𝓜𝓸𝓻𝓰𝓮𝓷 𝓪𝓵𝓵𝓮𝓻𝓼𝓮𝓲𝓽𝓼 𝓶𝓮𝓲𝓷𝓮 𝓛𝓲𝓮𝓫𝓮𝓷": "de",
    "𝐈 𝐰𝐢𝐥𝐥 𝐛𝐞 𝐡𝐨𝐦𝐞 𝐥𝐚𝐭𝐞𝐫 𝐭𝐡𝐢𝐬 𝐞𝐯𝐞𝐧𝐢𝐧𝐠 𝐛𝐞𝐜𝐚𝐮𝐬𝐞 𝐨𝐟 𝐭𝐡𝐞 𝐫𝐚𝐢𝐧": "en",
}


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_names_laughter_and_hashtags_go_to_people_and_styled_letters_are_agreed_on(open_task, tmp_path, processes):
    texts = [*SAYING_NOTHING, *SAYING_SOMETHING]
    file = tmp_path / "odd.jsonl"
    file.write_text("".join(json.dumps({"id": str(id), "text": text}) + "\n" for id, text in enumerate(texts)))
    call_command("import_corpus", "odd", str(file), licence="CC0-1.0")
    call_command("prelabel", "odd", processes=processes)
    open_task("t", len(texts), corpus="odd")
    units = Task.objects.get(name="t").units.select_related("item")
    assert {unit.item.text: unit.label for unit in units if unit.stage == stages.AGREED} == SAYING_SOMETHING
    assert units.exclude(stage=stages.AGREED).count() == len(SAYING_NOTHING)


def test_a_language_marked_so_in_the_admin_never_agrees_in_tasks_opened_from_then_on(open_task):
    open_task("before", 300)
    LanguageRoute.objects.update_or_create(language="ru", defaults={"queue": "ru", "never_agree": True})
    open_task("after", 300)
    agreed = Unit.objects.filter(stage=stages.AGREED, label="ru")
    assert agreed.filter(task__name="before").exists()
    assert not agreed.filter(task__name="after").exists()


def test_queues_that_nobody_reads_are_warned_of(open_task, person):
    _, err = open_task("t", 200)
    queues = dict(Counter(Unit.objects.filter(stage=stages.QUEUED).values_list("language", flat=True)))
    warned = re.findall(r"(\S+) \(([\d,]+)\)", err)
    assert {queue: int(count) for queue, count in warned} == queues
    person("polyglot", " ".join("zh-CN" if queue == "zh" else queue for queue in queues))
    assert "Warning" not in open_task("again", 200).err


# --- extending


def test_extensions_add_the_difference_and_keep_what_was_judged_in_between(open_task, extend, person):
    open_task("t", 200)
    before = keys("t")
    task = Task.objects.get()
    anna, ben = person("anna", "de nl en"), person("ben", "en es fr")
    answer = judge(anna, take(anna, task).pk, Answer("de"))
    passed = skip(ben, take(ben, task).pk)
    held = take(anna, task)
    snapshot = list(task.units.order_by("pk").values())

    added, agreed, queued, copies = printed_counts(extend("t", 400).out)
    assert added == agreed + queued + copies == 200
    extend("t", 500)
    task.refresh_from_db()
    assert keys("t")[:200] == before
    assert len(set(keys("t"))) == 500
    assert list(task.units.order_by("position").values_list("position", flat=True)) == list(range(1, 501))
    assert list(task.units.order_by("pk").values()[:200]) == snapshot
    assert set(Judgment.objects.all()) == {answer, passed}
    assert take(anna, task) == held
    first, second, third = Draw.objects.order_by("pk")
    assert task.draw == third
    assert [(draw.size, draw.seed, draw.extends) for draw in (second, third)] == [(400, "7", first), (500, "7", second)]
    assert third.frame_digest == first.frame_digest

    open_task("at-once", 500)
    assert keys("at-once") == keys("t")
    states = [
        list(Unit.objects.filter(task__name=name, position__gt=200).order_by("position").values("stage", "label"))
        for name in ("t", "at-once")
    ]
    assert states[0] == states[1]


def test_an_extension_to_the_whole_corpus_leaves_out_later_posts_and_makes_copies_of_texts_that_the_task_has(
    open_task, extend, tmp_path
):
    """The demo's corpus holds four texts twice."""
    out, err = open_task("all", 5000)
    assert f"the corpus contains only {POSTS:,} posts" in err
    assert printed_counts(out)[0] == POSTS
    assert Task.objects.get().draw.chance == 1
    open_task("t", 800)
    more = tmp_path / "more.jsonl"
    more.write_text('{"id": "new", "text": "Ein neuer Text, der erst später kam."}\n', encoding="utf-8")
    call_command("import_corpus", NAME, str(more), licence=manifest_of(NAME).licence)
    Task.objects.update(is_open=False)
    out, err = extend("t", 9999)
    assert printed_counts(out)[0] == POSTS - 800
    assert "Task t is closed, so annotators do not receive the items. To reopen it, run `assay reopen t`.\n" in err
    task = Task.objects.get(name="t")
    assert "new" not in keys("t")
    copies = task.units.filter(stage=stages.COPIED).select_related("item", "copy_of__item")
    assert len(copies) == 4
    across = [unit for unit in copies if unit.copy_of.position <= 800 < unit.position]
    assert across
    for unit in across:
        assert unit.item.text == unit.copy_of.item.text
        assert [t.event for t in unit.transitions.all()] == ["copied"]
    assert "already" in refused(extend, "t", POSTS + 1)


# --- what is refused


def refused(run, *arguments, **options):
    """Return the error message of a refused command, which must change nothing."""
    before = everything()
    with pytest.raises(CommandError) as caught:
        run(*arguments, **options)
    assert everything() == before
    return str(caught.value)


def test_a_wrong_option_is_one_sentence_and_leaves_nothing_behind(open_task):
    bad_name = "The task's name contains invalid characters"
    for name, size, options, sentence in (
        ("t", 0, "", "--size is 0. It must be 1 or more."),
        (
            "t",
            10,
            "--corpus=none",
            "The corpus 'none' does not exist. Available corpora: demo. To import one, see `assay import_corpus",
        ),
        ("t", 10, "--seed=", "--seed is needed to open a task by the uniform design."),
        ("t", 10, f"--seed={'x' * 65}", "The seed has 65 characters. It must have 1 to 64."),
        ("t", 10, "--corpus=", "--corpus is needed to open a task by the uniform design."),
        ("t", 10, "--labels=de,xx,q", "'xx', 'q': unknown language code"),
        ("two words", 10, "", bad_name),
        ("täsk", 10, "", bad_name),
        ("x" * 65, 10, "", "The task's name has 65 characters. The limit is 64"),
        ("t", 10, f"--title={'x' * 201}", "The task's title has 201 characters. The limit is 200"),
        ("t", 10, "--redundancy=0", "--redundancy is 0. It must be 1 to 99."),
        ("t", 10, "--rounds=100", "--rounds is 100. It must be 1 to 99."),
        ("t", 10, "--skip-limit=0", "--skip-limit is 0. It must be 1 to 99."),
        ("t", 10, "--least-level=6", "--least-level is 6. It must be 0 to 5."),
        ("t", 10, "--audit-limit=2", "--audit-limit is 2. It must be 0 to 1."),
        ("t", 10, "--window=2014-07-01..2014-07-02", f"--window {NONE_OF_UNIFORM}"),
        ("t", 10, "--predictor=cld2", f"--predictor {NONE_OF_UNIFORM}"),
        ("t", 10, "--reuse", f"--reuse {NONE_OF_UNIFORM}"),
        ("t", 10, "--on-conflict=LOST", "--on-conflict is 'LOST'. It must be one of ADJUDICATION, DISCARDED."),
        (
            "t",
            10,
            "--design=none",
            "'none'. It must be one of uniform, recall, precision, triggers, records, compare, bal",
        ),
        ("t", 10, "--kind=none", "There is no kind 'none'; available: language, verify, ad_relevance"),
        ("t", 10, "--guidelines=none.md", "Cannot read the guidelines none.md: "),
    ):
        assert sentence in refused(open_task, name, size, *options.split()), (name, size, options)
    open_task("t", 10)
    again = "The task 't' already exists. Choose another name, or extend the existing task."
    assert refused(open_task, "t", 20) == again


def test_of_two_tasks_that_are_opened_at_once_under_one_name_the_later_is_refused(demo_corpus):
    how = {"size": 9, "options": {"audit_share": 0, "audit_least": 0}}
    first = []

    def meanwhile(units):
        if not first:
            first.append(task_creation.open_task("t", demo_corpus, KIND, seed="1", **how).task)

    with pytest.raises(TaskError, match=r"Somebody else has just created the task 't'\. Choose"):
        task_creation.open_task("t", demo_corpus, KIND, seed="2", **how, progress=meanwhile)
    assert list(Task.objects.all()) == first
    assert [draw.seed for draw in Draw.objects.all()] == ["1"]


def test_a_wrong_extension_is_one_sentence_and_leaves_nothing_behind(open_task, extend):
    open_task("t", 50)
    small = "The task already has 50 posts. Set --size to a larger number."
    for options, sentence in (
        (["t", 30], small),
        (["t", 50], small),
        (["t", 0], "--size is 0. It must be 1 or more."),
        (["none", 100], "There is no task 'none'; available: t."),
    ):
        assert refused(extend, *options).startswith(sentence)
    manifest = manifest_of(NAME)
    write_manifest(NAME, replace(manifest, votes=(replace(manifest.votes[0], sha256="0" * 64),)))
    assert "have changed since the draw was made. Make a new draw" in refused(extend, "t", 100)


def test_a_corpus_without_votes_is_sent_to_prelabel(open_task):
    import_posts("raw")
    assert (
        refused(open_task, "t", 10, corpus="raw") == "Some posts in corpus raw have no votes. Run `assay prelabel raw`."
    )
