"""The number of SQL statements per request, which must not grow with the amount of work. Two of the statements begin
and end the transaction that contains the answer and the next unit.
"""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotate.kinds import KINDS
from annotate.models import Qualification
from annotate.work.queue import open_lease
from corpora.core.languages import ARTICLE_LABELS
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.hands import sent
from tests.annotate.preferences.comparing import open_comparison

pytestmark = pytest.mark.both_databases


HTMX = {"HX-Request": "true"}
# Labels with a queue each.
TWENTY = ["de", *(code for code in ARTICLE_LABELS if code not in ("bs", "de", "hr", "sr", "zh-CN", "zh-TW"))][:20]
POTS = ["1", "0"] * 6


def statements(client, task, annotator, answer):
    """Return the number of statements of an answer and the next unit in one request of the page."""
    lease = open_lease(annotator, task)
    with CaptureQueriesContext(connection) as queries:
        reply = client.post(f"/tasks/{task.name}/judge/", {"lease": lease.pk, **sent(answer)}, headers=HTMX)
    assert 'name="lease"' in reply.text
    return len(queries.captured_queries)


def at_work(client, task, annotator):
    client.force_login(annotator.user)
    assert 'name="lease"' in client.post(f"/tasks/{task.name}/start/", headers=HTMX).text


@pytest.fixture
def crowd_of(make_records_task, person, manager, client):
    """crowd_of("qa_match", ["en"], gold_share=0.25) is a task whose test a reader of these languages has passed."""

    def make(kind, languages, **options):
        labels = KINDS[kind].labels
        gold = {"queue": [*labels] * (12 // len(labels)), "test": labels}
        task = make_records_task(kind, 12, languages=languages, gold=gold, test_items=1, **options)
        ann = person("ann", " ".join(languages))
        for language in languages:
            Qualification.objects.create(
                annotator=ann, task=task, language=language, major=1, granted_by=manager, at=task.created_at
            )
        at_work(client, task, ann)
        return task, ann

    return make


@pytest.mark.parametrize(
    ("codes", "share", "number"),
    [(["de"], 0.1, 19), (TWENTY, 0.1, 19), (["de"], 0, 17)],
    ids=["a reader of one language", "a reader of twenty", "without an audit"],
)
def test_an_answer_about_a_post_takes_as_many_statements_whatever_its_reader_reads(
    make_task, person, client, codes, share, number
):
    task = make_task([DISPUTED] * 4, labels=TWENTY, audit_share=share, audit_least=2 if share else 0)
    ann = person("ann", " ".join(codes))
    at_work(client, task, ann)
    assert [statements(client, task, ann, "de") for _ in range(3)] == [number] * 3


@pytest.mark.parametrize("codes", [["de"], TWENTY], ids=len)
def test_an_answer_to_is_this_german_takes_17_to_a_post_and_to_a_decoy(make_task, person, client, codes):
    task, ann = make_task([DISPUTED] * 6, asked="de", decoys=2), person("ann", " ".join(codes))
    at_work(client, task, ann)
    taken = {}
    for _ in range(5):
        is_decoy = bool(open_lease(ann, task).unit.known_answer)
        taken.setdefault(is_decoy, set()).add(statements(client, task, ann, "not-de"))
    assert taken == {False: {17}, True: {17}}


OF_RECORDS = ["qa_match", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("ad_relevance", "web_ranking"))]


@pytest.mark.parametrize("languages", [["en"], TWENTY], ids=len)
@pytest.mark.parametrize("kind", OF_RECORDS)
def test_an_answer_about_a_record_takes_16_without_gold_answers(crowd_of, client, kind, languages):
    task, ann = crowd_of(kind, languages, gold_share=0.0)
    assert [statements(client, task, ann, task.labels[0]) for _ in range(3)] == [16] * 3


@pytest.mark.parametrize("languages", [["en"], TWENTY], ids=len)
@pytest.mark.parametrize("kind", OF_RECORDS)
def test_an_answer_takes_20_with_gold_answers_to_one_and_to_work_before_one_and_before_work(
    crowd_of, client, kind, languages
):
    task, ann = crowd_of(kind, languages, gold_share=0.34, pause_below=0.0)
    taken = {}
    for _ in range(10):
        before = open_lease(ann, task).unit.honeypot
        number = statements(client, task, ann, task.labels[0])
        taken.setdefault((before, open_lease(ann, task).unit.honeypot), set()).add(number)
    assert set(map(any, taken)) == {True, False}
    assert set.union(*taken.values()) == {20}


def test_the_answer_that_settles_a_record_takes_two_more_which_move_it_and_so_does_a_gold_answer_in_its_stead(
    crowd_of, client
):
    task, ann = crowd_of("qa_match", ["en"], gold_share=0.34, redundancy=1, pause_below=0.0)
    taken = {}
    for _ in range(8):
        hidden = open_lease(ann, task).unit.honeypot
        taken.setdefault(hidden, set()).add(statements(client, task, ann, "1"))
    assert taken == {False: {22}, True: {22}}


@pytest.mark.parametrize("label", ["de", "fr"])
def test_an_answer_takes_as_many_whether_it_is_audited_checked_or_given_second(make_task, person, client, label):
    """Where it names another language as well, which another person confirms."""
    task = make_task([AGREED, DISPUTED] * 9, audit_least=9, audit_recheck=0, check_share=0.4, audit_limit=1)
    taken = {}
    ann, fay = person("ann", "de"), person("fay", "fr")
    at_work(client, task, ann)
    for _ in range(10):
        unit = open_lease(ann, task).unit
        sort = "audited" if unit.agreed_label else "checked" if unit.recheck else "plain"
        taken.setdefault(sort, set()).add(statements(client, task, ann, label))
    if label == "fr":
        at_work(client, task, fay)
        for _ in range(3):
            taken.setdefault("second", set()).add(statements(client, task, fay, "de"))
    assert taken.keys() == {"audited", "checked", "plain", *(["second"] if label == "fr" else [])}
    numbers = set.union(*taken.values())
    assert len(numbers) == 1, taken
    assert label == "fr" or numbers == {19}


@pytest.mark.parametrize("tasks", [1, 4])
def test_the_home_page_takes_17_statements_at_most_however_many_tasks_there_are(
    make_task, make_records_task, person, client, tasks
):
    for number in range(tasks):
        if number % 2:
            gold = {"queue": POTS, "test": POTS}
            make_records_task("qa_match", 4, languages=["en", "de", "fr"], gold=gold, test_items=2, name=f"t{number}")
        else:
            make_task([DISPUTED] * 4, name=f"t{number}")
    ann = person("ann", "de en fr")
    client.force_login(ann.user)
    client.get("/docs/")  # the first request of a session reads and caches the person's preferences
    taken = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/").text.count('<article class="task') == tasks
        taken.append(len(queries.captured_queries))
    # The count of waiting units is cached, but a zero is counted again, as before a test is passed. A test reads its
    # guidelines, its qualifications and its tries. Two statements read replies and notes, and two read the person's
    # own answers by an index.
    assert taken == ([15, 10] if tasks == 1 else [17, 16])


def test_an_answer_of_two_systems_takes_20_which_one_stood_first_among_them(tmp_path, person, client):
    task, ann = open_comparison(tmp_path, number=12), person("ann", "en")
    at_work(client, task, ann)
    assert [statements(client, task, ann, side) for side in ("first", "second", "tie") * 3] == [20] * 9
