"""Draws from both sides of a filter: by lot of what it kept and of what it dropped, mixed."""

import json

import pytest
from django.conf import settings

from annotate.actions.commands import call_command
from corpora.core import CorpusError
from corpora.draws.part_draws import CHANCES, DRAWN, DROPPED, FRAME, IDS, sample_filtered
from corpora.models import Corpus
from corpora.storage.layout import manifest_of
from corpora.threads.scorers import filter_digest, filtered

pytestmark = pytest.mark.django_db

MESSAGES = settings.BASE_DIR / "fixtures" / "oasst1" / "messages.jsonl"


def import_filtered(folder):
    """The corpus `talk` of the fixture's pairs, of which a scorer drops those that Detoxify scores above 0.1."""
    scores = folder / "scores.tsv"
    rows = [json.loads(line) for line in MESSAGES.read_text(encoding="utf-8").splitlines()]
    scores.write_text("id\tscore\n" + "".join(f"{row['id']}\t{row['detoxify'] or ''}\n" for row in rows))
    call_command("import_threads", "talk", str(MESSAGES), licence="Apache-2.0", text_may_leave=True)
    call_command("import_scores", "talk", str(scores), name="toxic", threshold="0.1")
    return Corpus.objects.get(name="talk")


@pytest.fixture
def corpus(tmp_path, capsys):
    return import_filtered(tmp_path)


def ids_of(samples):
    return [row["id"] for sample in samples for row in sample.rows]


def drawn_of(corpus, **wanted):
    return sample_filtered(corpus, None, **{"kept": 10, "dropped": 3, "seed": "1"} | wanted)


def dropped_of(samples):
    return {key for sample in samples for key in sample.parameters[IDS][DROPPED]}


def test_so_many_of_each_side_are_drawn_and_the_draw_knows_which(corpus):
    found = drawn_of(corpus)
    assert len(ids_of(found)) == len(set(ids_of(found))) == 13
    assert dropped_of(found) == {key for key, told in filtered("talk", ids_of(found)).items() if not told.kept}
    assert len(dropped_of(found)) == 3
    assert sum(sample.parameters[DRAWN]["kept"] for sample in found) == 10
    assert found[0].parameters["filter"] == filter_digest(manifest_of("talk"))


def test_where_fewer_were_dropped_all_of_them_are_drawn(corpus):
    found = drawn_of(corpus, dropped=100)
    everything = drawn_of(corpus, kept=10**6, dropped=10**6)
    assert dropped_of(found) == dropped_of(everything)
    assert found[0].parameters[CHANCES]["dropped"] == 1
    totals = found[0].parameters[FRAME].values()
    assert sum(each["dropped"] for each in totals) == len(dropped_of(everything))
    assert sum(each["kept"] for each in totals) == len(ids_of(everything)) - len(dropped_of(everything))


def test_the_same_seed_draws_the_same_a_larger_draw_contains_it_and_another_seed_draws_others(corpus):
    first = drawn_of(corpus)
    assert ids_of(first) == ids_of(drawn_of(corpus))
    assert set(ids_of(first)) < set(ids_of(drawn_of(corpus, kept=20, dropped=5)))
    assert set(ids_of(first)) != set(ids_of(drawn_of(corpus, seed="2")))


def test_rows_have_the_columns_of_posts_alone_and_come_mixed(corpus):
    found = drawn_of(corpus, kept=40, dropped=100)
    assert not any("is_dropped" in row for sample in found for row in sample.rows)
    places = [place for place, key in enumerate(ids_of(found)) if key in dropped_of(found)]
    assert places != list(range(len(places)))
    assert places[-1] != len(places) - 1
    assert min(places) < len(ids_of(found)) - len(places)


def test_what_is_left_out_is_in_no_frame(corpus):
    left_out = frozenset(ids_of(drawn_of(corpus)))
    found = drawn_of(corpus, leave_out=left_out)
    assert not left_out & set(ids_of(found))
    before = drawn_of(corpus)[0].parameters[FRAME]
    fewer = sum(sum(each.values()) for each in before.values()) - len(left_out)
    assert sum(sum(each.values()) for each in found[0].parameters[FRAME].values()) == fewer


def test_without_scores_there_is_nothing_to_audit(corpus):
    call_command("import_threads", "bare", str(MESSAGES), licence="Apache-2.0", text_may_leave=True)
    with pytest.raises(CorpusError, match="Corpus bare has no scores by which pairs are dropped; import some"):
        drawn_of(Corpus.objects.get(name="bare"))


def test_a_filter_that_drops_nothing_is_refused(corpus, write):
    call_command("import_threads", "calm", str(MESSAGES), licence="Apache-2.0", text_may_leave=True)
    key = ids_of(drawn_of(corpus))[0]
    call_command(
        "import_scores", "calm", str(write("calm.tsv", f"id\tscore\n{key}\t0.2\n")), name="calm", threshold="0.9"
    )
    with pytest.raises(
        CorpusError, match="dropped none of its pairs in these languages, so there is no filter to audit"
    ):
        drawn_of(Corpus.objects.get(name="calm"))


def test_a_language_that_the_corpus_has_not_is_named(corpus):
    with pytest.raises(CorpusError, match="has no pairs in sw; it has them in"):
        sample_filtered(corpus, ["sw"], kept=1, dropped=1, seed="1")
