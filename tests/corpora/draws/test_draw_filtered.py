"""Draws from both sides of a filter: random samples of the kept and of the dropped items, mixed."""

import json

import pytest
from django.conf import settings

from annotate.actions.registry import call_command
from corpora.core import CorpusError
from corpora.draws.part_draws import CHANCES, DRAWN, DROPPED, FRAME, IDS, sample_filtered
from corpora.models import Corpus
from corpora.storage.layout import manifest_of
from corpora.threads.scorers import filter_digest, open_filter

pytestmark = pytest.mark.django_db

MESSAGES = settings.BASE_DIR / "fixtures" / "oasst1" / "messages.jsonl"


def import_filtered(folder):
    """Import the corpus `talk` from the fixture's pairs. A scorer drops those with a Detoxify score above 0.1."""
    scores = folder / "scores.tsv"
    rows = [json.loads(line) for line in MESSAGES.read_text(encoding="utf-8").splitlines()]
    scores.write_text("id\tscore\n" + "".join(f"{row['id']}\t{row['detoxify'] or ''}\n" for row in rows))
    call_command("import_threads", "talk", str(MESSAGES), licence="Apache-2.0", text_may_leave=True)
    call_command("import_scores", "talk", str(scores), name="toxic", threshold="0.1")
    return Corpus.objects.get(name="talk")


@pytest.fixture
def corpus(tmp_path, capsys):
    return import_filtered(tmp_path)


def dropped_of(samples):
    return {key for sample in samples for key in sample.parameters[IDS][DROPPED]}


def ids_of(samples):
    return [row["id"] for sample in samples for row in sample.rows]


def drawn_of(corpus, **wanted):
    return sample_filtered(corpus, None, **{"kept": 10, "dropped": 3, "seed": "1"} | wanted)


def test_so_many_of_each_side_are_drawn_by_the_seed_and_the_draw_knows_which(corpus):
    samples = drawn_of(corpus)
    ids = ids_of(samples)
    assert len(ids) == len(set(ids)) == 13
    with open_filter("talk") as store:
        dropped = {row["id"] for row in store.fetch("filtered") if row["dropped"]}
    assert dropped_of(samples) == dropped & set(ids)
    assert len(dropped_of(samples)) == 3
    assert sum(sample.parameters[DRAWN]["kept"] for sample in samples) == 10
    assert samples[0].parameters["filter"] == filter_digest(manifest_of("talk"))
    assert ids == ids_of(drawn_of(corpus))
    assert set(ids) < set(ids_of(drawn_of(corpus, kept=20, dropped=5)))
    assert set(ids) != set(ids_of(drawn_of(corpus, seed="2")))


def test_where_fewer_were_dropped_all_of_them_are_drawn(corpus):
    samples = drawn_of(corpus, dropped=100)
    everything = drawn_of(corpus, kept=10**6, dropped=10**6)
    assert dropped_of(samples) == dropped_of(everything)
    assert samples[0].parameters[CHANCES]["dropped"] == 1
    totals = samples[0].parameters[FRAME].values()
    assert sum(total["dropped"] for total in totals) == len(dropped_of(everything))
    assert sum(total["kept"] for total in totals) == len(ids_of(everything)) - len(dropped_of(everything))


def test_rows_have_the_columns_of_posts_alone_and_come_mixed(corpus):
    samples = drawn_of(corpus, kept=40, dropped=100)
    assert not any("is_dropped" in row for sample in samples for row in sample.rows)
    places = [place for place, key in enumerate(ids_of(samples)) if key in dropped_of(samples)]
    assert places != list(range(len(places)))
    assert places[-1] != len(places) - 1
    assert min(places) < len(ids_of(samples)) - len(places)


def test_what_is_left_out_is_in_no_frame(corpus):
    def frame_size(samples):
        return sum(sum(total.values()) for total in samples[0].parameters[FRAME].values())

    whole = drawn_of(corpus)
    left_out = frozenset(ids_of(whole))
    samples = drawn_of(corpus, leave_out=left_out)
    assert not left_out & set(ids_of(samples))
    assert frame_size(samples) == frame_size(whole) - len(left_out)


def test_where_there_is_nothing_to_audit_the_draw_is_refused(corpus, write):
    call_command("import_threads", "calm", str(MESSAGES), licence="Apache-2.0", text_may_leave=True)
    calm = Corpus.objects.get(name="calm")
    with pytest.raises(
        CorpusError, match=r"Corpus calm has no scores, which decide which pairs are dropped. Import scores"
    ):
        drawn_of(calm)
    scores = write("calm.tsv", f"id\tscore\n{ids_of(drawn_of(corpus))[0]}\t0.2\n")
    call_command("import_scores", "calm", str(scores), name="calm", threshold="0.9")
    sentence = "in these languages are dropped, so the filter cannot be audited"
    with pytest.raises(CorpusError, match=sentence):
        drawn_of(calm)
    with pytest.raises(CorpusError, match=r"has no pairs in sw. Available languages:"):
        sample_filtered(corpus, ["sw"], kept=1, dropped=1, seed="1")
