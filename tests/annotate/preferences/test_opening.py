"""Opening a task that compares two systems: how their files match the corpus, and what is refused."""

import gzip
import json
import unicodedata
from collections import Counter

import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.models import Comparison, Task
from tests.annotate.preferences.comparing import CORPUS, open_comparison, records, write_corpus, write_system

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def open_task(*files, **options):
    how = {"corpus": CORPUS, "kind": "better_replies", "seed": "1", "verbosity": 0}
    call_command("open_task", "talk", systems=[str(file) for file in files], **(how | options))
    return Task.objects.get(name="talk")


@pytest.fixture
def talk(tmp_path):
    """The folder of a corpus with six messages, and its records."""
    rows = records(6)
    write_corpus(tmp_path, rows)
    return tmp_path, rows


def output_of(capsys):
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_each_message_is_a_comparison_of_the_replies_that_both_systems_suggest_for_it(talk):
    folder, rows = talk
    task = open_task(write_system(folder, "mt5", rows), write_system(folder, "bert", rows))
    assert (task.labels, task.redundancy, task.on_conflict) == (["bert", "mt5", "tie"], 3, "DISCARDED")
    assert task.units.queued().count() == 6
    for unit in task.units.select_related("comparison", "item"):
        comparison, key = unit.comparison, unit.item.key
        assert (comparison.system_a, comparison.replies_a) == ("bert", [f"Pear {key} {place}" for place in "xyz"])
        assert (comparison.system_b, comparison.replies_b) == ("mt5", [f"Plum {key} {place}" for place in "xyz"])
    # No file says which side stood first, so judgments from elsewhere are not imported.
    file = folder / "judgments.tsv"
    file.write_text("task\tworker\tlabel\nen-1\tw\tmt5\n", encoding="utf-8")
    with pytest.raises(CommandError, match="a file does not show which set was first"):
        call_command("import_judgments", "talk", str(file))


def test_the_reference_identifies_records_of_one_message_and_without_one_the_message_does(tmp_path):
    rows = [{"id": f"{n}", "language": "en", "message": "Hello", "reply": f"reply {n}"} for n in range(2)]
    write_corpus(tmp_path, rows)
    bare = tmp_path / "bert.tsv"
    bare.write_text("Hello\t\tHi there\n", encoding="utf-8")
    task = open_task(write_system(tmp_path, "mt5", rows), bare)
    replies = task.units.values_list("item__key", "comparison__replies_a", "comparison__replies_b")
    assert {(key, *a, b[0]) for key, a, b in replies} == {
        ("0", "Hi there", "Plum 0 x"),
        ("1", "Hi there", "Plum 1 x"),
    }


def test_what_one_system_lacks_and_what_the_corpus_lacks_is_left_out_and_counted(talk, capsys):
    folder, rows = talk
    other = {"id": "?", "language": "en", "message": "Of another corpus", "reply": "r"}
    first = write_system(folder, "mt5", rows[:5], lambda row: [] if row["id"] == "en-0" else ["one", "two"])
    with first.open("a", encoding="utf-8") as file:
        file.write(f"{rows[2]['message']}\t{rows[2]['reply']}\tLate\n")
    task = open_task(first, write_system(folder, "bert", [*rows[2:], other, {**rows[2]}], lambda row: ["Yes"]))
    assert sorted(task.units.values_list("item__key", flat=True)) == ["en-2", "en-3", "en-4"]
    output = output_of(capsys)
    assert (
        "Note: bert, of 6 records and 5 lines: 2 records without a reply, not drawn; 1 line without a matching "
        "message in the corpus; 5 lines with fewer than three replies." in output
    )
    assert "Note: mt5, of 6 records and 4 lines: 2 records without a reply, not drawn; 1 line " in output
    assert "1 line repeated for a message, ignored" in output
    parameters = task.draw.parameters["systems"]
    assert (parameters["bert"]["lacking"], parameters["bert"]["unknown"], parameters["mt5"]["none"]) == (2, 1, 1)
    assert not Comparison.objects.filter(unit__task=task, replies_b=["Late"]).exists()


def test_equal_sets_are_ties_that_nobody_is_asked_about_in_whatever_order_they_are(talk, capsys):
    folder, rows = talk
    same = write_system(folder, "mt5", rows, lambda row: ["Yes", "No", "Maybe"])
    turned = write_system(folder, "bert", rows, lambda row: ["Maybe", "Yes", "No"][: 3 - (row["id"] == "en-0")])
    task = open_task(same, turned)
    agreed = task.units.filter(stage=stages.AGREED)
    assert set(agreed.values_list("label", "agreed_label", "audited")) == {("tie", "tie", False)}
    assert sorted(agreed.values_list("item__key", flat=True)) == ["en-1", "en-2", "en-3", "en-4", "en-5"]
    assert list(task.units.queued().values_list("item__key", flat=True)) == ["en-0"]
    assert "1 comparison queued, each for 3 people, 0 copies of others, and 5 are ties" in output_of(capsys)


def test_of_three_systems_each_two_are_compared_on_each_message(talk, capsys):
    folder, rows = talk
    task = open_task(*(write_system(folder, name, rows) for name in ("seq2seq", "mt5", "bert")), size=4)
    assert task.labels == ["bert", "mt5", "seq2seq", "tie"]
    pairs = Counter(Comparison.objects.values_list("system_a", "system_b"))
    assert pairs == {("bert", "mt5"): 4, ("bert", "seq2seq"): 4, ("mt5", "seq2seq"): 4}
    assert set(Counter(task.units.values_list("item", flat=True)).values()) == {3}
    # The order of the units does not reveal the pair.
    order = list(task.units.order_by("position").values_list("pair", flat=True))
    assert [tuple(order[n : n + 3]) for n in range(0, 12, 3)] != [(1, 2, 3)] * 4
    assert (
        "4 messages drawn (en 4), and bert and mt5 and seq2seq are compared on each message; 12 comparisons"
        in output_of(capsys)
    )


def test_the_size_is_of_each_language_and_a_larger_draw_holds_the_smaller(tmp_path):
    small = open_comparison(tmp_path, number=9, languages=("en", "ar"), size=3, name="small")
    large = open_comparison(tmp_path, number=9, languages=("en", "ar"), size=6, name="large")
    keys = [set(task.units.values_list("item__key", flat=True)) for task in (small, large)]
    assert keys[0] < keys[1]
    assert len(keys[0]) == 6
    assert len(keys[1]) == 12
    assert small.languages == ["ar", "en"]


def test_the_order_of_work_is_the_same_whoever_suggested_what(tmp_path):
    pear, plum = (lambda row: [f"Pear {row['id']}"]), (lambda row: [f"Plum {row['id']}"])
    same = open_comparison(tmp_path, name="same", number=30, replies={"mt5": plum, "bert": pear})
    swapped = open_comparison(tmp_path, name="swapped", number=30, replies={"mt5": pear, "bert": plum})
    orders = [[*task.units.order_by("position").values_list("item__key", flat=True)] for task in (same, swapped)]
    assert orders[0] == orders[1]
    assert Task.objects.count() == 2


def test_the_size_is_of_different_messages_which_are_counted_on_card_and_manifest(tmp_path, capsys):
    """Message n of six has n + 1 records, and every second record has other replies."""
    rows = [
        {"id": f"{n}-{m}", "language": "en", "message": f"Message {n}", "reply": f"reply {m}"}
        for n in range(6)
        for m in range(n + 1)
    ]
    write_corpus(tmp_path, rows)
    replies = lambda row: ["Hi", f"number {int(row['id'][-1]) % 2}"]  # noqa: E731
    systems = [write_system(tmp_path, "mt5", rows, replies), write_system(tmp_path, "bert", rows, lambda row: ["Bye"])]
    task = open_task(*systems, size=4)
    drawn = {key.split("-")[0] for key in task.units.values_list("item__key", flat=True)}
    assert len(drawn) == 4
    records = sum(int(number) + 1 for number in drawn)
    comparisons = sum(1 if number == "0" else 2 for number in drawn)
    # Pairs that look the same to a reader are asked once.
    stage_counts = Counter(task.units.values_list("stage", flat=True))
    assert stage_counts == {stages.QUEUED: comparisons, stages.COPIED: records - comparisons}
    assert "4 messages drawn (en 4)" in output_of(capsys)
    draw = task.draws.get()
    assert (draw.asked, draw.size, draw.frame_size, draw.chance) == (4, records, 21, 4 / 6)
    call_command("export_gold", task.name, out=str(tmp_path / "set"))
    [path] = (tmp_path / "set").glob("manifest*.json")
    counts = json.loads(path.read_text())["systems"]
    assert (counts["messages"], counts["comparisons"], counts["copies"]) == (4, comparisons, records - comparisons)
    [path] = (tmp_path / "set").glob("README*.md")
    assert f"{comparisons} comparisons on 4 messages of the corpus `talk`" in path.read_text()


def test_a_folder_with_a_file_for_each_language_by_its_published_code_is_a_system_too(tmp_path):
    codes = {"de": "de", "zh": "zh-CN"}
    rows = [
        {"id": f"{code}-{n}", "language": code, "message": f"OK {n}", "reply": "1"}
        for code in codes.values()
        for n in (1, 2)
    ]
    write_corpus(tmp_path, rows)
    folder = tmp_path / "mbert"
    folder.mkdir()
    for code in codes:
        lines = [f"OK {n}\t1\tHello in {code}\n" for n in (1, 2)]
        (folder / f"{code}_model_responses.txt").write_text("".join(lines), encoding="utf-8")
    task = open_task(folder, f"xlmr={write_system(tmp_path, 'bert', rows)}")
    assert task.labels == ["mbert", "xlmr", "tie"]
    replies = task.units.values_list("item__language", "comparison__replies_a")
    assert {(code, *texts) for code, texts in replies} == {("de", "Hello in de"), ("zh-CN", "Hello in zh")}
    files = [f"{code}_model_responses.txt" for code in codes]
    assert list(task.draw.parameters["systems"]["mbert"]["files"]) == files


def test_a_packed_file_is_read_and_its_system_called_like_the_file_that_is_in_it(talk, capsys):
    folder, rows = talk
    plain, other = write_system(folder, "mt5", rows), write_system(folder, "bert", rows[:2])
    packed, cut = plain.with_name("mt5.tsv.gz"), plain.with_name("cut.tsv.gz")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    cut.write_bytes(packed.read_bytes()[:-9])
    assert "cut.tsv.gz is truncated or damaged" in refused(cut, other)
    assert open_task(packed, other, size=5, redundancy=1).labels == ["bert", "mt5", "tie"]
    output = output_of(capsys)
    assert "2 comparisons queued, each for 1 person, 0 copies of others" in output
    assert "Note: in en, all systems suggest a reply for only 2 messages, but 5 were requested." in output


def refused(*files, **options):
    with pytest.raises(CommandError) as error:
        open_task(*files, **options)
    assert not Task.objects.exists()
    return str(error.value)


NO_PREDICTIONS = [
    (b"Hello\n", "line 1: The line must contain a message"),
    (b"Hello\tHi\t1\t2\t3\nHello\tHi\t1\t2\t3\t4\n", "line 2: The line must contain a message"),
    (b"Hello\tHi\t1\n\nHello\n", "line 3: The line must contain a message"),
    (b"\tHi\t1\n", "line 1: The line must contain a message"),
    (b"Hello\tHi\t1\n\xff\tHi\t1\n", "line 2: The row is not UTF-8"),
    (b"Hello\tHi\t1\x00\n", "line 1: The row contains a NUL character"),
]


def test_systems_and_files_that_cannot_be_compared_are_refused(talk):
    folder, rows = talk
    path = write_system(folder, "mt5", rows)
    assert refused(path) == "--systems names only one system. Name two or more systems to compare."
    assert refused(path, path) == (
        "--systems has two systems named mt5. Write different names before the files: NAME=FILE."
    )
    assert refused() == "--systems is needed to open a task by the systems design."
    for name in ("tie", "first", "none", "a b"):
        sentence = refused(f"{name}={path}", path)
        assert sentence.startswith(f"--systems {name}={path}: ")
        assert sentence.endswith("Write the name before the file: NAME=FILE.")
    assert refused(folder / "none.tsv", f"b={path}").startswith(f"--systems {folder / 'none.tsv'}: none has a special")
    assert refused(f"a={folder / 'no.tsv'}", path).startswith(f"{folder / 'no.tsv'} does not exist. Specify")
    (folder / "empty").mkdir()
    assert "contains no file such as en_model_responses.txt" in refused(folder / "empty", path)
    for content, sentence in NO_PREDICTIONS:
        (folder / "broken.tsv").write_bytes(content)
        assert f"{folder / 'broken.tsv'}, {sentence}" in refused(folder / "broken.tsv", path)
    others = [row | {"message": f"{row['message']}!"} for row in rows]
    assert "Records with replies, of 6: bert 0, mt5 6." in refused(path, write_system(folder, "bert", others))
    file = str(folder / f"{CORPUS}.jsonl")
    call_command("import_corpus", "bare", file, fields="message", licence="CC0-1.0", verbosity=0)
    assert "needs the fields message, reply" in refused(path, f"b={path}", corpus="bare")


def test_a_language_without_a_message_to_ask_about_is_refused_if_it_is_named(tmp_path):
    rows = records(3, ("en", "ar"))
    write_corpus(tmp_path, rows)
    files = write_system(tmp_path, "mt5", rows), write_system(tmp_path, "bert", rows[:3])
    assert refused(*files, languages="en ar").startswith("No message in ar has replies from all systems.")
    assert open_task(*files).languages == ["en"]


def test_systems_are_no_option_of_other_kinds_nor_is_another_design_one_of_this(talk):
    folder, rows = talk
    path = str(write_system(folder, "mt5", rows))
    with pytest.raises(CommandError, match="--systems is not an option of topic tasks"):
        call_command("open_task", "x", corpus=CORPUS, kind="topic", seed="1", labels="a b", systems=[path])
    with pytest.raises(CommandError, match="better_replies tasks are not drawn by the records design"):
        call_command("open_task", "x", corpus=CORPUS, kind="better_replies", seed="1", design="records")


def test_lines_in_another_order_with_other_white_space_and_decomposed_accents_meet_their_records(tmp_path, capsys):
    rows = [{"id": "1", "language": "en", "message": "Two\nlines\tand a tab ", "reply": "a\r\nb"}, *records(2)]
    rows.append({"id": "2", "language": "en", "message": "Café?", "reply": "À la carte"})
    write_corpus(tmp_path, rows)
    flat = [row | {key: " ".join(row[key].split()) for key in ("message", "reply")} for row in rows]
    apart = [{key: unicodedata.normalize("NFD", text) for key, text in row.items()} for row in flat]
    task = open_task(write_system(tmp_path, "mt5", flat[::-1]), write_system(tmp_path, "bert", apart))
    assert task.units.count() == 4
    assert "Note:" not in output_of(capsys)
