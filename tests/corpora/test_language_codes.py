"""Codes of other standards: ISO 639-1, -2 and -3, old ones, and those with a script or a region."""

import json

import pytest

from annotate.actions.commands import call_command
from annotate.actions.judgment_files import import_judgments
from annotate.work.people_file import read_table
from annotate.work.routes import unknown_code
from corpora.core.language_codes import code_of, hint
from corpora.predictions.prediction_rows import read_predictions
from tests.corpora.on_disk import posts

MEANT = {
    "he": "iw he heb HE", "id": "in id ind", "yi": "ji yid", "en": "eng EN en-US en_GB en-Latn-US __label__en",
    "zh-CN": "zh-Hans zh_CN zh-cn zh-SG cmn-Hans", "zh-TW": "zh-Hant zh-HK zh-Hant-HK zh-TW", "zh": "zh zho chi cmn",
    "pt": "pt_BR pt-br por", "no": "nb nn no nob nb-NO", "tl": "fil tl tgl", "sr": "sr-Latn sr-Cyrl srp",
    "ro": "mo ron",
    "sh": "sh hbs", "hr": "hrv scr", "de": "deu ger de-AT de-DE-1996", "fr": "fra fre fr-FR", "ar": "arb arz ar",
    "fa": "fas pes per", "sw": "swa swh", "et": "ekk est", "jv": "jw jav", "hi-Latn": "hi_latn", "yue": "zh-yue",
    "na": "na", "ku": "kmr", "az": "aze azj", "sq": "alb sqi",
}  # fmt: skip


@pytest.mark.parametrize(("code", "written"), [(code, each) for code, all_ in MEANT.items() for each in all_.split()])
def test_a_code_of_another_standard_is_the_language_that_it_means(code, written):
    assert code_of(written) == code


@pytest.mark.parametrize(
    "written", ["und", "mul", "zxx", "xx", "qq", "nan", "lzh", "als", "ru-Latn", "ar-Latn", "-", "english"]
)
def test_a_code_without_one_language_here_is_none(written):
    assert code_of(written) == ""


def test_a_hint_never_takes_a_code_for_another_that_is_merely_spelled_like_it():
    assert "did you mean de (German)?" in unknown_code("Deutsch")
    for code in ("nan", "lzh", "qq", "unk", "mul"):
        assert "did you mean" not in unknown_code(code)
    assert hint("als") == "write sq (Albanian) or gsw (Swiss German)"


@pytest.mark.django_db
def test_every_importer_takes_the_same_codes(tmp_path):
    written = ["iw", "in", "eng", "nb", "pt_BR", "fil", "deu", "sr-Latn", "mo"]
    meant = ["he", "id", "en", "no", "pt", "tl", "de", "sr", "ro"]
    people = "username,name,languages\n" + "".join(f"p{n},P,{code}:5\n" for n, code in enumerate(written))
    assert [[*row.levels] for row in read_table(people)] == [[code] for code in meant]
    (tmp_path / "p.tsv").write_text("".join(f"{n}\t{code}\n" for n, code in enumerate(written)))
    assert list(read_predictions(tmp_path / "p.tsv", {})[0].values()) == meant
    rows = [{"id": str(n), "language": code, "body": f"text {n}"} for n, code in enumerate(written)]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    call_command("import_corpus", "c", str(tmp_path / "r.jsonl"), fields="body", licence="CC0-1.0", verbosity=0)
    assert [row["language"] for row in posts()] == meant
    judged = "task,worker,label,language\n" + "".join(f"t{n},w,yes,{code}\n" for n, code in enumerate(written))
    (tmp_path / "j.csv").write_text(judged)
    task = import_judgments("crowd", tmp_path / "j.csv").task
    assert task.languages == sorted(meant)
