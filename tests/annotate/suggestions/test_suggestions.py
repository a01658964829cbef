"""open_task --suggest: who sees a machine's label beside the answers, and what that changes in the set."""

import json
import random
import re
from collections import Counter
from itertools import combinations

import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.controls.suggestions import is_blind, shown_to
from annotate.core.estimation.proportions import proportion
from annotate.kinds import Answer
from annotate.kinds.options import BLIND_SHARE
from annotate.models import Judgment, Suggestion, Task
from annotate.work.answer_changes import undo
from annotate.work.judgments import judge
from annotate.work.queue import open_lease, take
from tests.annotate import attacks
from tests.annotate.evaluation.figures import figures
from tests.annotate.goldsets.set_contents import json_lines
from tests.annotate.preferences.comparing import open_comparison
from tests.annotate.told_sets import of_lots, rewrite, tell, verified

pytestmark = [pytest.mark.django_db, pytest.mark.on_sqlite]
ANN_READS = "en"
MARK = "Suggested by a machine"
LABELS = ("glad", "calm", "sad")
KIND = """title = "What is the mood?"
form = "choice"

[[layout]]
style = "passage"
fields = ["diary"]
""" + "".join(f'\n[[answers]]\ncode = "{label}"\nname = "{label.capitalize()}"\n' for label in LABELS)


def true_label(key):
    return LABELS[int(key[1:]) % 3]


def prediction(key):
    """The predictor is right on three of four records."""
    number = int(key[1:])
    return LABELS[(number + (number // 3 % 4 == 0)) % 3]


def write(path, rows, header="id\tlabel\tpurpose"):
    path.write_text("\n".join([header, *("\t".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def import_diary(folder, number=12, predictions=prediction):
    """Import records and predictions. predictions: function from the id of a record to the predicted label."""
    (folder / "moods.toml").write_text(KIND)
    rows = [{"id": f"d{n}", "language": "en", "diary": f"Dear diary, it is day {n}."} for n in range(number)]
    (folder / "diary.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    how = {"fields": "diary", "licence": "CC0-1.0", "text_may_leave": True, "source": "made", "verbosity": 0}
    call_command("import_corpus", "diary", folder / "diary.jsonl", **how)
    predict(folder, predictions, number=number)


def predict(folder, predictions, name="mine", number=12):
    path = write(folder / f"{name}.tsv", [(f"d{n}", predictions(f"d{n}")) for n in range(number)], "id\tlabel")
    call_command("import_predictions", "diary", path, name=name, version="1", verbosity=0)


def open_moods(folder, name="moods", **options):
    """Open a task on the imported records, with suggestions by default."""
    usual = {"kind": str(folder / "moods.toml"), "corpus": "diary", "seed": "1", "test_items": "0", "gold_share": "0"}
    call_command("open_task", name, **usual | {"suggest": ["mine"]} | options, verbosity=0)
    return Task.objects.get(name=name)


def answer_all(task, people, follow, seed="1", accuracy=0.8):
    """Let people answer everything in turn. They follow a suggestion with the probability `follow`."""
    rng, working = random.Random(seed), list(people)
    while working:
        for person in list(working):
            lease = take(person, task)
            if lease is None:
                working.remove(person)
                continue
            key = lease.unit.item.key
            label = true_label(key) if rng.random() < accuracy else rng.choice(LABELS)
            suggestions = shown_to(person, lease.unit)
            if suggestions and rng.random() < follow:
                label = suggestions[0]
            judge(person, lease.pk, Answer(label), active_seconds=0.01)


@pytest.fixture
def diary(tmp_path, db):
    import_diary(tmp_path, 40)
    return tmp_path


def marked(html):
    """Return the values of the buttons that are marked as suggested."""
    buttons = re.findall(r'<button name="answer" value="(\w+)".*?</button>', html, re.DOTALL)
    values = re.findall(rf'<button name="answer" value="(\w+)"(?:(?!</button>).)*{MARK}', html, re.DOTALL)
    assert not buttons or tuple(buttons) == LABELS, "the order of the buttons depends on nothing"
    return values


def test_the_suggested_answer_is_marked_on_the_page_and_in_the_api_unless_the_draw_hides_it(diary, ann, as_ann):
    task, seen = open_moods(diary, blind_share="0.5"), {}
    for _ in range(12):
        page = as_ann.post("/tasks/moods/start/", headers={"HX-Request": "true"}).text
        unit = open_lease(ann, task).unit
        key, blind = unit.item.key, is_blind(ann.pseudonym, task, unit.item.key)
        expected = [] if blind else [prediction(key)]
        lease = as_ann.post("/api/v1/tasks/moods/next/").json()["lease"]
        whole = as_ann.get("/tasks/moods/").text
        assert (marked(page), marked(whole), lease["suggestions"]) == (expected, expected, expected)
        assert ("checked" in page, "aria-pressed" in page) == (False, False)
        judge(ann, lease["id"], Answer("calm"))
        again = undo(ann, task)
        assert marked(as_ann.get("/tasks/moods/").text) == expected
        judge(ann, again.pk, Answer("calm"))
        seen[key] = blind
    assert set(seen.values()) == {True, False}


def holds(hits, total, share):
    interval = proportion(hits, total)
    return interval.low <= share <= interval.high


def test_over_1000_pairs_of_person_and_document_the_share_without_suggestions_is_within_its_interval():
    people, documents = range(20), range(50)
    task = Task(secret="secret 1", kind_slug="topic", options={"blind_share": BLIND_SHARE})
    lots = [[is_blind(f"person-{person}", task, f"document-{key}") for key in documents] for person in people]
    assert holds(sum(map(sum, lots)), 1000, BLIND_SHARE)
    # No person or document is always or never blind, and people are blind independently of each other.
    for row in (*lots, *zip(*lots, strict=True)):
        assert 0 < sum(row) < len(row)
    pairs = [one and other for first, second in combinations(lots, 2) for one, other in zip(first, second, strict=True)]
    # Each draw is in 19 pairs, so the pairs are worth no more than the 1,000 draws.
    assert holds(sum(pairs) / len(pairs) * 1000, 1000, 0.2**2)
    for share, blind in ((0.0, False), (1.0, True)):
        task.blind_share = share
        assert {is_blind(f"person-{number}", task, "a") for number in range(9)} == {blind}


def test_a_hidden_suggestion_leaves_the_page_as_in_a_task_without_suggestions_and_can_be_read_nowhere(
    diary, ann, as_ann
):
    open_moods(diary, "zebra", blind_share="1")
    open_moods(diary, "quagga", suggest=())
    pages = {}
    for name in ("quagga", "zebra"):
        address = f"/tasks/{name}"
        views = [as_ann.post(f"{address}/start/", headers={"HX-Request": "true"}).text]
        views += [as_ann.get(f"{address}{page}").text for page in ("/", "/answers/")]
        lease = as_ann.post(f"/api/v1{address}/next/").json()["lease"]
        views.append(str({key: value for key, value in lease.items() if key not in ("id", "expires_at")}))
        views.append(as_ann.get(f"/api/v1{address}/").text)
        done = judge(ann, lease["id"], Answer("calm"))
        views += [as_ann.get(f"{address}/answers/{page}").text for page in ("", f"{done.pk}/")]
        views = [re.sub(r'(value=|: )"\w{64}"|\d\d:\d\d:\d\d|"\d+"|answers/\d+', "", page) for page in views]
        pages[name] = [re.sub(rf"\b{name}\b", "task", page) for page in views]
    for page, other in zip(pages["zebra"], pages["quagga"], strict=True):
        assert page.splitlines() == other.splitlines()
    assert "mine" not in "".join(pages["zebra"])


@pytest.mark.slow
def test_gold_answers_have_suggestions_and_run_the_same_statements_as_work(diary, ann):
    gold = write(diary / "gold.tsv", [(f"d{n}", LABELS[n % 3], "queue") for n in range(8)])
    task = open_moods(diary, gold=[str(gold)], gold_share="0.5", blind_share="0", redundancy="1")
    units = task.units.filter(copy_of=None)
    assert Suggestion.objects.filter(unit__in=units).count() == units.count() == 40
    way = attacks.Way("page", ann, task, labels=LABELS)
    attacks.assert_same_statements(attacks.Attacker(way, None, {"taken back": 1}).work(8), attacks.is_gold)


def test_a_task_without_suggestions_runs_no_statement_for_them(diary, ann):
    task = open_moods(diary, suggest=())
    assert "suggest" not in task.options
    assert not any(control.name == "suggestions" for controls in task.hooks.values() for control in controls)
    way = attacks.Way("page", ann, task, labels=LABELS)
    _, lease = way.take()
    assert not any("suggestion" in statement for statement in way.answer(lease, "calm").statements)


def test_a_side_is_suggested_in_a_comparison_and_the_system_stays_unnamed(tmp_path, ann, as_ann):
    open_comparison(tmp_path, name="first")
    path = write(tmp_path / "judge.tsv", [(f"en-{n}", "bert") for n in range(4)], "id\tlabel")
    call_command("import_predictions", "talk", path, name="judge", version="1", verbosity=0)
    task = open_comparison(tmp_path, name="second", suggest=["judge"], blind_share="0")
    sides = set()
    for _ in range(4):
        page = as_ann.post("/tasks/second/start/", headers={"HX-Request": "true"}).text
        [side] = re.findall(rf'value="(\w+)"(?:(?!</button>).)*{MARK}', page, re.DOTALL)
        lease = as_ann.post("/api/v1/tasks/second/next/").json()["lease"]
        assert lease["suggestions"] == [side]
        assert "Pear" in lease["sets"][("first", "second").index(side)][0], "bert's replies contain Pear"
        sides.add(side)
        assert "bert" not in page
        judge(ann, lease["id"], Answer("tie"))
    assert sides <= {"first", "second"}
    assert task.suggest == ["judge@1"]


def test_suggestions_that_would_bias_or_reveal_something_are_refused(diary):
    predict(diary, lambda key: "merry", "merry", 40)
    predict(diary, true_label, "other", 40)
    for options, sentence in (
        ({"suggest": ["mine", "mine"]}, "--suggest contains mine twice."),
        ({"suggest": ["mine", "mine@1"]}, "Only tasks about concepts combine several predictors."),
        ({"suggest": ["unknown"]}, "Corpus diary has no predictor 'unknown'"),
        ({"voters": "mine@1 other@1"}, "Machines vote in this task"),
        ({"suggest": (), "blind_share": "0.5"}, "--blind-share has no effect without suggestions."),
        ({"suggest": ["merry"]}, "merry@1 suggests 'merry' for document d"),
    ):
        with pytest.raises(CommandError) as refused:
            open_moods(diary, **options)
        assert str(refused.value).startswith(sentence)
    assert not Task.objects.exists()


NUMBER = 60


@pytest.fixture
def answered(tmp_path, person):
    """Return a function that opens a task, lets four people answer it and exports it."""
    import_diary(tmp_path, NUMBER)
    people = [person(f"p{number}", "en", pseudonym=f"person-{number}") for number in range(4)]

    def make(name="moods", follow=0.7, **options):
        task = open_moods(tmp_path, name, **{"blind_share": "0.4", "redundancy": "3"} | options)
        type(task).objects.filter(pk=task.pk).update(secret="5ecret")
        task.refresh_from_db()
        answer_all(task, people, follow)
        folder = tmp_path / name
        tell(task, folder)
        return task, folder

    return make


def evaluated(capsys, predictions, folder):
    capsys.readouterr()
    call_command("evaluate", str(predictions), "--gold", str(folder), "--json")
    return json.loads(capsys.readouterr().out)


def by_hand(rows):
    """Return the weighted accuracy of the suggester on the blind answers, and the number of rows."""
    hits, total, number = 0.0, 0.0, 0
    for row in rows:
        answers = [judgment for judgment in row["judgments"] if judgment["kind"] == "answer"]
        blind = [judgment["label"] for judgment in answers if not judgment["suggestions_shown"]]
        if not blind:
            continue
        [(label, count), *_] = Counter(blind).most_common()
        if 2 * count <= len(blind):  # a tie: the draw decides
            return None
        weight = 1 / (1 - 0.6 ** len(answers))
        hits, total, number = hits + weight * (label == row["suggested"]), total + weight, number + 1
    return hits / total, number


def test_each_answer_has_its_arm_and_the_card_says_what_suggestions_changed(answered):
    task, folder = answered()
    rows = json_lines(folder / "gold.jsonl") + json_lines(folder / "left_out.jsonl")
    assert len(rows) == NUMBER
    for row in rows:
        assert row["suggested"] == prediction(row["id"])
        for judgment in row["judgments"]:
            assert judgment["suggestions_shown"] is not is_blind(judgment["annotator"], task, row["id"])
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["task"]["suggest"], manifest["task"]["blind_share"]) == (["mine@1"], 0.4)
    effect = manifest["suggestions"]
    assert effect["shown"]["answers"] + effect["blind"]["answers"] == Judgment.objects.count() == 3 * NUMBER
    assert 0 < effect["score"]["low"] < effect["score"]["value"]
    assert {label["label"] for label in effect["labels"]} == {"glad", "calm", "sad"}
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "## Effect of suggestions" in card
    assert "| share that equals the suggestion |" in card
    assert "| label Glad |" in card
    status, outcome = verified(folder)
    assert (status, of_lots(outcome)["blind"]) == (0, (3 * NUMBER, 0))

    def change(rows):
        rows[0]["judgments"][0]["suggestions_shown"] ^= True

    rewrite(folder, "gold.jsonl", change)
    status, outcome = verified(folder)
    assert (status, of_lots(outcome)["blind"]) == (1, (3 * NUMBER, 1))


def test_a_task_without_suggestions_has_nothing_of_them_in_its_set(answered):
    _, folder = answered(suggest=(), blind_share=None)
    text = "".join((folder / name).read_text(encoding="utf-8") for name in ("manifest.json", "README.md", "gold.jsonl"))
    assert "suggest" not in text
    assert "blind" not in json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["task"]


def test_the_suggester_is_measured_on_blind_answers_and_others_get_a_warning(answered, tmp_path, capsys):
    _, folder = answered(redundancy="1", blind_share="0.4")
    report = evaluated(capsys, "mine@1", folder)
    rows = json_lines(folder / "gold.jsonl")
    accuracy, number = by_hand(rows)
    estimate = figures(report, "accuracy")
    assert (estimate["value"], estimate["units"]) == (pytest.approx(accuracy), number)
    assert 0 < number < NUMBER
    assert report["warnings"][0].startswith("mine@1 suggested labels to the people who made this set")
    naive = sum(row["label"] == row["suggested"] for row in rows) / len(rows)
    assert naive > accuracy + 0.1, "measured on all labels it would be better"
    # A file with the same labels is recognized. One with other labels is measured on all answers.
    again = evaluated(capsys, tmp_path / "mine.tsv", folder)
    assert again["rows"] == report["rows"]
    predict(tmp_path, true_label, "other", NUMBER)
    other = evaluated(capsys, "other@1", folder)
    assert figures(other, "accuracy")["units"] == NUMBER
    assert other["warnings"][0].startswith("People saw labels by mine@1 while they answered")


def test_items_on_which_people_disagreed_count_if_somebody_was_blind(answered, tmp_path, capsys):
    _, folder = answered(follow=0.2, redundancy="3")
    left_out = json_lines(folder / "left_out.jsonl")
    blind = [
        row["id"]
        for row in [*json_lines(folder / "gold.jsonl"), *left_out]
        if any(judgment["suggestions_shown"] is False for judgment in row["judgments"])
    ]
    assert {row["id"] for row in left_out} & set(blind)
    report = evaluated(capsys, "mine@1", folder)
    estimate = figures(report, "accuracy")
    assert estimate["units"] == len(blind)
    assert not any("have no label" in warning for warning in report["warnings"])


def test_without_blind_answers_the_suggester_is_not_measured(answered, capsys):
    _, folder = answered(blind_share="0")
    with pytest.raises(CommandError, match="nobody has answered without seeing them"):
        evaluated(capsys, "mine@1", folder)
