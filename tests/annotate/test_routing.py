import pytest

from annotate.controls import checks
from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import LanguageRoute, Transition
from annotate.quality import answer_models
from annotate.work.answer_changes import change, undo
from annotate.work.closure import close
from annotate.work.interventions import void
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from annotate.work.routes import Routes
from annotate.work.routing import reroute
from tests.annotate.conftest import AGREED, DISPUTED

pytestmark = pytest.mark.both_databases


def the_unit(task):
    return task.units.get()


def history(unit):
    return [(t.event, t.to_stage, t.round, t.language) for t in unit.transitions.all()]


def test_posts_on_which_the_detectors_agree_are_labelled_without_people(make_task):
    unit = the_unit(make_task([AGREED]))
    assert (unit.stage, unit.label) == (stages.AGREED, "de")
    assert history(unit) == [("agreed", "AGREED", 0, "")]


def test_disputed_posts_wait_for_readers_of_the_most_likely_language(make_task):
    unit = the_unit(make_task([DISPUTED]))
    assert (unit.stage, unit.language, unit.round, unit.label) == (stages.QUEUED, "de", 1, "")
    assert unit.candidates == ["de", "en"]


def test_agreement_on_a_short_text_counts_for_nothing(make_task):
    assert the_unit(make_task([{"votes": AGREED, "letters": 19}])).stage == stages.QUEUED


def test_agreement_on_a_language_of_the_never_agree_list_counts_for_nothing(make_task):
    assert the_unit(make_task([AGREED], never_agree=["de"])).stage == stages.QUEUED


def test_agreement_on_a_code_coarser_than_the_labels_goes_to_the_readers_of_either(make_task, person):
    task = make_task([("zh", "zh", "zh")])
    assert (the_unit(task).stage, the_unit(task).language) == (stages.QUEUED, "zh")
    assert take(person("mei", "zh-TW"), task).unit == the_unit(task)


def test_agreement_on_a_language_that_is_not_on_the_list_goes_to_people(make_task):
    unit = the_unit(make_task([("la", "la en", "la")]))
    assert (unit.stage, unit.language, unit.candidates) == (stages.QUEUED, "en", ["en"])


def test_a_post_in_which_no_detector_sees_a_language_goes_where_the_route_of_und_says(make_task):
    unit = the_unit(make_task([{"votes": ("", "", ""), "letters": 0}]))
    assert (unit.stage, unit.language) == (stages.QUEUED, "en")


def test_identical_texts_are_judged_once(make_task):
    task = make_task([{"votes": DISPUTED, "text": "same"}, {"votes": DISPUTED, "text": "same"}])
    first, second = task.units.order_by("position")
    assert (first.stage, second.stage, second.copy_of) == (stages.QUEUED, stages.COPIED, first)


def test_what_the_first_readers_skip_goes_to_those_of_the_second_language_then_to_adjudication(make_task, person):
    task = make_task([DISPUTED])
    ann, ben = person("ann", "de"), person("ben", "en")
    assert take(ben, task) is None
    skip(ann, take(ann, task).pk)
    assert history(the_unit(task))[-1] == ("skipped", "QUEUED", 2, "en")
    skip(ben, take(ben, task).pk)
    assert history(the_unit(task))[-1] == ("exhausted", "ADJUDICATION", 2, "en")


def test_a_language_that_nobody_reads_is_passed_over(make_task, person):
    task = make_task([("de", "fr", "en")])
    first = the_unit(task).candidates
    ann = person("ann", first[0])
    person("ben", first[2])
    skip(ann, take(ann, task).pk)
    assert the_unit(task).language == first[2]


def test_nobody_is_asked_twice_in_another_of_their_languages(make_task, person):
    task = make_task([DISPUTED])
    both = person("both", "de en")
    skip(both, take(both, task).pk)
    assert the_unit(task).stage == stages.ADJUDICATION


def test_rounds_end_where_the_task_says(make_task, person):
    task = make_task([DISPUTED], rounds=1)
    ann = person("ann", "de")
    person("ben", "en")
    skip(ann, take(ann, task).pk)
    assert the_unit(task).stage == stages.ADJUDICATION


def test_more_than_one_skip_may_be_asked_for_before_a_round_ends(make_task, person):
    task = make_task([DISPUTED], skip_limit=2)
    ann, bea = person("ann", "de"), person("bea", "de")
    person("ben", "en")
    skip(ann, take(ann, task).pk)
    assert the_unit(task).language == "de"
    skip(bea, take(bea, task).pk)
    assert the_unit(task).language == "en"


def test_a_candidate_that_no_detector_names_can_follow_one_that_they_do(make_task, person):
    task = make_task([("hi en", "en hi", "hi")])
    assert the_unit(task).candidates == ["hi", "hi-Latn", "en"]


def test_languages_that_share_a_queue_share_its_readers(make_task, person):
    task = make_task([("bs", "hr", "sr")], labels=["bs", "hr", "sr", "en"])
    assert the_unit(task).language == "hr"
    assert Routes.load(task).labels["hr"] == ["bs", "hr", "sr"]
    assert take(person("goran", "sr"), task)


def test_a_route_can_be_changed_while_people_work(make_task, person):
    LanguageRoute.objects.create(language="fr", queue="de")
    task = make_task([("fr", "fr en", "en")])
    assert the_unit(task).language == "de"
    assert take(person("ann", "fr"), task).unit == the_unit(task)


def test_who_reads_a_language_less_well_than_the_task_asks_is_not_served_it(make_task, person):
    task = make_task([DISPUTED], least_level=4)
    assert take(person("ann", "de:3"), task) is None
    assert take(person("bea", "de:4"), task) is not None


def test_units_of_a_queue_whose_readers_are_gone_are_sent_on_without_using_up_a_round(make_task, person):
    task = make_task([DISPUTED])
    ann = person("ann", "de")
    person("ben", "en")
    assert reroute(task) == {"queues": 0, "adjudication": 0, "decided": 0}
    ann.user.is_active = False
    ann.user.save()
    assert reroute(task) == {"queues": 1, "adjudication": 0, "decided": 0}
    unit = the_unit(task)
    assert (unit.language, unit.round) == ("en", 1)
    assert history(unit)[-1] == ("rerouted", "QUEUED", 1, "en")


def test_units_that_nobody_at_all_can_read_are_sent_to_adjudication_by_rerouting(make_task):
    task = make_task([DISPUTED])
    assert reroute(task) == {"queues": 0, "adjudication": 1, "decided": 0}


def test_every_unit_has_exactly_the_transitions_that_lead_to_its_stage(make_task, person):
    task = make_task([DISPUTED, AGREED, DISPUTED])
    ann = person("ann", "de")
    skip(ann, take(ann, task).pk)
    for unit in task.units.all():
        stage = stages.NEW
        for transition in unit.transitions.order_by("pk"):
            assert transition.from_stage == stage
            stage = transition.to_stage
        assert stage == unit.stage
    assert Transition.objects.filter(unit__task=task).count() == 4


# --- an answer in a language that is not the queue's is one person's word

GERMAN, ENGLISH, FRENCH, UNDEFINED = map(Answer, ("de", "en", "fr", "und"))


def say(annotator, task, answer):
    judge(annotator, take(annotator, task).pk, answer)
    return the_unit(task)


def where(unit):
    return unit.stage, unit.language, unit.label


def test_a_language_that_one_reader_names_in_another_queue_is_confirmed_by_a_reader_of_it(make_task, person):
    task, ann, fay = make_task([DISPUTED]), person("ann", "de"), person("fay", "fr")
    assert where(say(ann, task, FRENCH)) == (stages.QUEUED, "fr", "")
    assert history(the_unit(task))[-1] == ("named", "QUEUED", 2, "fr")
    assert take(ann, task) is None
    assert where(say(fay, task, FRENCH)) == (stages.LABELLED, "fr", "fr")


def test_where_the_reader_of_the_language_named_answers_otherwise_an_adjudicator_decides(make_task, person):
    for number, other in enumerate((GERMAN, ENGLISH, UNDEFINED)):
        task = make_task([DISPUTED], name=f"t{number}")
        ann, fay = person(f"ann{number}", "de"), person(f"fay{number}", "fr")
        say(ann, task, FRENCH)
        assert where(say(fay, task, other)) == (stages.ADJUDICATION, "fr", "")


def test_what_the_reader_of_the_language_named_skips_goes_to_another_of_them_and_then_to_an_adjudicator(
    make_task, person
):
    task = make_task([DISPUTED], skip_limit=2)
    ann, fay, flo = person("ann", "de"), person("fay", "fr"), person("flo", "fr")
    person("ben", "en")
    say(ann, task, FRENCH)
    skip(fay, take(fay, task).pk)
    assert the_unit(task).language == "fr"
    skip(flo, take(flo, task).pk)
    assert where(the_unit(task)) == (stages.ADJUDICATION, "fr", "")


def test_a_language_that_nobody_else_reads_is_confirmed_by_an_adjudicator(make_task, person):
    task, both = make_task([DISPUTED]), person("both", "de fr")
    assert where(say(both, task, FRENCH)) == (stages.ADJUDICATION, "de", "")
    assert history(the_unit(task))[-1] == ("named", "ADJUDICATION", 1, "de")


def test_units_to_be_confirmed_whose_readers_are_gone_are_sent_to_adjudication_by_rerouting(make_task, person):
    task, ann, fay = make_task([DISPUTED]), person("ann", "de"), person("fay", "fr")
    person("ben", "en")
    say(ann, task, FRENCH)
    fay.user.is_active = False
    fay.user.save()
    assert reroute(task) == {"queues": 0, "adjudication": 1, "decided": 0}


def test_what_is_named_is_confirmed_although_the_rounds_are_used_up(make_task, person):
    task = make_task([DISPUTED], rounds=2)
    ann, ben, fay = person("ann", "de"), person("ben", "en"), person("fay", "fr")
    skip(ann, take(ann, task).pk)
    say(ben, task, FRENCH)
    assert where(say(fay, task, FRENCH)) == (stages.LABELLED, "fr", "fr")


def test_what_was_skipped_in_a_queue_comes_back_to_its_other_readers_where_its_language_is_named(make_task, person):
    task = make_task([DISPUTED])
    ann, ben = person("ann", "de"), person("ben", "en")
    skip(ann, take(ann, task).pk)
    bea = person("bea", "de")
    assert where(say(ben, task, GERMAN)) == (stages.QUEUED, "de", "")
    assert take(ann, task) is None
    assert where(say(bea, task, GERMAN)) == (stages.LABELLED, "de", "de")


def test_undefined_and_languages_of_the_same_queue_stay_the_word_of_their_reader(make_task, person):
    task = make_task([DISPUTED])
    person("fay", "fr")
    assert where(say(person("ann", "de"), task, UNDEFINED)) == (stages.LABELLED, "de", "und")
    task = make_task([("bs", "hr", "sr")], name="shared", labels=["bs", "hr", "sr", "en"])
    person("goran", "sr")
    assert where(say(person("hana", "hr"), task, Answer("bs"))) == (stages.LABELLED, "hr", "bs")


def test_a_language_that_two_readers_of_another_queue_name_is_confirmed(make_task, person):
    task = make_task([DISPUTED], redundancy=2)
    ann, bea = person("ann", "de"), person("bea", "de")
    person("fay", "fr")
    say(ann, task, FRENCH)
    assert where(say(bea, task, FRENCH)) == (stages.LABELLED, "de", "fr")


def test_the_only_answer_to_a_post_of_the_overlap_is_confirmed_where_it_names_another_language(make_task, person):
    task = make_task([DISPUTED], redundancy=1.999999, rounds=1)
    ann = person("ann", "de")
    fay = person("fay", "fr")
    assert where(say(ann, task, FRENCH)) == (stages.QUEUED, "fr", "")
    assert where(say(fay, task, FRENCH)) == (stages.LABELLED, "fr", "fr")


def test_what_is_confirmed_is_not_checked_and_what_is_checked_need_not_be_confirmed(make_task, person):
    task = make_task([DISPUTED], check_share=1.0)
    ann, fay = person("ann", "de"), person("fay", "fr")
    assert where(say(ann, task, FRENCH)) == (stages.QUEUED, "fr", "")
    assert where(say(fay, task, FRENCH)) == (stages.LABELLED, "fr", "fr")
    [row] = checks.report(task)["languages"]
    assert (row["alone"], row["checked"], row["waiting"]) == (0, 0, 0)
    task = make_task([DISPUTED], name="own", check_share=1.0)
    assert say(ann, task, GERMAN).stage == stages.ADJUDICATION


@pytest.mark.parametrize("recheck", [0, 1])
@pytest.mark.parametrize("second", [FRENCH, GERMAN, UNDEFINED])
def test_an_audited_post_takes_the_same_way_and_an_adjudicator_decides_it_in_the_end(
    make_task, person, second, recheck
):
    task = make_task([AGREED], audit_least=1, audit_recheck=recheck)
    ann, fay = person("ann", "de"), person("fay", "fr")
    assert where(say(ann, task, FRENCH)) == (stages.QUEUED, "fr", "")
    assert where(say(fay, task, second)) == (stages.ADJUDICATION, "fr", "")


@pytest.mark.parametrize(("leave_out", "end"), [(False, stages.ADJUDICATION), (True, stages.DISCARDED)])
def test_an_audited_post_gets_no_label_by_one_reader_when_the_task_is_closed(make_task, person, leave_out, end):
    task = make_task([AGREED], audit_least=1, audit_recheck=0)
    ann, _ = person("ann", "de"), person("fay", "fr")
    say(ann, task, FRENCH)
    close(task, leave_out=leave_out)
    assert the_unit(task).stage == end


def test_a_confirmation_can_be_taken_back_after_what_it_confirmed(make_task, person):
    task, ann, fay = make_task([DISPUTED]), person("ann", "de"), person("fay", "fr")
    named = judge(ann, take(ann, task).pk, FRENCH)
    confirmed = judge(fay, take(fay, task).pk, FRENCH)
    undo(ann, task, named.pk)
    assert the_unit(task).visited == ["de"]
    undo(fay, task, confirmed.pk)
    assert where(the_unit(task)) == (stages.QUEUED, "fr", "")
    # Nobody else's word is left to be confirmed.
    assert where(say(fay, task, FRENCH)) == (stages.ADJUDICATION, "fr", "")


def test_an_answer_that_named_another_language_can_be_taken_back(make_task, person):
    task, ann, fay = make_task([DISPUTED]), person("ann", "de"), person("fay", "fr")
    say(ann, task, FRENCH)
    lease = undo(ann, task)
    assert (*where(the_unit(task)), the_unit(task).redundancy) == (stages.QUEUED, "de", "", 1)
    assert take(fay, task) is None
    judge(ann, lease.pk, GERMAN)
    assert where(the_unit(task)) == (stages.LABELLED, "de", "de")


def test_a_skip_given_anew_sends_the_post_on_as_the_first_time_whatever_was_answered_meanwhile(make_task, person):
    task = make_task([DISPUTED], redundancy=3, skip_limit=2)
    ann, bea, fay = person("ann", "de"), person("bea", "de"), person("fay", "en")
    for number in range(3):
        person(f"other{number}", "de en")
    skip(ann, take(ann, task).pk)
    skip(bea, take(bea, task).pk)
    assert where(say(fay, task, GERMAN)) == (stages.QUEUED, "en", "")
    lease = undo(bea, task)
    assert where(the_unit(task)) == (stages.QUEUED, "de", "")
    skip(bea, lease.pk)
    assert where(the_unit(task)) == (stages.QUEUED, "en", "")


def test_an_answer_that_was_confirmed_is_taken_back_and_what_the_second_reader_said_stays(make_task, person):
    for number, (again, comes_to) in enumerate(((FRENCH, stages.LABELLED), (GERMAN, stages.ADJUDICATION))):
        task = make_task([DISPUTED], name=f"t{number}")
        ann, fay = person(f"ann{number}", "de"), person(f"fay{number}", "fr")
        say(ann, task, FRENCH)
        say(fay, task, FRENCH)
        judge(ann, undo(ann, task).pk, again)
        assert the_unit(task).stage == comes_to


def test_a_changed_answer_that_names_another_language_is_no_last_word(make_task, person):
    for number, (first, then) in enumerate(((GERMAN, FRENCH), (FRENCH, GERMAN))):
        task = make_task([DISPUTED], name=f"t{number}")
        ann = person(f"ann{number}", "de")
        person(f"fay{number}", "fr")
        say(ann, task, first)
        change(ann, task, ann.judgments.get(unit__task=task).pk, then)
        assert the_unit(task).stage == stages.ADJUDICATION


def test_where_the_answers_of_one_of_the_two_are_voided_another_reader_is_asked(make_task, person, manager):
    for number, voided in enumerate(("ann", "fay")):
        task = make_task([DISPUTED], name=f"t{number}")
        two = {"ann": person(f"ann{number}", "de"), "fay": person(f"fay{number}", "fr")}
        for one in two.values():
            say(one, task, FRENCH)
        void(two[voided], task, by=manager, reason="guessed")
        assert where(the_unit(task)) == (stages.QUEUED, "fr", "")
        assert where(say(person(f"flo{number}", "fr"), task, FRENCH)) == (stages.LABELLED, "fr", "fr")


def test_before_it_is_confirmed_a_voided_answer_leaves_the_unit_to_one_reader(make_task, person, manager):
    task, ann, fay = make_task([DISPUTED]), person("ann", "de"), person("fay", "fr")
    say(ann, task, FRENCH)
    void(ann, task, by=manager, reason="guessed")
    assert where(say(fay, task, FRENCH)) == (stages.LABELLED, "fr", "fr")


def test_how_far_people_agree_is_not_told_by_what_is_confirmed(make_task, person):
    task = make_task([DISPUTED])
    ann, fay = person("ann", "de"), person("fay", "fr")
    say(ann, task, FRENCH)
    say(fay, task, FRENCH)
    assert answer_models.answers(task) == []
