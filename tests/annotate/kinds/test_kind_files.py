"""Files of kinds: an invalid one is refused in a sentence with the line; a valid one is read and described."""

import re

import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.kinds import KINDS
from annotate.kinds.files import EXPORT_COLUMNS, KindError, kind_of, read_kind
from annotate.kinds.toml_tables import read_tables
from corpora.core.languages import ARTICLE_LABELS, LANGUAGES
from tests.annotate.kinds.files import ACTS, MOOD, PIDGIN, acts, mood, pidgin

WRONG = [
    # no TOML at all
    (MOOD.encode("utf-16"), "line 1: this is not UTF-8. Save the file as UTF-8."),
    (MOOD.encode("latin-1"), "line 17: this is not UTF-8. Save the file as UTF-8."),
    (mood('form = "grades"', "form = grades"), "line 3: this is not valid TOML (Invalid value)"),
    (mood('"+"', '"+'), "line 15: this is not valid TOML (Illegal character '\\n')"),
    # keys
    (mood("title", "titel"), "line 2: 'titel' is not a key of a kind's file. Did you mean title?"),
    (mood("gold_share", "goldshare"), "line 25: 'goldshare' is not an option. Did you mean gold_share?"),
    (mood("apart", "wholly"), "line 4: 'wholly' is not a key of a kind's file"),
    # what may hurt
    (mood("apart", "sensitive = true\napart"), "line 4: sensitive is true; it must be a table."),
    (mood("[options]", "[sensitive]\na_day = 5\n\n[options]"), "warning is missing"),
    (mood("[options]", '[sensitive]\nwarning = "It hurts."\na_day = 0\n\n[options]'), "a_day is 0"),
    (
        mood("[options]", '[sensitive]\nwarning = { de = "Es schmerzt." }\n\n[options]'),
        "warning has no English text. Write the English text too.",
    ),
    # what must be there, and of which type
    (mood('title = "How content is the reviewer?"\n', ""), "line 1: title is missing"),
    (mood("title = ", "title = 3 # "), "line 2: title is 3; it must be a text in quotes."),
    (mood("How content", r"How\ncontent"), "line 2: title is 'How\\ncontent is the reviewer?', but must be a short"),
    (mood("How content", "How " + 200 * "c"), "line 2: title has 221 characters. Shorten it to 200 or fewer."),
    (mood('form = "grades"\n', ""), "line 1: form is missing"),
    (mood('"grades"', '"grade"'), "line 3: the form of answers 'grade' is not installed. Did you mean grades?"),
    (mood('["product"]', '"product"'), "line 4: apart is 'product'; it must be a list in brackets."),
    (mood("[options]", "[[options]]"), "line 24: options is [{'gold_share': 0}]; it must be a table."),
    (mood("gold_share = 0", "gold_share = nan"), "line 25: gold_share is nan. It must be 0 to 0.5."),
    (mood("apart", "seconds = 0\napart"), "line 4: seconds is 0, but must be from 1 to 3,600."),
    (mood("apart", 'seconds = "long"\napart'), "line 4: seconds is 'long'; it must be a number."),
    (mood("gold_share = 0", 'stop_early = "yes"'), "line 25: stop_early is 'yes'. It must be true or false."),
    (mood('"Annoyed"', '"Content"'), "line 22: the name of - is Content, like that of +. Rename one of them."),
    (MOOD + '[guidelines]\nen = "a\\u0000b"\n', "line 27: the guidelines in en contain a NUL character, which"),
    # the layout
    (mood('"passage"', '"pasage"'), "line 11: 'pasage' is not a style. Did you mean passage?"),
    (mood('["review"]', "[]"), 'line 12: the block has no fields. Name one or more, such as fields = ["query"].'),
    (mood('["review"]', '["product"]'), "line 12: the field product is shown twice. Show it in one block only."),
    (mood('["review"]', '["review", "review"]'), "line 12: 'review' is listed twice in fields. Remove one."),
    (mood('["review"]', '["text"]'), "line 12: a field cannot be called text, because exported sets have a column"),
    (mood('["product"]', '["produkt"]'), "line 4: apart contains 'produkt', which is not a field of the layout"),
    ("together = 'query'\n" + MOOD, "line 1: together contains 'query', which is not a field of the layout"),
    # answers
    (mood('code = "+"\n', ""), 'line 14: code is missing. Write the code that is stored, such as code = "good".'),
    (mood('name = "Annoyed"\n', ""), "line 20: name is missing"),
    (mood('"-"', '"+"'), "line 21: two answers have the code +. Change one of them."),
    (mood('"-"', '"very bad"'), "line 21: the code 'very bad' contains a space"),
    (mood('[[answers]]\ncode = "-"\nname = "Annoyed"\n', ""), "line 14: there is only one answer"),
    (MOOD[: MOOD.index("[[answers]]")], "line 1: there are no answers"),
    (re.sub(r"(?s)apart.*?(?=\[\[answers)", "", MOOD), "line 4: there are answers but nothing to show"),
    (mood('key = "a"', 'key = "2"'), "line 20: - has the same key as +. Set key to another key for one of them."),
    (mood('key = "a"', "key = 1"), "line 18: key is 1; it must be a text in quotes."),
    (mood('key = "a"', 'key = "ä"'), "line 18: 'ä' is not a valid key. Use 1 to 9 or a to z."),
    (mood('key = "a"', 'key = "Q"'), "line 18: the page uses the key q for Undefined. Choose another key."),
    (mood('de = "Zufrieden"', 'qq = "Zufrieden"'), "line 16: 'qq' is not a known language code"),
    (
        mood('de = "Zufrieden"', 'zh_cn = "Zufrieden"'),
        "line 16: 'zh_cn' is not a known language code; did you mean zh-CN",
    ),
    (mood('en = "Content", ', ""), "line 16: name has no English text. Write the English name too."),
    # options
    (mood("gold_share = 0", "audit_share = 0"), "line 25: audit_share is not an option of this kind. Remove it."),
    (mood("gold_share = 0", "gold_share = 0.7"), "line 25: gold_share is 0.7. It must be 0 to 0.5."),
    (mood("gold_share = 0", "redundancy = 2"), "line 24: with 2 as redundancy, every item with two different"),
    (mood("gold_share = 0", 'aggregation = "median"').replace("grades", "choice"), "line 25: only grades can be"),
    # what is published
    (MOOD + '[publishes]\nxgleu = "qam"\n', "line 27: 'xgleu' is not a key of [publishes]. Did you mean xglue?"),
    (MOOD + '[publishes]\nxglue = "qa"\n', "line 27: xglue has no layout 'qa'. Did you mean qam?"),
    (MOOD + '[publishes]\nxglue = "qam"\n', "line 27: the xglue layout qam requires the fields question, passage"),
    (MOOD + '[publishes]\neurlex57k = "acts"\n', "line 27: the eurlex57k layout acts requires several labels per"),
    (ACTS + '[publishes]\nxglue = "qadsm"\n', "line 17: the xglue layout qadsm allows only one label per answer, but"),
    (ACTS + '[publishes]\neurlex57k = "acts"\n', "line 17: the eurlex57k layout acts requires the fields title,"),
    # what people do not see
    (acts('["type"]', '["title"]'), "line 3: the field title is in the layout, so sets contain it anyway"),
    (acts('["type"]', '["type", "type"]'), "line 3: 'type' is listed twice in kept. Remove one."),
    (acts('["type"]', '["concepts"]'), "line 3: a field cannot be called concepts, because exported sets have a"),
    ('title = "What?"\nform = "choice"\nkept = ["type"]\n', "line 3: there is no layout, so there are no records"),
    (acts('"split"', '"The Split"'), "line 4: 'The Split' is not a valid name for a field"),
    (mood("apart", 'split = "split"\nanswers_from = "draw"\napart'), "line 4: the draw makes the sets of this kind"),
    # a vocabulary
    (MOOD + '[vocabulary]\nname = "eurovoc"\n', 'line 26: the table [vocabulary] requires form = "labels"'),
    (re.sub(r"(?s)\[vocabulary.*?(?=\[\[)", "", ACTS), "line 1: name is missing"),
    (acts("least", "fewest"), "line 8: 'fewest' is not a key of [vocabulary]. Did you mean least?"),
    (acts("least = 2", "least = 0"), "line 8: least is 0, but must be from 1 to 1,000."),
    (acts("most = 5", "most = 1"), "line 9: most is 1, but must be from 2, which is least, to 1000."),
    (acts('"refuse"', '"refuses"'), "line 10: 'refuses' is not a valid rule. Did you mean refuse?"),
    (acts("0.6", "1.5"), "line 11: right_from is 1.5, but must be greater than 0 and at most 1."),
    (acts("0.6", '"half"'), "line 11: right_from is 'half', but must be greater than 0 and at most 1."),
    (ACTS + '[[answers]]\ncode = "none"\nname = "None"\n', "line 16: the answers are the concepts of the vocabulary"),
    (acts("kept", 'answers_from = "draw"\nkept'), "line 3: the answers are the concepts of the vocabulary"),
    (ACTS[: ACTS.index("[[layout")].replace('kept = ["type"]\n', ""), "line 2: people would see nothing"),
    # guidelines
    (MOOD + '[guidelines]\nen = "no.md"\n', "the guidelines {folder}/no.md cannot be read: No such file or"),
    (MOOD + "[guidelines]\nen = 1\n", "line 27: the guidelines in en are not text"),
    (MOOD + '[guidelines]\nenglish = "en.md"\n', "line 27: 'english' is not a known language code"),
    # languages
    (pidgin("autonym", "autonim"), "line 6: 'autonim' is not a key of [languages.pcm]. Did you mean autonym?"),
    (pidgin('under = "pt"', 'under = "por"'), "line 8: the value of under for the language pt-BR is 'por', which is"),
    (pidgin("languages.pcm", "languages.de"), "line 4: the language de is built in as German. Remove it."),
    (pidgin('"pcm"', '"pidgin"'), "line 2: the label 'pidgin' is not a known language"),
    (pidgin('"pt-BR"', '"pt-br"'), "line 2: the label 'pt-br' is not a known language. Did you mean pt-BR?"),
    (pidgin('"en"', '"und"'), "line 2: und is among the labels, but is always a possible answer. Remove it."),
    # a base
    (pidgin('"language"', '"languages"'), "line 1: 'languages' cannot be a base. Did you mean language?"),
    (pidgin('"language"', '"verify"'), "line 2: verify asks about the languages for which it is opened"),
    ('base = "language"\n' + MOOD, "line 4: a kind with a base cannot have form. Remove form or base."),
    (pidgin("labels", "lables"), "line 2: 'lables' is not a key of a kind with a base. Did you mean labels?"),
]


@pytest.mark.parametrize(("text", "sentence"), WRONG, ids=[sentence[:50] for _, sentence in WRONG])
def test_an_invalid_file_is_refused_in_one_sentence_with_its_line(write, tmp_path, text, sentence):
    path, before = write(text), set(LANGUAGES)
    with pytest.raises(KindError) as refused:
        read_kind(path)
    message = str(refused.value)
    assert message.startswith(f"{path}, line ")
    assert sentence.replace("{folder}", str(tmp_path)) in message
    assert "\n" not in message
    assert set(LANGUAGES) == before
    with pytest.raises(CommandError, match=re.escape(message)):
        call_command("check_kind", path)
    assert not path.with_suffix(".html").exists()


def test_check_kind_writes_over_no_page_but_its_own(write, capsys):
    path = write(MOOD)
    for _ in range(2):
        call_command("check_kind", path)
    for other in (path, path.with_name("mine.html")):
        if other != path:
            other.write_text("mine", encoding="utf-8")
        before = other.read_bytes()
        with pytest.raises(CommandError, match=r"was not written by check_kind. Move it, or choose another file with"):
            call_command("check_kind", path, out=other)
        assert other.read_bytes() == before


def test_files_that_are_missing_too_large_or_elsewhere_or_have_a_wrong_name_are_refused(write, tmp_path):
    for elsewhere in ("../other.md", str(tmp_path.parent / "other.md")):
        with pytest.raises(KindError, match=r"line 27: the guidelines .* are not in the folder of the kind"):
            read_kind(write(f'{MOOD}[guidelines]\nen = "{elsewhere}"\n'))
    (tmp_path / "book.md").write_bytes(b"a" * 1_000_001)
    with pytest.raises(KindError, match=r"book\.md have more than 100,000 bytes\."):
        read_kind(write(f'{MOOD}[guidelines]\nen = "book.md"\n'))
    with pytest.raises(KindError, match=r"mood\.toml has more than 1,000,000 bytes, the maximum for a kind's file\."):
        read_kind(write(MOOD + 1_000_000 * "#"))
    for text in ("a = " + 5_000 * "[", "a = " + 10_000 * "9"):
        with pytest.raises(KindError, match=r"mood\.toml: a number is too long, or brackets are nested too"):
            read_kind(write(text))
    with pytest.raises(KindError, match=r"Cannot read .*no\.toml: No such file or directory\.$"):
        read_kind(tmp_path / "no.toml")
    for name, sentence in (
        ("language.toml", "language is the name of a built-in kind. Rename the file."),
        ("web_ranking.toml", "web_ranking is the name of a built-in kind. Rename the file."),
        ("my kind.toml", "'my kind' is not a valid name for a kind"),
        (f"{65 * 'k'}.toml", "is not a valid name for a kind. Use up to 64 letters"),
    ):
        with pytest.raises(KindError, match=re.escape(sentence)):
            read_kind(write(MOOD, name))


def test_a_language_has_one_name_only(write):
    read_kind(write(PIDGIN, "first.toml"))
    other = write(pidgin('"Nigerian Pidgin"', '"Naija"'), "second.toml")
    with pytest.raises(KindError, match="line 4: the language pcm was already added as 'Nigerian Pidgin'"):
        read_kind(other)


def test_lines_are_told_of_whatever_toml_there_is():
    text = 'a = [\n "[b]", # [c]\n]\ns = """\n[[no]]\nx = 1\n"""\n[[p]]\nn.m = 1\n[p.q]\nz = 2\n[[p]]\n"a.b" = 3\n'
    lines = read_tables("file", text).source.lines
    assert lines == {
        ("a",): 1,
        ("s",): 4,
        ("p",): 8,
        ("p", 0): 8,
        ("p", 0, "n"): 9,
        ("p", 0, "n", "m"): 9,
        ("p", 0, "q"): 10,
        ("p", 0, "q", "z"): 11,
        ("p", 1): 12,
        ("p", 1, "a.b"): 13,
    }


# --- what a right file says


def test_answers_have_names_meanings_and_keys_by_language(write):
    kind = read_kind(write(MOOD))
    assert [kind.name(code) for code in "+-"] == ["Content", "Annoyed"]
    assert [kind.name(code, "de") for code in "+-"] == ["Zufrieden", "Annoyed"]
    assert kind.answers["+"].means("de") == "würde es wieder kaufen"
    assert kind.answers["+"].means("fr") == "would buy it again"
    assert [kind.answers[code].key for code in "+-"] == ["KeyA", ""]


def test_guidelines_stand_in_the_file_or_beside_it_and_are_read_once(write):
    write("# Deutsch", "de.md")
    path = write(MOOD + '[guidelines]\nde = "de.md"\nen = """\n# English\n"""\n')
    kind = read_kind(path)
    assert kind.guidelines == {"de": "# Deutsch", "en": "# English\n"}
    path.with_name("de.md").unlink()
    assert kind_of("mood", kind.source).guidelines == {}


def test_a_base_gives_what_the_file_does_not(write):
    text = pidgin('labels = ["en", "pcm", "pt-BR", "pt-PT"]', "options.rounds = 3")
    kind, base = read_kind(write(text, "pidgin.toml")), KINDS["language"]
    assert (kind.slug, kind.title) == ("pidgin", base.title)
    assert (kind.pages.question, kind.guidelines) == (base.pages.question, base.guidelines)
    assert kind.defaults == {"rounds": 3}
    # what detectors call Portuguese is one of the two
    assert kind.labels == [*(code for code in ARTICLE_LABELS if code != "pt"), "pcm", "pt-BR", "pt-PT"]
    assert (kind.finer("pt"), base.finer("pt")) == (("pt-BR", "pt-PT"), ())
    assert (kind.knows("pt-BR"), base.knows("pt-BR"), base.knows("pcm")) == (True, False, True)
    # One variety is listed beside its language.
    kind = read_kind(write('base = "language"\n[languages.de-AT]\nname = "Austrian German"\nunder = "de"\n'))
    assert {"de", "de-AT"} <= set(kind.labels)


def test_a_stored_text_gives_its_languages_names_in_any_process(write):
    kind = read_kind(write(PIDGIN))
    LANGUAGES.data = {code: language for code, language in LANGUAGES.data.items() if code != "pcm"}
    kind_of.cache_clear()
    assert kind_of("pidgin", kind.source).name("pcm") == "Nigerian Pidgin"
    assert LANGUAGES["pcm"].autonym == "Naijá"


def test_no_field_has_the_name_of_a_column_unless_the_column_came_later():
    for kind in KINDS.values():
        assert not EXPORT_COLUMNS.intersection(kind.fields)
        if kind.publication.splits:
            assert EXPORT_COLUMNS.issuperset({*kind.publication.columns, "left_out", "left_out_why"} - {"fields"})
    assert kind_of("mood", mood('["review"]', '["stage"]')).fields == ("product", "stage")


# --- what is told of kinds' files


@pytest.mark.parametrize("document", ["languages", "own-kind", "several-labels"])
def test_the_examples_of_the_documents_are_right(document, write, settings):
    text = (settings.BASE_DIR / "annotate" / "docs" / "how-to" / f"{document}.md").read_text(encoding="utf-8")
    examples = [toml for toml in re.findall(r"(?s)```toml\n(.*?)```", text) if "title =" in toml or "base =" in toml]
    assert examples
    for example in examples:
        assert read_kind(write(example, "example.toml")).answered_here


def test_where_f_gives_an_answer_or_finds_concepts_a_unit_is_flagged_by_shift_and_f():
    moods = [kind_of("mood", MOOD.replace('key = "a"', f'key = "{key}"')) for key in ("a", "f")]
    assert [kind.flag_needs_shift for kind in (*moods, kind_of("acts", ACTS))] == [False, True, True]


def test_every_kind_that_comes_with_assay_states_its_pace():
    paces = {slug: kind.seconds for slug, kind in KINDS.items() if kind.answered_here}
    assert paces == {
        **{"language": 12, "verify": 12, "toxic_pairs": 10, "ad_relevance": 20, "topic": 25},
        **{"web_ranking": 25, "qa_match": 30, "better_replies": 60, "concepts": 180},
        **{"ner": 45, "mlqa": 40},
        **{"entailment": 20, "paraphrase": 15, "news_category": 20, "question_writing": 60, "news_title": 90},
    }


def test_shipped_guidelines_call_each_answer_as_its_button_does():
    """The English name may follow once in brackets."""
    shipped = [(kind, language, file) for kind in KINDS.values() for language, file in kind.guidelines.items()]
    named = [(kind, language, text) for kind, language, text in shipped if language != "en" and kind.answers]
    assert len(named) > 5
    for kind, language, text in named:
        for answer in kind.answers.values():
            local, english = answer.names.get(language), answer.names["en"]
            if local and local != english:
                assert local in text, (kind.slug, language, local)
                assert not re.search(rf"(?<!\()\b{re.escape(english)}\b", text), (kind.slug, language, english)
