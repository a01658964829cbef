"""Opening a task in which two systems are compared: how their files meet the corpus, and what is refused."""

import gzip
import json
import unicodedata
from collections import Counter

import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from annotate.core import stages
from annotate.models import Comparison, Task
from tests.annotate.preferring.comparing import CORPUS, open_comparison, records, write_corpus, write_system

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def open_task(*files, **options):
    how = {"corpus": CORPUS, "kind": "better_replies", "seed": "1", "verbosity": 0}
    call_command("open_task", "talk", systems=[str(file) for file in files], **(how | options))
    return Task.objects.get(name="talk")


@pytest.fixture
def talk(tmp_path):
    """The folder of a corpus of six messages, and its records."""
    rows = records(6)
    write_corpus(tmp_path, rows)
    return tmp_path, rows


def told(capsys):
    found = capsys.readouterr()
    return found.out + found.err


def test_each_message_is_a_comparison_of_the_replies_that_both_systems_suggest_for_it(talk):
    folder, rows = talk
    task = open_task(write_system(folder, "mt5", rows), write_system(folder, "bert", rows))
    assert (task.labels, task.redundancy, task.on_conflict) == (["bert", "mt5", "tie"], 3, "DISCARDED")
    assert task.units.queued().count() == 6
    for unit in task.units.select_related("comparison", "item"):
        found, key = unit.comparison, unit.item.key
        assert (found.system_a, found.replies_a) == ("bert", [f"Pear {key} {place}" for place in "xyz"])
        assert (found.system_b, found.replies_b) == ("mt5", [f"Plum {key} {place}" for place in "xyz"])


def test_lines_in_another_order_and_with_other_white_space_meet_their_records(tmp_path, capsys):
    rows = [{"id": "1", "language": "en", "message": "Two\nlines\tand a tab ", "reply": "a\r\nb"}, *records(2)]
    write_corpus(tmp_path, rows)
    flat = [
        {**row, "message": " ".join(row["message"].split()), "reply": " ".join(row["reply"].split())} for row in rows
    ]
    task = open_task(write_system(tmp_path, "mt5", flat[::-1]), write_system(tmp_path, "bert", flat))
    assert task.units.count() == 3
    assert "Note:" not in told(capsys)


def test_the_reference_tells_records_of_one_message_apart_and_without_one_the_message_does(tmp_path):
    rows = [{"id": f"{n}", "language": "en", "message": "Hello", "reply": f"reply {n}"} for n in range(2)]
    write_corpus(tmp_path, rows)
    bare = tmp_path / "bert.tsv"
    bare.write_text("Hello\t\tHi there\n", encoding="utf-8")
    task = open_task(write_system(tmp_path, "mt5", rows), bare)
    found = {unit.item.key: unit.comparison for unit in task.units.select_related("item", "comparison")}
    assert {key: (of.replies_a, of.replies_b[0]) for key, of in found.items()} == {
        "0": (["Hi there"], "Plum 0 x"),
        "1": (["Hi there"], "Plum 1 x"),
    }


def test_what_one_system_lacks_and_what_the_corpus_lacks_is_left_out_and_counted(talk, capsys):
    folder, rows = talk
    other = {"id": "?", "language": "en", "message": "Of another corpus", "reply": "r"}
    task = open_task(
        write_system(folder, "mt5", rows[:5], lambda row: [] if row["id"] == "en-0" else ["one", "two"]),
        write_system(folder, "bert", [*rows[2:], other, {**rows[2]}], lambda row: ["Yes"]),
    )
    assert sorted(task.units.values_list("item__key", flat=True)) == ["en-2", "en-3", "en-4"]
    said = told(capsys)
    assert (
        "Note: bert, of 6 records and 5 lines: 2 records without a reply of it, not drawn; 1 line of no message of the "
        "corpus; 5 lines with fewer than three replies." in said
    )
    assert (
        "Note: mt5, of 6 records and 4 lines: 2 records without a reply of it, not drawn; 1 line more without a "
        "reply; 4 lines with fewer than three replies." in said
    )
    parameters = task.draw.parameters["systems"]
    assert (parameters["bert"]["lacking"], parameters["bert"]["unknown"], parameters["mt5"]["none"]) == (2, 1, 1)


def test_a_message_that_is_repeated_with_other_replies_has_the_first(talk, capsys):
    folder, rows = talk
    first, second = write_system(folder, "mt5", rows), write_system(folder, "bert", rows)
    with first.open("a", encoding="utf-8") as file:
        file.write(f"{rows[0]['message']}\t{rows[0]['reply']}\tLate\n")
    task = open_task(first, second)
    assert not Comparison.objects.filter(unit__task=task, replies_b=["Late"]).exists()
    assert "1 line more for a message that has other replies before, which count" in told(capsys)


def test_equal_sets_are_ties_that_nobody_is_asked_about_in_whatever_order_they_stand(talk, person, capsys):
    folder, rows = talk
    same, turned = (
        (lambda row: ["Yes", "No", "Maybe"]),
        (lambda row: ["Maybe", "Yes", "No"][: 3 - (row["id"] == "en-0")]),
    )
    task = open_task(write_system(folder, "mt5", rows, same), write_system(folder, "bert", rows, turned))
    agreed = task.units.filter(stage=stages.AGREED)
    assert set(agreed.values_list("label", "agreed_label", "audited")) == {("tie", "tie", False)}
    assert sorted(agreed.values_list("item__key", flat=True)) == ["en-1", "en-2", "en-3", "en-4", "en-5"]
    assert list(task.units.queued().values_list("item__key", flat=True)) == ["en-0"]
    assert "1 comparison queued, each for 3 people, 0 copies of others, and 5 are ties" in told(capsys)


def test_what_looks_the_same_to_a_reader_is_asked_once(tmp_path):
    rows = [{"id": f"{n}", "language": "en", "message": "Hello", "reply": f"reply {n}"} for n in range(3)]
    write_corpus(tmp_path, rows)
    said = lambda row: ["Hi", "Hello", "Hey" if row["id"] != "2" else "Who is this?"]  # noqa: E731
    task = open_task(
        write_system(tmp_path, "mt5", rows, said), write_system(tmp_path, "bert", rows, lambda row: ["Bye"])
    )
    assert Counter(task.units.values_list("stage", flat=True)) == {stages.QUEUED: 2, stages.COPIED: 1}


def test_of_three_systems_each_two_are_compared_on_each_message(talk, capsys):
    folder, rows = talk
    task = open_task(*(write_system(folder, name, rows) for name in ("seq2seq", "mt5", "bert")), size=4)
    assert task.labels == ["bert", "mt5", "seq2seq", "tie"]
    pairs = Counter(Comparison.objects.values_list("system_a", "system_b"))
    assert pairs == {("bert", "mt5"): 4, ("bert", "seq2seq"): 4, ("mt5", "seq2seq"): 4}
    assert set(Counter(task.units.values_list("item", flat=True)).values()) == {3}
    # The order in which they are handed out does not tell which pair is asked about.
    of_three = [
        tuple(task.units.order_by("position").values_list("pair", flat=True)[n : n + 3]) for n in range(0, 12, 3)
    ]
    assert of_three != [(1, 2, 3)] * 4
    assert "4 messages drawn (en 4), and bert and mt5 and seq2seq compared on each; 12 comparisons" in told(capsys)


def test_the_size_is_of_each_language_and_a_larger_draw_holds_the_smaller(tmp_path):
    small = open_comparison(tmp_path, number=9, languages=("en", "ar"), size=3, name="small")
    large = open_comparison(tmp_path, number=9, languages=("en", "ar"), size=6, name="large")
    keys = [set(task.units.values_list("item__key", flat=True)) for task in (small, large)]
    assert keys[0] < keys[1]
    assert len(keys[0]) == 6
    assert len(keys[1]) == 12
    assert small.languages == ["ar", "en"]


def test_the_size_is_of_different_messages_which_are_counted_on_card_and_manifest(tmp_path, capsys):
    """Six messages, of which number n has n + 1 records; every second record has other replies."""
    rows = [
        {"id": f"{n}-{m}", "language": "en", "message": f"Message {n}", "reply": f"reply {m}"}
        for n in range(6)
        for m in range(n + 1)
    ]
    write_corpus(tmp_path, rows)
    said = lambda row: ["Hi", f"number {int(row['id'][-1]) % 2}"]  # noqa: E731
    systems = [write_system(tmp_path, "mt5", rows, said), write_system(tmp_path, "bert", rows, lambda row: ["Bye"])]
    task = open_task(*systems, size=4)
    drawn = {key.split("-")[0] for key in task.units.values_list("item__key", flat=True)}
    assert len(drawn) == 4
    records = sum(int(number) + 1 for number in drawn)
    comparisons = sum(1 if number == "0" else 2 for number in drawn)
    assert (task.units.count(), task.units.filter(copy_of=None).count()) == (records, comparisons)
    assert "4 messages drawn (en 4)" in told(capsys)
    draw = task.draws.get()
    assert (draw.asked, draw.size, draw.frame_size, draw.chance) == (4, records, 21, 4 / 6)
    call_command("export_gold", task.name, out=str(tmp_path / "set"))
    [path] = (tmp_path / "set").glob("manifest*.json")
    manifest = json.loads(path.read_text())
    counted = {name: manifest["systems"][name] for name in ("messages", "comparisons", "copies")}
    assert counted == {"messages": 4, "comparisons": comparisons, "copies": records - comparisons}
    [path] = (tmp_path / "set").glob("README*.md")
    card = path.read_text()
    assert f"{comparisons} comparisons on 4 messages of the corpus `talk`" in card


def test_a_size_above_the_number_of_messages_is_told_with_it(tmp_path, capsys):
    rows = [{"id": f"{n}", "language": "en", "message": f"Message {n % 2}", "reply": f"reply {n}"} for n in range(6)]
    write_corpus(tmp_path, rows)
    open_task(write_system(tmp_path, "mt5", rows), write_system(tmp_path, "bert", rows), size=3)
    assert "in en there are only 2 messages for which all systems suggest a reply; 3 were asked for" in told(capsys)


def test_the_file_of_a_language_may_have_its_published_code(tmp_path):
    rows = [{"id": "1", "language": "zh-CN", "message": "你好吗", "reply": "很好"}]
    write_corpus(tmp_path, rows)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "zh_model_responses.txt").write_text(f"你好吗\t很好\t好 {name}\n", encoding="utf-8")
    assert open_task(tmp_path / "a", tmp_path / "b").units.count() == 1


def test_a_folder_with_a_file_for_each_language_is_a_system_too(tmp_path):
    rows = [
        {"id": f"{code}-{n}", "language": code, "message": f"OK {n}", "reply": "1"}
        for code in ("de", "en")
        for n in (1, 2)
    ]
    write_corpus(tmp_path, rows)
    folder = tmp_path / "mbert"
    folder.mkdir()
    for code in ("de", "en"):
        lines = [f"OK {n}\t1\tHello in {code}\n" for n in (1, 2)]
        (folder / f"{code}_model_responses.txt").write_text("".join(lines), encoding="utf-8")
    task = open_task(folder, f"xlmr={write_system(tmp_path, 'bert', rows)}")
    assert task.labels == ["mbert", "xlmr", "tie"]
    found = task.units.values_list("item__language", "comparison__replies_a")
    assert {(code, *replies) for code, replies in found} == {("de", "Hello in de"), ("en", "Hello in en")}
    assert list(task.draw.parameters["systems"]["mbert"]["files"]) == [
        "de_model_responses.txt",
        "en_model_responses.txt",
    ]


def test_a_packed_file_is_read_and_its_system_called_like_the_file_that_is_in_it(talk, capsys):
    folder, rows = talk
    plain, other = write_system(folder, "mt5", rows), write_system(folder, "bert", rows[:2])
    packed = plain.with_name("mt5.tsv.gz")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert open_task(packed, other, size=5, redundancy=1).labels == ["bert", "mt5", "tie"]
    said = told(capsys)
    assert "2 comparisons queued, each for 1 person, 0 copies of others" in said
    assert "Note: in en there are only 2 messages for which all systems suggest a reply; 5 were asked for." in said
    Task.objects.all().update(name="other")
    cut = plain.with_name("cut.tsv.gz")
    cut.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(CommandError, match=r"cut\.tsv\.gz is cut off or damaged"):
        open_task(cut, other)


def test_of_one_message_one_copy_and_one_tie_is_told_in_the_singular(tmp_path, capsys):
    rows = [{"id": f"{n}", "language": "en", "message": "Hello", "reply": f"reply {n}"} for n in range(2)]
    write_corpus(tmp_path, rows)
    said = lambda row: ["Hi"]  # noqa: E731
    task = open_task(
        write_system(tmp_path, "mt5", rows, said), write_system(tmp_path, "bert", rows, lambda row: ["Bye"])
    )
    assert task.units.count() == 2
    assert "1 comparison queued, each for 3 people, 1 copy of another (1 waits too), and 0 are ties" in told(capsys)


def refused(*files, **options):
    with pytest.raises(CommandError) as error:
        open_task(*files, **options)
    assert not Task.objects.exists()
    return str(error.value)


def test_one_system_alone_or_two_of_one_name_are_refused(talk):
    folder, rows = talk
    path = write_system(folder, "mt5", rows)
    assert refused(path) == "--systems has one system, and there is nothing to compare; name two or more."
    assert refused(path, path) == "--systems has two called mt5; write another name before the file, as NAME=FILE."
    assert refused() == "--systems is needed to open a task by the systems design."


@pytest.mark.parametrize("name", ["tie", "first", "none", "a b"])
def test_a_name_that_no_system_can_have_is_refused(talk, name):
    folder, rows = talk
    path = write_system(folder, "mt5", rows)
    said = refused(f"{name}={path}", path)
    assert said.startswith(f"--systems {name}={path}: ")
    assert said.endswith("Write it before the file, as NAME=FILE.")


def test_files_of_another_corpus_are_refused_with_the_numbers(talk):
    folder, rows = talk
    others = [{**row, "message": f"{row['message']}!"} for row in rows]
    said = refused(write_system(folder, "mt5", others), write_system(folder, "bert", rows))
    assert said == (
        "There is no message of corpus talk for which all systems suggest a reply: of its 6 there are replies of bert "
        "for 6, mt5 for 0. Name files of this corpus, with its messages as they were exported."
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"Hello\n", "line 1: this is no prediction"),
        (b"Hello\tHi\t1\t2\t3\nHello\tHi\t1\t2\t3\t4\n", "line 2: this is no prediction"),
        (b"Hello\tHi\t1\n\nHello\n", "line 3: this is no prediction"),
        (b"\tHi\t1\n", "line 1: this is no prediction"),
        (b"Hello\tHi\t1\n\xff\tHi\t1\n", "line 2: The row is not UTF-8"),
        (b"Hello\tHi\t1\x00\n", "line 1: The row holds a NUL character"),
    ],
)
def test_a_line_that_is_no_prediction_is_refused_with_its_number(talk, content, said):
    folder, rows = talk
    broken = folder / "broken.tsv"
    broken.write_bytes(content)
    assert f"{broken}, {said}" in refused(broken, write_system(folder, "mt5", rows))


def test_a_file_that_is_not_there_and_a_folder_of_other_files_are_refused(talk):
    folder, rows = talk
    path = write_system(folder, "mt5", rows)
    assert refused(folder / "none.tsv", f"b={path}").startswith(f"--systems {folder / 'none.tsv'}: No system can be")
    assert refused(f"a={folder / 'no.tsv'}", path).startswith(f"There is no file or folder {folder / 'no.tsv'};")
    (folder / "empty").mkdir()
    assert "has no file such as en_model_responses.txt" in refused(folder / "empty", path)


def test_a_language_without_a_message_to_ask_about_is_refused_if_it_is_named(tmp_path):
    rows = records(3, ("en", "ar"))
    write_corpus(tmp_path, rows)
    files = write_system(tmp_path, "mt5", rows), write_system(tmp_path, "bert", rows[:3])
    assert refused(*files, languages="en ar") == (
        "There is no message in ar for which all systems suggest a reply; leave it out of --languages."
    )
    assert open_task(*files).languages == ["en"]


def test_systems_are_no_option_of_other_kinds_nor_is_another_design_one_of_this(talk):
    folder, rows = talk
    path = str(write_system(folder, "mt5", rows))
    with pytest.raises(CommandError, match="--systems: not an option of topic tasks"):
        call_command("open_task", "x", corpus=CORPUS, kind="topic", seed="1", labels="a b", systems=[path])
    with pytest.raises(CommandError, match="better_replies tasks are not drawn by the records design"):
        call_command("open_task", "x", corpus=CORPUS, kind="better_replies", seed="1", design="records")


def test_a_corpus_without_the_reference_is_refused_with_what_it_has(tmp_path):
    rows = records(2)
    (tmp_path / "bare.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    call_command(
        "import_corpus", CORPUS, str(tmp_path / "bare.jsonl"), fields="message", licence="CC0-1.0", verbosity=0
    )
    files = write_system(tmp_path, "mt5", rows), write_system(tmp_path, "bert", rows)
    assert refused(*files).startswith(
        "A better_replies task needs the fields message, reply; the records of corpus talk have message, and no reply."
    )


def test_what_was_judged_elsewhere_is_not_taken_in_since_no_side_is_known_of_it(talk):
    folder, rows = talk
    open_task(write_system(folder, "mt5", rows), write_system(folder, "bert", rows))
    file = folder / "judgments.tsv"
    file.write_text("task\tworker\tlabel\nen-1\tw\tmt5\n", encoding="utf-8")
    with pytest.raises(CommandError, match="no file says which of them stood first; let people answer it"):
        call_command("import_judgments", "talk", str(file))


def test_a_system_whose_file_has_its_accents_apart_finds_its_messages(tmp_path, capsys):
    rows = [{"id": f"{n}", "language": "en", "message": f"Café {n}?", "reply": f"À la carte {n}"} for n in range(3)]
    write_corpus(tmp_path, rows)
    apart = [{key: unicodedata.normalize("NFD", text) for key, text in row.items()} for row in rows]
    task = open_task(write_system(tmp_path, "mt5", rows), write_system(tmp_path, "bert", apart))
    assert task.units.count() == 3
    assert "Note:" not in told(capsys)
