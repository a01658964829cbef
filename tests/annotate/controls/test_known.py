"""Answers from other tasks: reused labels, and decoys."""

import itertools
import json
from collections import Counter
from dataclasses import replace

import pytest
from django.db.models import F

from annotate.controls import decoys as hidden_posts
from annotate.core import stages
from annotate.core.draws import hash_order
from annotate.core.estimation.label_errors import AskedSet
from annotate.core.estimation.proportions import jeffreys
from annotate.goldsets.exporter import export
from annotate.kinds import Answer
from annotate.kinds.designs import DESIGNS
from annotate.models import AnnotatorLanguage, Transition
from annotate.work.adjudication import settle
from annotate.work.answer_changes import undo
from annotate.work.judgments import judge, skip
from annotate.work.queue import judge_sheet, take, take_sheet
from corpora.core.voters import DEFAULT
from corpora.draws.samples import Sample
from corpora.models import Corpus, Item, agreed_on
from tests.annotate.acts import open_verification, work_through
from tests.annotate.conftest import LONG, votes
from tests.annotate.goldsets.acts import with_manifest
from tests.annotate.goldsets.set_contents import everything_in, json_lines
from tests.annotate.told_sets import of_lots, rewrite, tell, verified

ANN_READS = "de nl af en fr"
GERMAN = ("de nl", "de", "nl")
DUTCH = ("nl de", "nl", "en nl")  # a detector ranks German
AFRIKAANS = ("af", "af en", "en af")  # similar to German, which no detector ranks
FRENCH = ("fr", "fr en", "en fr")  # neither
LABELS = ["af", "de", "en", "fr", "nl"]
SEED = "5"


@pytest.fixture
def posts(db):
    """posts(3, DUTCH) adds three new posts to the corpus."""
    numbers = itertools.count(1)

    def make(count, rankings=GERMAN, text=None):
        corpus, _ = Corpus.objects.get_or_create(name="corpus")
        rows = [
            (f"post {n}", text or f"a post of the stream that is long enough, {n} by name")
            for n in itertools.islice(numbers, count)
        ]
        return Item.objects.bulk_create(
            Item(corpus=corpus, key=key, text=text, letters=40, votes=votes(*rankings)) for key, text in rows
        )

    return make


@pytest.fixture
def labelled(make_task, person):
    """labelled([(DUTCH, "nl"), ...]) is a uniform task in which a reader has said that of such posts. That is not ann,
    who would never be given as a decoy what they have read.
    """
    lea = person("lea")

    def make(pairs, **fields):
        task = make_task([rankings for rankings, _ in pairs], **({"name": "uniform", "labels": LABELS} | fields))
        lea.languages.bulk_create(AnnotatorLanguage(annotator=lea, language=code) for code in LABELS)
        say(task, lea, [label for _, label in pairs])
        lea.languages.all().delete()
        return task

    return make


@pytest.fixture
def verify(monkeypatch):
    """verify({"de": items}) asks "Is this German?" of these posts, as if the precision design had drawn them."""

    def make(drawn, *, name="verify", reuse=False, seed=SEED, **fields):
        drew = replace(DESIGNS["precision"], draw=lambda wanted: [sample(*pair, seed) for pair in drawn.items()])
        monkeypatch.setitem(DESIGNS, "precision", drew)
        how = {"size": 1, "seed": seed, "options": {"predictor": "cld2"}, "reuse": reuse}
        return open_verification(name, Corpus.objects.get(), "precision", sorted(drawn), **how, **fields)

    return make


def sample(language, items, seed):
    rows = [
        {field: getattr(item, field) for field in ("text", "author", "posted_at", "url", "letters")}
        | {"id": item.key, "votes": json.dumps(item.votes), "agreed": agreed_on(item, DEFAULT)}
        for item in items
    ]
    sizes = {"asked": len(items), "size": len(items), "frame_size": 2 * len(items)}
    return Sample(
        corpus=Corpus.objects.get(),
        design="precision",
        language=language,
        predictor="cld2",
        seed=seed,
        parts=1,
        digest="0" * 64,
        detectors=[],
        rows=rows,
        **sizes,
    )


def say(task, reader, answers):
    """Answer the units of a task in the order of the draw; None is a skip."""
    for answer in answers:
        lease = take(reader, task)
        if answer is None:
            skip(reader, lease.pk)
        else:
            judge(reader, lease.pk, answer if isinstance(answer, Answer) else Answer(answer))


def hidden(task):
    return task.units.exclude(known_answer="").order_by("position")


# --- decoys


def test_decoys_are_known_to_be_something_else_and_ranked_by_a_detector_or_confusable(labelled, posts, verify):
    answers = [(DUTCH, "nl"), (AFRIKAANS, "af"), (FRENCH, "fr"), (GERMAN, "de"), (GERMAN, Answer("und", "several"))]
    uniform = labelled(answers)
    opened = verify({"de": posts(8)}, decoy_share=1)
    chosen = uniform.units.filter(item__in=hidden(opened.task).values("item"))
    assert set(chosen.values_list("label", flat=True)) == {"nl", "af"}
    assert opened.decoys == {"de": 2}
    assert set(hidden(opened.task).values_list("stage", "language", "asked", "known_answer")) == {
        (stages.QUEUED, "de", "de", "not-de")
    }


def test_there_are_as_many_decoys_as_the_share_says_if_there_are_as_many_that_people_labelled(
    make_task, labelled, posts, verify
):
    make_task([("nl", "nl", "nl")] * 3, labels=LABELS, name="agreed")  # agreement of detectors is no known answer
    assert verify({"de": posts(4)}, name="none", decoy_share=1).decoys["de"] == 0
    labelled([(DUTCH, "nl")] * 6)
    for share, number in ((0, 0), (0.05, 1), (0.1, 2), (0.11, 3), (1, 6)):
        opened = verify({"de": posts(20)}, name=f"share-{100 * share:.0f}", decoy_share=share)
        assert opened.decoys["de"] == number, share


def test_the_share_is_of_the_posts_that_readers_see(labelled, posts, verify):
    uniform = labelled([(DUTCH, "nl")] * 6 + [(GERMAN, "de")] * 20)
    known_posts = [unit.item for unit in uniform.units.filter(label="de")]
    same = posts(10, text="the same text ten times, which is a copy of itself")
    opened = verify({"de": [*known_posts, *posts(10), *same]}, reuse=True, decoy_share=0.1)
    assert opened.reused["de"] == 20
    assert opened.decoys["de"] == 2


def test_one_seed_hides_other_posts_in_other_places_in_every_task_as_its_secret_says(labelled, posts, verify):
    uniform = labelled([(DUTCH, "nl")] * 12)
    drawn, places = posts(20), {}
    for name in ("one", "two"):
        task = verify({"de": drawn}, name=name, decoy_share=0.2).task
        places[name] = list(hidden(task).values_list("item__key", "position"))
    assert places["one"] != places["two"]
    keys = uniform.units.values_list("item__key", flat=True)
    expected = hash_order.draw_sample(keys, 4, lots=hash_order.by_secret(task.secret), purpose="decoy de")
    assert sorted(key for key, _ in places["two"]) == sorted(expected)


def test_no_decoy_has_a_text_that_is_in_the_draw(labelled, posts, verify):
    uniform = labelled([(DUTCH, "nl")] * 2)
    first, second = (unit.item for unit in uniform.units.all())
    drawn = [first, *posts(1, text=second.text), *posts(4)]
    assert not hidden(verify({"de": drawn}, decoy_share=1).task).exists()


def test_a_text_is_a_decoy_once_and_only_where_all_who_labelled_it_say_the_same(labelled, posts, verify):
    twice = {"votes": DUTCH, "text": LONG.format("that occurs twice")}
    torn = {"votes": DUTCH, "text": LONG.format("that people disagree on")}
    labelled([({**twice, "key": "a"}, "nl"), ({**torn, "key": "b"}, "nl")])
    labelled([({**twice, "key": "c"}, "nl"), ({**torn, "key": "d"}, "und")], name="again")
    task = verify({"de": posts(4)}, decoy_share=1).task
    assert [unit.item.text for unit in hidden(task)] == [twice["text"]]


def test_a_no_of_an_earlier_verification_is_known_too(posts, ann, verify):
    first, other = posts(3), posts(6)
    verify({"de": first}, name="earlier")
    task = verify({"de": first}, name="more", decoy_share=1).task
    say(task, ann, ["not-de", "de", "und"])
    assert [unit.item for unit in hidden(verify({"de": other}, decoy_share=1).task)] == first[:1]


def test_decoys_of_one_task_are_not_known_to_the_next(labelled, posts, ann, verify):
    labelled([(DUTCH, "nl")])
    task = verify({"de": posts(1)}, decoy_share=1).task
    say(task, ann, ["de", "de"])
    assert len(hidden_posts.load_labelled_units(task.draw.corpus)) == 2
    assert verify({"de": posts(1)}, name="next", decoy_share=1).decoys["de"] == 1


def test_decoys_lie_anywhere_among_the_others(posts, verify):
    drawn, decoys = posts(5), posts(2)
    task, places = verify({"de": drawn}).task, Counter()
    for number in range(300):
        task.secret = str(number)
        order = hidden_posts.insert_decoys(task, drawn, decoys, "de")
        assert [item for item in order if item in drawn] == drawn
        places.update(place for place, item in enumerate(order) if item in decoys)
    assert set(places) == set(range(7))


def test_by_default_there_are_as_many_decoys_as_the_bound_on_false_yes_needs(labelled, posts, verify):
    labelled([(DUTCH, "nl")] * 30)
    opened = verify({"de": posts(60)})
    assert opened.wanted == {"de": AskedSet(by_author=False).decoys(60)}
    assert opened.decoys["de"] == opened.wanted["de"] > 0
    assert opened.task.decoy_share is None


def test_each_language_has_decoys_of_its_own(labelled, posts, verify):
    uniform = labelled([(DUTCH, "nl"), (GERMAN, "de")])
    dutch, german = (unit.item for unit in uniform.units.order_by("position"))
    task = verify({"de": posts(2), "nl": posts(2)}, decoy_share=0.5).task
    by_language = {unit.asked: (unit.item, unit.known_answer) for unit in hidden(task)}
    assert by_language == {"de": (dutch, "not-de"), "nl": (german, "not-nl")}


def test_a_decoy_that_nobody_can_tell_or_on_which_readers_differ_is_left_and_troubles_no_adjudicator(
    labelled, posts, person, verify
):
    labelled([(DUTCH, "nl")])
    for state, answers in (("skipped", {"cem": None}), ("differed", {"dan": "de", "bea": "not-de"})):
        task = verify({"de": posts(1)}, name=state, decoy_share=1, redundancy=len(answers)).task
        readers = {name: person(name, "de") for name in answers}
        for name, label in answers.items():
            say(task, readers[name], [label, label])
        assert sorted(task.units.values_list("known_answer", "stage")) == [
            ("", stages.ADJUDICATION),
            ("not-de", stages.DISCARDED),
        ]


# --- their false-yes rate


def test_false_yeses_are_counted_by_language_with_their_interval(labelled, posts, ann, verify):
    labelled([(DUTCH, "nl")] * 4 + [(GERMAN, "de")])
    task = verify({"de": posts(4), "nl": posts(1)}, decoy_share=1).task
    answers = {"de": itertools.cycle(["de", "not-de", "und", "de"]), "nl": itertools.cycle(["not-nl"])}
    work_through(ann, task, lambda of: next(answers[of.unit.asked]) if of.unit.known_answer else of.unit.asked)
    german, dutch = hidden_posts.report(task)["languages"]
    assert (german["decoys"], german["answers"], german["yes"]) == (4, 4, 2)
    assert (german["false_yes"]["low"], german["false_yes"]["high"]) == pytest.approx(jeffreys(2, 4))
    assert (dutch["language"], dutch["decoys"], dutch["answers"], dutch["yes"]) == ("nl", 1, 1, 0)
    assert german["sheets"]["answers"] == 0
    assert german["sheets"]["false_yes"]["value"] is None


def test_what_is_taken_back_or_skipped_is_no_answer_to_a_decoy(labelled, posts, ann, verify):
    labelled([(DUTCH, "nl")])
    task = verify({"de": posts(1)}, decoy_share=1).task
    say(task, ann, ["de", "de"])
    task.labels = ["fr"]  # it counts by what was drawn
    task.save()
    assert [(row["language"], row["yes"]) for row in hidden_posts.report(task)["languages"]] == [("de", 1)]
    task.labels = ["de"]
    task.save()
    undo(ann, task)
    undo(ann, task)
    assert hidden_posts.report(task)["languages"][0]["answers"] == 0
    say(task, ann, [None, None])
    assert hidden_posts.report(task)["languages"][0]["answers"] == 0


def test_answers_on_sheets_are_counted_apart(labelled, posts, ann, verify):
    labelled([(DUTCH, "nl")] * 6)
    task = verify({"de": posts(6)}, decoy_share=1).task
    sheet = take_sheet(ann, task, 8)
    on_sheet = sum(bool(lease.unit.known_answer) for lease in sheet)
    judge_sheet(ann, task, {lease.pk: Answer("de") for lease in sheet})
    say(task, ann, ["not-de"] * 4)
    [row] = hidden_posts.report(task)["languages"]
    assert 0 < on_sheet < 6
    assert (row["answers"], row["yes"]) == (6, on_sheet)
    assert (row["sheets"]["answers"], row["sheets"]["yes"]) == (on_sheet, on_sheet)


# --- decoys in exports


def test_decoys_are_in_no_export_and_in_none_of_its_counts(labelled, posts, ann, verify, tmp_path):
    uniform = labelled([(DUTCH, "nl")] * 2)
    drawn = posts(3)
    task = verify({"de": drawn}, decoy_share=0.5).task
    with_manifest()
    work_through(ann, task)
    manifest = export(task, tmp_path / "gold")
    assert (manifest["counts"]["posts"], manifest["counts"]["by_stage"]) == (3, {"LABELLED": 3})
    rows = json_lines(tmp_path / "gold" / "gold.jsonl")
    assert [row["id"] for row in rows] == [item.key for item in drawn]
    content = everything_in(tmp_path / "gold")
    for unit in uniform.units.all():
        assert unit.item.text not in content
        assert json.dumps(unit.item.text)[1:-1] not in content
    [row] = manifest["decoys"]["languages"]
    assert (row["decoys"], row["answers"], row["yes"]) == (2, 2, 2)
    assert "Readers answered Yes in 2 of 2 answers to decoys." in (tmp_path / "gold" / "README.md").read_text("utf-8")


def test_a_set_is_finished_when_its_own_posts_are(labelled, posts, ann, verify, tmp_path):
    labelled([(DUTCH, "nl")] * 2)
    task = verify({"de": posts(2)}, decoy_share=1).task
    with_manifest()
    hidden(task).update(position=F("position") + 100)
    say(task, ann, ["de", "not-de"])
    assert hidden(task).filter(stage=stages.QUEUED).count() == 2
    manifest = export(task, tmp_path / "gold")
    assert manifest["finished"]
    assert manifest["counts"]["unfinished"] == 0
    assert (tmp_path / "gold" / "precision_oriented.tsv").exists()


# --- reuse


def test_labels_that_posts_have_are_taken_over_and_the_export_says_from_where(labelled, posts, ann, verify, tmp_path):
    uniform = labelled([(GERMAN, "de"), (DUTCH, "nl"), (GERMAN, Answer("und", "mixed"))])
    items = [unit.item for unit in uniform.units.order_by("position")]
    without = verify({"de": items}, name="without", decoy_share=0)
    assert without.reused == {"de": 0}
    assert set(without.task.units.values_list("stage", flat=True)) == {stages.QUEUED}
    opened = verify({"de": [*items, *posts(1)]}, reuse=True, decoy_share=0)
    units = list(opened.task.units.order_by("position"))
    assert [(unit.stage, unit.label) for unit in units] == [
        (stages.LABELLED, "de"),
        (stages.LABELLED, "not-de"),
        (stages.LABELLED, "und"),
        (stages.QUEUED, ""),
    ]
    assert [unit.reused_from.item if unit.reused_from else None for unit in units] == [*items, None]
    moves = Transition.objects.filter(unit__in=units[:3])
    assert set(moves.values_list("event", "from_stage", "to_stage")) == {("reused", stages.NEW, stages.LABELLED)}
    assert opened.reused == {"de": 3}

    say(opened.task, ann, ["de"])
    with_manifest()
    manifest = export(opened.task, tmp_path / "gold")
    rows = json_lines(tmp_path / "gold" / "gold.jsonl")
    assert [(row["label"], row["reused_from"]) for row in rows] == [
        ("de", "uniform"),
        ("not-de", "uniform"),
        ("und", "uniform"),
        ("de", None),
    ]
    assert manifest["counts"]["reused"] == {"uniform": 3}
    card = (tmp_path / "gold" / "README.md").read_text(encoding="utf-8")
    assert "3 posts have the label that people gave\nthem in another task of the corpus: 3 in `uniform`." in card


def test_where_people_disagree_nothing_is_reused_and_a_no_to_another_language_says_nothing(posts, ann, verify):
    item, other = posts(2)
    for name, label in (("one", "de"), ("two", "not-de")):
        task = verify({"de": [item, other]}, name=name, decoy_share=0).task
        say(task, ann, [label, "de"])
    task = verify({"de": [item, other]}, reuse=True, decoy_share=0).task
    assert [unit.label for unit in task.units.order_by("position")] == ["", "de"]
    items = posts(2)
    say(verify({"nl": items}, name="dutch", decoy_share=0).task, ann, ["nl", "not-nl"])
    task = verify({"de": items}, name="german", reuse=True, decoy_share=0).task
    assert [(unit.stage, unit.label) for unit in task.units.order_by("position")] == [
        (stages.LABELLED, "not-de"),
        (stages.QUEUED, ""),
    ]


def test_a_post_with_the_text_of_one_that_was_labelled_has_its_label(make_task, ann, verify):
    twice = {"votes": GERMAN, "text": LONG.format("that occurs twice")}
    uniform = make_task([{**twice, "key": "a"}, {**twice, "key": "b"}], name="uniform")
    say(uniform, ann, ["de"])
    copy = uniform.units.get(stage=stages.COPIED)
    unit = verify({"de": [copy.item]}, reuse=True).task.units.get()
    assert (unit.stage, unit.label, unit.reused_from) == (stages.LABELLED, "de", copy.copy_of)


def test_a_label_that_was_itself_reused_is_taken_from_where_people_gave_it(labelled, verify):
    uniform = labelled([(GERMAN, "de")])
    item = uniform.units.get().item
    for name in ("first", "second"):
        unit = verify({"de": [item]}, name=name, reuse=True).task.units.get()
        assert unit.reused_from.task == uniform


def test_undefined_is_reused_for_what_it_meant_to_who_had_a_list_and_not_where_an_adjudicator_wrote_a_reason(
    make_task, person, ada, verify
):
    lea = person("lea", "de en nl")
    for number, (listed, answer, label) in enumerate(
        (
            (LABELS, Answer("und", "several"), "und"),
            (LABELS, Answer("und"), "und"),
            (LABELS, Answer("und", "unlisted", "Swahili"), "not-de"),
            # It may be German: readers could not say so.
            (["en", "nl"], Answer("und", "unlisted", "German"), ""),
            (["en", "nl"], Answer("und"), ""),
            (LABELS, None, ""),  # decided by an adjudicator
        )
    ):
        uniform = make_task([GERMAN], name=f"uniform{number}", labels=listed, rounds=1)
        unit = uniform.units.get()
        say(uniform, lea, [answer])
        if answer is None:
            settle(ada, unit.pk, Answer("und", "it is Swahili"))
        task = verify({"de": [unit.item]}, name=f"verify{number}", reuse=True, decoy_share=0).task
        assert task.units.get().label == label, (listed, answer)


def test_which_posts_are_decoys_and_where_they_stand_is_verified(labelled, posts, verify, ann, tmp_path):
    labelled([(DUTCH, "nl")] * 12)
    task = verify({"de": posts(20)}, decoy_share=0.2).task
    with_manifest()
    while leases := take_sheet(ann, task):
        judge_sheet(ann, task, {lease.pk: Answer("de") for lease in leases})
    lines = tell(task, tmp_path / "gold")
    assert [line["lot"] for line in lines] == ["decoy", "decoy place", "outcome"]
    assert len(lines[1]["frame"]) == 4
    status, report = verified(tmp_path / "gold")
    assert (status, of_lots(report)) == (0, {"decoy": (12, 0), "decoy place": (4, 0), "outcome": (1, 0)})

    def elsewhere(lines):
        place = lines[1]["drawn"]
        place[0] += -1 if place[0] else 1

    rewrite(tmp_path / "gold", "lots.jsonl", elsewhere)
    status, report = verified(tmp_path / "gold")
    # The digest fixed at the close does not match either.
    assert (status, of_lots(report)) == (1, {"decoy": (12, 0), "decoy place": (4, 1), "outcome": (1, 1)})
    assert report["lots"][1]["first"] == lines[1]["frame"][0]
