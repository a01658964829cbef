"""Ranked labels that are read from a TREC run."""

import gzip

import pytest

from annotate.core.measures.ranked_labels import Judged, at_each
from annotate.evaluation.ranked_documents import read_ranking, sentences
from annotate.evaluation.subjects import EvaluationError

DOCUMENTS = ["31999R1400", "32001D0712"]
LABELS = {"1565", "2443", "2644", "c_4ee83dea"}


@pytest.fixture
def run(tmp_path):
    def read(text, documents=DOCUMENTS):
        path = tmp_path / "mysystem.run"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_ranking(path, documents, LABELS)

    return read


def test_the_score_decides_and_not_the_rank_nor_the_order_of_the_lines(run):
    found = run(
        "31999R1400 Q0 2443 1 0.2 mysystem\n32001D0712\tQ0\t2644\t1\t-3e-2\tmysystem\n\n"
        "31999R1400 Q0 1565 2 0.93 mysystem\r\n  31999R1400  Q0 c_4ee83dea 3   .5 mysystem"
    )
    assert found.system == "mysystem"
    assert found.rankings() == {"31999R1400": ["1565", "c_4ee83dea", "2443"], "32001D0712": ["2644"]}
    assert found.scores["32001D0712"] == {"2644": -0.03}
    assert sentences(found) == []


def test_labels_of_equal_scores_stand_in_the_order_of_their_ids_as_text(run):
    lines = [f"31999R1400 Q0 {label} {rank} 1 s" for rank, label in enumerate(["c_4ee83dea", "2644", "1565"], 1)]
    for order in (lines, lines[::-1]):
        assert run("\n".join(order)).rankings()["31999R1400"] == ["1565", "2644", "c_4ee83dea"]


def test_documents_that_are_not_measured_and_those_without_a_line_are_counted_and_told(run):
    found = run("31999R1400 Q0 2443 1 1 s\n3 Q0 2443 1 1 s\n3 Q0 2644 2 1 s\n4 Q0 2443 1 1 s\n")
    assert (found.outside, found.without) == (["3", "4"], 1)
    assert found.rankings() == {"31999R1400": ["2443"], "32001D0712": []}
    assert sentences(found) == [
        "2 documents are not among those measured, without effect on any figure.",
        "1 document measured has no line; there nothing counts as found.",
    ]


def test_a_run_may_be_packed_and_its_ids_may_hold_a_no_break_space(run):
    line = "31999R1400 Q0 2443 1 0.2 système\u00a01\n"
    found = run(gzip.compress(line.encode()))
    assert (found.system, found.rankings()["31999R1400"]) == ("système\u00a01", ["2443"])


def test_a_run_is_measured_as_it_was_read(run):
    found = run("31999R1400 Q0 2443 1 0.2 s\n31999R1400 Q0 1565 2 0.9 s\n").rankings()
    gold = {"31999R1400": {"2443"}, "32001D0712": {"2644"}}
    measured = at_each([Judged(gold[document], found[document]) for document in DOCUMENTS], 2)
    assert measured["RP"].tolist() == [[0, 1], [0, 0]]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("31999R1400 Q0 1565 2 nan s", "line 2: 'nan' is not a score; write a finite number such as 0.93."),
        ("31999R1400 Q0 1565 2 -inf s", "line 2: '-inf' is not a score; write a finite number such as 0.93."),
        ("31999R1400 Q0 1565 2 0,93 s", "line 2: '0,93' is not a score; write a finite number such as 0.93."),
        ("31999R1400 Q0 99 2 0.5 s", "line 2: '99' is not one of the 4 labels; correct it, or leave it out."),
        (
            "31999R1400 Q0 C_4EE83DEA 2 0.5 s",
            "line 2: 'C_4EE83DEA' is not one of the 4 labels; correct it, or leave it out.",
        ),
        ("31999R1400 Q0 2443 2 0.5 s", "line 2: 31999R1400 has the label 2443 twice; give each label one score."),
        (
            "3 Q0 1565 2 0.5 s\n\n3 Q0 1565 3 0.4 s",
            "line 4: 3 has the label 1565 twice; give each label one score.",
        ),
        (
            "31999R1400 2443 1 0.5 s",
            "line 2: The row has 5 fields where a run has 6: document, Q0, label, rank, score, system.",
        ),
        (
            "31999R1400 Q0 1565 2 0.5 other",
            "line 2: the system is 'other', and 's' in the lines before; put the lines of each system into a file of "
            "their own.",
        ),
    ],
)
def test_a_line_that_is_none_of_a_run_is_refused_with_one_sentence_that_names_it(run, line, sentence):
    with pytest.raises(EvaluationError) as refused:
        run(f"31999R1400 Q0 2443 1 1 s\n{line}\n")
    assert f"mysystem.run, {sentence}" in str(refused.value)


def test_a_file_that_is_no_run_of_these_documents_or_cannot_be_read_is_refused(run, tmp_path):
    with pytest.raises(EvaluationError, match="is empty"):
        run("")
    with pytest.raises(EvaluationError, match="holds no rows"):
        run("\n\n")
    with pytest.raises(EvaluationError, match="has no line of any of the 2 documents measured"):
        run("3 Q0 2443 1 1 s\n")
    with pytest.raises(EvaluationError, match="line 1: The row is not UTF-8"):
        run("31999R1400 Q0 2443 1 1 système".encode("latin-1"))
    with pytest.raises(EvaluationError, match=r"nowhere\.run does not exist"):
        read_ranking(tmp_path / "nowhere.run", DOCUMENTS, LABELS)
