"""The audit of a filter, from the corpus to the cards: people read both sides mixed; the report separates them."""

import json
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotate.actions.registry import call_command
from annotate.controls.sample_audits import OLD_FILTER, filter_report, filter_words
from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import Task
from annotate.work import interventions
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from corpora.draws.part_draws import DROPPED, IDS
from tests.annotate.programs import Program
from tests.corpora.draws.test_draw_filtered import import_filtered

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
ANN_READS = "en"


@pytest.fixture
def audited(tmp_path, capsys):
    """audited(kept=6, dropped=4) opens a task that audits the filter, with one reader for each pair."""

    import_filtered(tmp_path)

    def make(kept=6, dropped=4, **options):
        defaults = {"redundancy": 1, "stop_early": False, "languages": ["en"], "sets": f"kept {kept} dropped {dropped}"}
        call_command(
            "open_task",
            "audit",
            corpus="talk",
            kind="toxic_pairs",
            seed="1",
            **defaults | options,
        )
        capsys.readouterr()
        return Task.objects.get(name="audit")

    return make


def dropped_of(task):
    return {key for draw in task.draws.all() for key in draw.parameters[IDS][DROPPED]}


def read_all(task, annotator, is_toxic):
    """Answer or skip all of the annotator's pairs. is_toxic: id -> True, False, or None to skip."""
    interventions.agree(annotator, task.name)
    while lease := take(annotator, task):
        toxic = is_toxic(lease.unit.item.key)
        if toxic is None:
            skip(annotator, lease.pk)
        else:
            judge(annotator, lease.pk, Answer("toxic" if toxic else "not-toxic"))


def test_a_task_is_opened_from_both_sides_and_each_is_counted_by_itself(audited, ann):
    with pytest.raises(Exception, match="--size is not an option of toxic_pairs tasks drawn by the filtered design"):
        audited(size=5)
    task = audited()
    dropped = dropped_of(task)
    assert (task.units.count(), len(dropped)) == (10, 4)
    assert {draw.design for draw in task.draws.all()} == {"filtered"}
    # A unit's row does not reveal its side.
    columns = ("predicted", "agreed_label", "known_answer", "redundancy", "honeypot", "asked", "stage")
    of_dropped, of_kept = (
        set(units.values_list(*columns))
        for units in (task.units.filter(item__key__in=dropped), task.units.exclude(item__key__in=dropped))
    )
    assert of_dropped == of_kept
    assert len(of_kept) == 1
    report = filter_report(task)  # before anybody has read
    assert report["kept"]["share"]["value"] is report["dropped"]["share"]["value"] is report["recall"]["value"] is None
    assert "is not known, because too few pairs were read." in " ".join(filter_words(report))
    read_all(task, ann, lambda key: key in dropped)
    report = filter_report(task)
    assert [report["kept"][key] for key in ("read", "found")] == [6, 0]
    assert [report["dropped"][key] for key in ("read", "found")] == [4, 4]
    assert (report["dropped"]["share"]["value"], report["recall"]["high"]) == (1, 1)
    words = " ".join(filter_words(report))
    assert re.search(
        r"None of the 6 kept pairs with a label is toxic, so at most \d\d\.\d\d% of all kept pairs are\.", words
    )
    assert "is at least" in words


def test_undecidable_pairs_widen_the_interval_and_do_not_count_as_harmless(audited, ann):
    task = audited(kept=60, dropped=4, skip_limit=1, on_conflict=stages.DISCARDED)
    dropped, others = dropped_of(task), []

    def is_toxic(key):
        if key in dropped:
            return True
        others.append(key)
        return None if len(others) <= 10 else False

    task.kind_file = task.kind_file.replace("a_day = 50", "a_day = 100")
    task.save()
    read_all(task, ann, is_toxic)
    report = filter_report(task)
    assert (report["kept"]["read"], report["kept"]["unresolved"]) == (50, 10)
    assert report["kept"]["share"]["low"] == 0
    assert report["kept"]["share"]["high"] > 10 / 60
    assert report["recall"]["low"] < 0.5
    assert "10 pairs of the audit have no label" in " ".join(filter_words(report))


def test_a_fully_read_side_is_certain(audited, ann):
    task = audited(dropped=10**6)
    read_all(task, ann, lambda key: True)
    side = filter_report(task)["dropped"]
    assert side["read"] == side["pairs"] > 4
    assert side["share"]["low"] == side["share"]["high"] == 1


def test_the_command_the_page_and_the_cards_tell_the_same(audited, ann, desk, tmp_path, capsys):
    task = audited()
    dropped = dropped_of(task)
    read_all(task, ann, lambda key: key in dropped)
    sentences = filter_words(filter_report(task))
    capsys.readouterr()
    call_command("audit", "audit")
    command = capsys.readouterr().out
    page = desk.get("/manage/tasks/audit/quality/").content.decode()
    call_command("export_gold", "audit", out=tmp_path / "gold")
    manifest = json.loads((tmp_path / "gold" / "manifest.json").read_text())
    assert manifest["filter_audit"] == json.loads(json.dumps(filter_report(task)))
    call_command("export_pairs", "talk", out=tmp_path / "pairs", seed="1")
    cards = [(tmp_path / folder / "README.md").read_text() for folder in ("gold", "pairs")]
    for sentence in sentences:
        assert sentence in command
        assert all(sentence in card for card in cards)
        assert sentence in page
    rows = [json.loads(line) for line in (tmp_path / "gold" / "gold.jsonl").read_text().splitlines()]
    chances = next(iter(task.draws.all())).parameters["chances"]
    assert {row["id"]: row["chance"] for row in rows} == pytest.approx(
        {row["id"]: chances["dropped" if row["id"] in dropped else "kept"] for row in rows}
    )


def test_an_audit_of_an_earlier_filter_says_so_wherever_it_is_told(audited, ann, tmp_path, capsys):
    task = audited()
    dropped = dropped_of(task)
    read_all(task, ann, lambda key: key in dropped)
    assert filter_report(task)["is_current"]
    scores = tmp_path / "other.tsv"
    scores.write_text("".join(f"{key}\t0.9\n" for key in sorted(keys(task))[:2]), encoding="utf-8")
    call_command("import_scores", "talk", scores, name="other", threshold="0.5", of="pair")
    assert "Earlier draws (1) audit the old filter" in capsys.readouterr().err
    assert not filter_report(task)["is_current"]
    call_command("audit", "audit")
    assert OLD_FILTER in capsys.readouterr().out
    call_command("export_pairs", "talk", out=tmp_path / "pairs", seed="1")
    assert f"Task audit: {OLD_FILTER}" in (tmp_path / "pairs" / "README.md").read_text()


def test_a_card_tells_of_audits_that_somebody_read_each_with_its_table(audited, ann, tmp_path):
    task = audited()
    call_command("export_pairs", "talk", out=tmp_path / "before", seed="1")
    assert "What people found" not in (tmp_path / "before" / "README.md").read_text()
    read_all(task, ann, lambda key: True)
    call_command(
        "open_task", "again", corpus="talk", kind="toxic_pairs", seed="2", sets="kept 3 dropped 2", languages=["en"]
    )
    call_command("export_pairs", "talk", out=tmp_path / "after", seed="1")
    card = (tmp_path / "after" / "README.md").read_text()
    assert re.search(r"\nTask audit: [^\n]+\n\n\| language \|", card)
    assert "Task again" not in card


# --- nothing tells which is which


def shape(value):
    """Return the keys and types of a JSON value, without its contents."""
    if isinstance(value, dict):
        return {key: shape(part) for key, part in value.items()}
    return type(value).__name__


def test_neither_page_nor_api_tells_what_was_kept_and_what_was_dropped(audited, ann, client):
    task = audited(kept=8, dropped=8)
    dropped = dropped_of(task)
    interventions.agree(ann, task.name)
    program = Program(client, ann)
    client.force_login(ann.user)
    seen = []
    for _ in range(16):
        with CaptureQueriesContext(connection) as capture:
            reply = program.post(f"tasks/{task.name}/next/")
        lease = reply.json()["lease"]
        unit = task.units.get(leases=lease["id"])
        page = client.get(f"/tasks/{task.name}/")
        text = page.content.decode()
        assert unit.item.key not in text + reply.content.decode()
        assert not re.search(r"\b(kept|dropped|filter|detoxify)\b", page_without(text, unit))
        statements = [re.sub(r"\d+|'[^']*'", "?", query["sql"]) for query in capture.captured_queries]
        with CaptureQueriesContext(connection) as answering:
            done = program.post(f"leases/{lease['id']}/judge/", label="not-toxic")
        answers = [re.sub(r"\d+|'[^']*'", "?", query["sql"]) for query in answering.captured_queries]
        headers = {name: value for name, value in reply.headers.items() if name not in ("Content-Length", "Expires")}
        seen.append((unit.item.key in dropped, shape(reply.json()), headers, statements, answers, done.status_code))
    of_dropped, of_kept = ([row[1:] for row in seen if row[0] is side] for side in (True, False))
    assert len(of_dropped) == len(of_kept) == 8
    # Both sides give the same responses; only the first and the last of all may differ.
    assert of_dropped[1] == of_kept[1] == of_dropped[-2] == of_kept[-2]
    sides = [row[0] for row in seen]
    assert sides not in (sorted(sides), sorted(sides, reverse=True))


def page_without(text, unit):
    """Return a page's words without those of the pair, the guidelines and scripts."""
    text = re.sub(r'(?s)<details id="guidelines".*?</details>', "", text)
    for field in unit.item.fields.values():
        for line in field.splitlines():
            text = text.replace(line, "")
    return re.sub(r"(?s)<article.*?</article>|<script.*?</script>", "", text)


def keys(task):
    return task.units.values_list("item__key", flat=True)
