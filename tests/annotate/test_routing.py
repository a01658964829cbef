from annotate.core import stages
from annotate.models import LanguageRoute, Transition
from annotate.work.judging import skip
from annotate.work.queue import take
from annotate.work.routes import Routes
from annotate.work.routing import reroute
from tests.annotate.conftest import AGREED, DISPUTED


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
    assert Routes.load(task).labels_of("hr") == ["bs", "hr", "sr"]
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
    assert reroute(task) == {"queues": 0, "adjudication": 0}
    ann.user.is_active = False
    ann.user.save()
    assert reroute(task) == {"queues": 1, "adjudication": 0}
    unit = the_unit(task)
    assert (unit.language, unit.round) == ("en", 1)
    assert history(unit)[-1] == ("rerouted", "QUEUED", 1, "en")


def test_units_that_nobody_at_all_can_read_are_sent_to_adjudication_by_rerouting(make_task):
    task = make_task([DISPUTED])
    assert reroute(task) == {"queues": 0, "adjudication": 1}


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
