"""Setting up in the browser: files that arrive completely or not at all, and forms with clear refusals."""

import gzip
import re
import socket
from html import unescape
from urllib.parse import urlsplit

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone

from annotate.actions.action import ActionError
from annotate.actions.registry import by_name
from annotate.core import stages
from annotate.figures.draw_plan import stream_of
from annotate.figures.finish_forecast import forecast_before
from annotate.kinds import KINDS
from annotate.manager_pages import action_forms, corpus_setup, inbox, job_pages
from annotate.models import Job
from annotate.work import job_store
from annotate.work.task_creation import open_task, provisional_task
from corpora.storage.layout import manifest_of
from tests.annotate.acts import words
from tests.annotate.panels.topics import KIND as TOPIC_KIND
from tests.annotate.panels.topics import import_topics
from tests.together import HANGS, until

NEW, INBOX, NEW_TASK = "/manage/corpora/new/", "/manage/inbox/", "/manage/new-task/"
UNIFORM = {"corpus": "demo", "kind": "language", "design": "uniform"}
ROWS = b'{"id": "1", "text": "one"}\n{"id": "2", "text": "two"}\n'
KIND = 'title = "Is it good?"\nform = "choice"\n[[layout]]\nstyle = "typed"\nfields = ["words"]\n'

RECORDS = {"column-text": "", "column-language": "language", "column-body": "body", "fields": "body"}


@pytest.fixture
def desk(desk, data_dir):
    return desk


def arrived(name="posts.jsonl", content=ROWS):
    return SimpleUploadedFile(name, content)


def lying():
    """Return all files in the inbox, including unfinished ones."""
    return sorted(path.name for path in inbox.folder().iterdir())


def importing(desk, **fields):
    form = {"file": "posts.jsonl", "corpus": "july", "licence": "CC0-1.0", "holds": "posts", "column-id": "id"}
    return desk.post(NEW, form | {"column-text": "text"} | fields)


def perform_last():
    """Run the newest job, and return its outcome."""
    return by_name()["import_corpus"].perform(Job.objects.latest("pk").given)


def ended(job, state, **fields):
    now = timezone.now()
    Job.objects.filter(pk=job.pk).update(state=state, began_at=now, ended_at=now, **fields)


def done(action, options, **fields):
    """Store a finished job."""
    job = Job.objects.create(action=action, given=options)
    ended(job, Job.DONE, **fields)
    return job


def lay(name="posts.jsonl", content=ROWS):
    path = inbox.folder() / name
    path.write_bytes(content)
    return path


# --- files


@pytest.mark.parametrize("name", ["posts.jsonl", "R&D posts.jsonl", "a#b.jsonl", "a+b.jsonl", "%2e%2e%2fa.jsonl"])
def test_an_uploaded_file_lies_in_the_inbox_and_leads_to_its_columns(desk, name):
    response = desk.post(NEW, {"upload-file": arrived(name)})
    assert "one" in words(desk.get(response.url))
    [link] = [unescape(link) for link in re.findall(r'href="(\?file=[^"]*)"', desk.get(NEW).text)]
    assert "one" in words(desk.get(f"{NEW}{link}"))
    [path] = inbox.folder().iterdir()
    assert (path.read_bytes(), path.stat().st_mode & 0o077) == (ROWS, 0)


def test_the_same_file_twice_is_one_and_another_of_its_name_has_a_number_until_it_is_deleted(desk):
    for content in (ROWS, ROWS, b"other", b"other"):
        desk.post(INBOX, {"file": arrived(content=content)})
    assert lying() == ["posts (2).jsonl", "posts.jsonl"]
    text = words(desk.get(INBOX))
    assert text.count("already has another file named posts.jsonl, so yours was saved as posts (2).jsonl.") == 1
    assert desk.post(INBOX, {"delete": "posts.jsonl"}).status_code == 302
    assert lying() == ["posts (2).jsonl"]
    response = desk.post(INBOX, {"delete": "../secret_key"})
    assert (response.status_code, "The inbox does not contain the file" in words(response)) == (404, True)
    assert desk.get(NEW, {"file": "../secret_key"}).status_code == 404


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("posts.jsonl", b"x" * ((1 << 20) + 1), "posts.jsonl is larger than 1 MB, the maximum for uploads. Copy it"),
        ("posts.jsonl", b"", "is empty. Choose another file"),
        (".hidden", b"x", "Rename the file"),
        ("x" * 130, b"x", "Rename the file"),
    ],
    ids=["large", "empty", "hidden", "long name"],
)
def test_a_file_that_is_too_large_or_without_content_or_a_usable_name_is_refused(desk, settings, name, content, why):
    settings.UPLOAD_MOST = 1 << 20
    response = desk.post(INBOX, {"file": arrived(name, content)})
    assert (response.status_code, why in words(response), lying()) == (400, True, [])
    assert desk.post(INBOX, {"file": arrived(content=b"x" * (1 << 20))}).status_code == 302


def test_nobody_but_a_manager_can_leave_a_file(client, person, data_dir):
    assert client.post("/login/", {"file": arrived()}).status_code == 200
    client.force_login(person("ann").user)
    assert client.post(INBOX, {"file": arrived()}).status_code == 403
    assert client.post(NEW, {"upload-file": arrived()}).status_code == 403
    assert lying() == []


@pytest.mark.django_db(transaction=True)
def test_of_a_tab_that_was_closed_during_the_upload_nothing_stays(live_server, desk, data_dir):
    desk.get(INBOX)
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in desk.cookies.items())
    token = desk.cookies["csrftoken"].value
    head = (
        f"POST {INBOX} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookies}\r\nX-CSRFToken: {token}\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 10000000\r\n\r\n"
        '--b\r\nContent-Disposition: form-data; name="file"; filename="posts.jsonl"\r\n\r\n'
    )
    with socket.create_connection(("localhost", urlsplit(live_server.url).port), HANGS) as tab:
        tab.sendall(head.encode() + b"x" * 2_000_000)
        until(lambda: any(path.stat().st_size for path in inbox.folder().iterdir()))
    until(lambda: lying() == [])


# --- a new corpus


def test_columns_are_guessed_by_their_names_and_what_the_form_says_is_what_the_job_is_given(desk):
    path = lay("t.tsv", b"tweet_id\tBody\tcreated_at\n7\thello\t2014-01-01\n")
    page = desk.get(NEW, {"file": "t.tsv"}).text
    for column in ("tweet_id", "Body", "created_at"):
        assert f'<option value="{column}" selected>' in page
    importing(desk, file="t.tsv", **{"column-id": "tweet_id", "column-text": "Body"}, text_may_leave="no")
    options = {"corpus": "july", "files": [str(path)], "licence": "CC0-1.0", "text_may_leave": False}
    assert Job.objects.get().given == options | {"column": ["id=tweet_id", "text=Body"]}
    assert perform_last().data["accepted"] == 1


@pytest.mark.parametrize("columns", [("Nr", "Beitrag", "Sprache"), ("review_id", "texte", "langue")])
def test_columns_are_guessed_in_other_languages_and_by_their_endings(desk, columns):
    lay("t.tsv", "\t".join(columns).encode() + b"\n7\tHallo\tde\n")
    page = desk.get(NEW, {"file": "t.tsv"}).text
    for column in columns:
        assert f'<option value="{column}" selected>' in page


def test_records_are_imported_with_their_fields(desk):
    lay("r.csv", b"id,query,title,lang\n1,a,b,en\n")
    form = {"file": "r.csv", "holds": "records", "column-text": "", "column-language": "lang"}
    importing(desk, **form, fields="query title")
    perform_last()
    assert manifest_of("july").fields == ("query", "title")


def test_reserved_columns_of_records_become_other_fields_and_the_form_suggests_them(desk):
    lay("r.csv", b"id;text;Page Title;author\n1;a;b;c\n")
    page = desk.get(NEW, {"file": "r.csv", "holds": "records"}).text
    assert 'value="records" checked' in page
    assert 'name="fields" value="text page_title"' in page
    assert "Detectors" not in page.partition("</ol>")[0]
    form = {"file": "r.csv", "holds": "records", "column-text": "", "language": "en", "column-author": "author"}
    importing(desk, **form, fields="text page_title author")
    job = Job.objects.get()
    assert (job.given["fields"], job.given["column"]) == (
        "body page_title author_shown",
        ["body=text", "page_title=Page Title", "author_shown=author"],
    )
    by_name()["import_corpus"].perform(job.given)
    assert manifest_of("july").fields == ("body", "page_title", "author_shown")
    assert "Detectors" not in desk.get(NEW_TASK, {"corpus": "july"}).text.partition("</ol>")[0]


def test_only_a_column_with_readable_dates_is_preselected(desk):
    for number, (date, is_selected) in enumerate([("31.12.2024", True), ("2024-12-31", True), ("12/31/2024", False)]):
        lay(f"{number}.csv", f"id,text,date\n1,a,\n2,b,{date}\n".encode())
        page = desk.get(NEW, {"file": f"{number}.csv"}).text
        assert ('<option value="date" selected>' in page) == is_selected


def test_a_file_without_rows_and_unusual_column_names_are_noticed_before_the_import(desk):
    lay("empty.csv", b"id,text\n")
    assert "empty.csv contains no rows" in words(desk.get(NEW, {"file": "empty.csv"}))
    lay("odd.csv", b"number,headline\n1,a\n")
    page = words(desk.get(NEW, {"file": "odd.csv"}))
    assert "Choose the column with the id." in page
    assert "Choose the column with the text." in page


def test_posts_are_imported_again_as_records_from_a_filled_form(desk):
    lay("p.csv", "key;text;note\n1;Grüße;a\n2;salut;b\n".encode("cp1252"))
    form = {"file": "p.csv", "column-id": "key", "encoding": "windows-1252", "delimiter": "semicolon"}
    importing(desk, **form, licence="my own", text_may_leave="yes", source="a café")
    perform_last()
    page = desk.get(NEW_TASK, {"corpus": "july"}).text
    assert "Posts can only be asked for their language." in page
    [address] = re.findall(r'<a href="([^"]+)">Import the file as records', page)
    page = desk.get(unescape(address)).text
    for shown in ('value="my own"', 'value="a café"', 'value="records" checked', 'value="yes" checked', "Grüße"):
        assert shown in page
    assert re.findall(r'<option value="([^"]+)" selected>', page) == ["semicolon", "windows-1252", "key", "text"]
    form |= {"holds": "records", "corpus": "again", "language": "und", "fields": "text note"}
    importing(desk, **form, licence="my own", text_may_leave="yes")
    assert perform_last().data["accepted"] == 2
    page = desk.get(reverse("manage-kind-edit"), {"corpus": "again", "template": "sentiment"}).text
    assert re.search(r'name="label-en" value="Text"', page)


def test_the_way_to_records_keeps_them_preselected(desk):
    page = desk.get(NEW, {"holds": "records"}).text
    assert '<input type="hidden" name="holds" value="records">' in page
    response = desk.post(NEW, {"upload-file": arrived(), "holds": "records"})
    assert 'value="records" checked' in desk.get(response.url).text


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("t.xls", b"PK", "is a spreadsheet. Save it as .xlsx or as CSV"),
        ("t", b"only words\n", "does not show the format"),
        ("t.csv", b'"', "t.csv"),
        ("t.parquet", b"PAR1", "t.parquet"),
        ("t.jsonl.gz", gzip.compress(ROWS * 1000)[:60], "t.jsonl.gz"),
        ("t.jsonl", "ü".encode("utf-16"), "contains no column names"),
        ("t.csv", "id,текст\n1,да\n".encode("windows-1251"), "t.csv cannot be read. Choose the file's encoding."),
    ],
)
def test_a_file_that_cannot_be_read_is_forecast_anything_is_begun(desk, name, content, why):
    lay(name, content)
    response = desk.get(NEW, {"file": name})
    assert (response.status_code, why in words(response)) == (400, True)
    # Nobody needs the file's path, and it must not reveal the data folder.
    assert str(inbox.folder()) not in words(response)


def test_half_a_surrogate_pair_in_a_file_is_shown_as_a_question_mark(desk):
    lay("t.jsonl", b'{"id": "1", "text": "half \\ud83d"}\n')
    response = desk.get(NEW, {"file": "t.jsonl"})
    assert (response.status_code, "half ?" in words(response)) == (200, True)


def test_a_file_broken_in_the_middle_is_refused_and_nothing_taken(desk):
    whole = gzip.compress(b"".join(b'{"id": "%d", "text": "a text"}\n' % n for n in range(50_000)))
    lay("t.jsonl.gz", whole[: len(whole) // 2])
    response = importing(desk, file="t.jsonl.gz")
    assert (response.status_code, "t.jsonl.gz is truncated or damaged" in words(response)) == (400, True)
    assert not Job.objects.exists()
    assert desk.get("/manage/corpora/july/").status_code == 404


@pytest.mark.parametrize(("delimiter", "encoding"), [(";", "windows-1252"), ("\t", "utf-16"), (";", "utf-8")])
def test_a_csv_from_excel_is_shown_as_it_is_recognized_and_imported_as_it_was_shown(desk, delimiter, encoding):
    lay("excel.csv", "id;text\n1;Grüße, Welt\n2;zwölf\n".replace(";", delimiter).encode(encoding))
    page = desk.get(NEW, {"file": "excel.csv"})
    assert "Grüße, Welt" in words(page)
    for chosen in (encoding, {";": "semicolon", "\t": "tab"}[delimiter]):
        assert f'<option value="{chosen}" selected>' in page.text
    is_guessed = encoding == "windows-1252"
    assert ("its encoding is a guess" in words(page)) == is_guessed
    shown = {"encoding": encoding, "delimiter": {";": "semicolon", "\t": "tab"}[delimiter]}
    importing(desk, file="excel.csv", **shown)
    options = Job.objects.get().given
    assert options.get("encoding") == ("windows-1252" if is_guessed else None), "what is recognized is not repeated"
    outcome = by_name()["import_corpus"].perform(options)
    assert "excel.csv was read as " in " ".join(outcome.said)
    assert not outcome.warned, "the manager has seen the text"
    [source] = manifest_of("july").sources
    assert (source.accepted, source.encoding, source.delimiter) == (2, shown["encoding"], shown["delimiter"])


def test_the_preview_follows_the_format_and_keeps_what_was_said(desk):
    lay("polish.csv", "id;text\n1;źdźbło\n".encode("windows-1250"))
    form = {"file": "polish.csv", "corpus": "july", "licence": "my own", "preview": "yes"}
    form |= {"column-id": "", "column-text": ""}
    wrong = desk.post(NEW, form | {"delimiter": "comma", "encoding": "windows-1252"})
    assert (wrong.status_code, "id;text" in words(wrong)) == (200, True)
    right = desk.post(NEW, form | {"delimiter": "semicolon", "encoding": "windows-1250"})
    assert "źdźbło" in words(right)
    assert 'value="my own"' in right.text
    for column in ("id", "text"):
        assert f'<option value="{column}" selected>' in right.text
    unreadable = desk.post(NEW, form | {"encoding": "utf-16"})
    assert (unreadable.status_code, 'name="licence" value="my own"' in unreadable.text) == (200, True)
    assert not Job.objects.exists()


# --- what the job would refuse at once is refused beside its field


def refused_at(response):
    """Return the name of the refused field, which has the focus, and the reason."""
    [why] = re.findall(r'<p class="error" role="alert">(.*?)</p>', response.text)
    [field] = re.findall(r'<(?:input|select|textarea)[^>]*? name="([^"]+)"[^>]* autofocus', response.text)
    assert response.status_code == 400
    assert not Job.objects.exists()
    return field, unescape(why)


@pytest.mark.parametrize(
    ("changes", "field", "why"),
    [
        ({"licence": "my own"}, "text_may_leave", "The licence my own does not say whether the text may be published"),
        ({"licence": "", "text_may_leave": "yes"}, "licence", "Licence of the texts"),
        ({"corpus": "a b"}, "corpus", "'a b' is not a valid corpus name"),
        ({"column-text": ""}, "column-text", "Choose the column that contains the text."),
        ({"holds": "records"}, "fields", "Enter the fields' columns in order."),
        ({"holds": "records", "fields": "title", "language": "xx-none"}, "language", "xx-none"),
        ({"holds": "records", "fields": "title"}, "language", "or und if it is mixed or unknown"),
        ({"column-posted_at": "title"}, "column-posted_at", "The time 'one' is not valid."),
    ],
)
def test_an_import_is_checked_before_it_waits(desk, changes, field, why):
    lay("t.csv", b"key,title\n1,one\n")
    form = {"file": "t.csv", "column-id": "key", "column-text": "title"}
    at, sentence = refused_at(importing(desk, **form | changes))
    assert (at, why in sentence) == (field, True)


def test_own_texts_are_not_published_without_a_further_question(desk):
    lay()
    page = desk.get(reverse("manage-new-corpus"), {"file": "posts.jsonl"}).text
    assert '<input type="radio" name="text_may_leave" value="no" checked>' in page
    importing(desk, licence="", text_may_leave="no")
    options = Job.objects.get().given
    assert (options["licence"], options["text_may_leave"]) == (corpus_setup.OWN_TEXTS, False)


def test_a_name_that_is_taken_and_a_predictor_that_is_missing_are_refused_at_the_form(desk, demo_corpus, make_task):
    make_task([], name="taken")
    form = UNIFORM | {"size": "5", "seed": "1"}
    field, why = refused_at(desk.post(NEW_TASK, form | {"name": "taken"}))
    assert (field, "already exists" in why) == ("name", True)
    precision = form | {"name": "t", "kind": "verify", "design": "precision", "languages": "de"}
    field, why = refused_at(desk.post(NEW_TASK, precision))
    assert (field, "“Predictor” is needed" in why) == ("predictor", True)
    recall = precision | {"design": "recall", "predictor": "majority", "history": "2014-05-01..2014-08-01"}
    field, why = refused_at(desk.post(NEW_TASK, recall))
    assert (field, "must end before the window" in why) == ("history", True)


def test_a_refusal_of_a_new_task_names_the_fields_of_the_form_and_stands_beside_one(desk, demo_corpus):
    refused = desk.post(NEW_TASK, UNIFORM | {"name": "t", "size": "5", "seed": "1", "labels": "de xx"})
    field, why = refused_at(refused)
    assert (field, "'xx': unknown language code" in why, "--" in why) == ("labels", True, False)
    assert '<details class="advanced">' in refused.text
    lay("pairs.csv", b"id,language,question,passage\n1,en,why,so\n")
    fields = {"column-text": "", "column-language": "language", "fields": "question passage"}
    importing(desk, file="pairs.csv", corpus="pairs", holds="records", **fields)
    perform_last()
    Job.objects.all().delete()
    form = {"corpus": "pairs", "kind": "qa_match", "design": "records", "name": "t", "seed": "1", "redundancy": "2"}
    field, why = refused_at(desk.post(NEW_TASK, form))
    assert field == "redundancy"
    assert "With 2 as “Answers per item”, every item with two different answers is discarded." in why


def test_only_questions_that_fit_the_corpus_are_offered_and_the_others_say_what_they_need(desk, demo_corpus):
    lay("reviews.csv", b"id,language,body\n1,en,good\n")
    importing(desk, file="reviews.csv", corpus="reviews", holds="records", **RECORDS)
    perform_last()
    page = desk.get(NEW_TASK, {"corpus": "reviews"})
    assert "kind=language" not in page.text
    assert "Is this post in a language that you choose? needs posts" in words(page)
    assert "needs the fields query, title, description" in words(page)
    posts = desk.get(NEW_TASK, {"corpus": demo_corpus.name})
    assert ("kind=language" in posts.text, "needs records" in words(posts)) == (True, True)
    assert "Further posts" in words(posts)


def test_a_corpus_is_marked_among_the_files_that_may_be_predictions(desk):
    lay("mine.csv")
    lay()
    done("import_corpus", {"files": [str(inbox.folder() / "posts.jsonl")]})
    [field] = [field for field in action_forms.form("evaluate", {})[0] if field.name == "predictions"]
    assert [text for _, text, _ in field.choices] == ["mine.csv", "posts.jsonl (imported as a corpus)"]
    assert field.required


def test_a_preview_puts_its_tables_last_and_leads_back_to_its_form(desk):
    lines = ["a  b\n1  2", "People must give 2 answers.", "Audits would narrow it most:", "c  d\n3  4"]
    job = done("open_task", {"name": "t", "dry_run": True, "size": 7}, said=lines)
    page = desk.get(reverse("manage-job", args=[job.pk])).text
    assert page.index("People must give 2 answers.") < page.index("<summary>Tables") < page.index("a  b")
    assert f'href="{NEW_TASK}?job={job.pk}">Change the options' in page
    assert 'name="for_good" value="yes">Open the task<' in page


def test_a_measurement_needs_something_to_measure(desk):
    job = done("export_gold", {"task": "one"})
    out = job_store.folder(job) / "out"
    out.mkdir(parents=True)
    (out / "manifest.json").write_text("{}")
    response = desk.post(reverse("manage-do", args=["evaluate"]), {"gold": str(out)})
    job.delete()
    assert refused_at(response)[0] == "predictions"


# --- forms of actions


@pytest.mark.parametrize("name", list(action_forms.JOB_FORMS))
def test_every_action_that_has_a_page_shows_its_options_with_their_help(desk, name):
    response = desk.get(reverse("manage-do", args=[name]))
    assert response.status_code == 200
    job_form, action = action_forms.find_job_form(name)
    for option in action.options:
        # A list without choices shows only its name.
        is_shown = f'name="{option.name}"' in response.text or f"help-{option.name}" in response.text
        # The column selects appear with the chosen file.
        expected = option.name not in job_form.hidden and not (option.name == "column" and name in corpus_setup.FILES)
        assert is_shown is expected, option.name
    assert {*job_form.first, *job_form.hidden} <= {option.name for option in action.options}


def test_what_an_action_cannot_do_without_has_no_place_to_be_left_empty(desk, demo_corpus):
    assert re.search(r'<input name="size"[^>]* required', desk.get(NEW_TASK, UNIFORM).text)
    assert "not for language" not in desk.get(NEW_TASK, UNIFORM | {"kind": "qa_match"}).text.lower()
    lists = desk.get(NEW_TASK, UNIFORM | {"kind": "verify", "design": "recall"}).text
    assert not re.search(r'<input name="size"[^>]* required', lists)
    assert desk.post(NEW_TASK, UNIFORM | {"name": "t", "size": "5", "seed": "1"}).status_code == 302
    assert Job.objects.get().action == "open_task"


def test_tasks_of_one_title_are_told_apart_where_they_are_chosen(desk, make_task):
    for name in ("one", "two"):
        make_task([], name=name, title="Which language?")
    page = desk.get(reverse("manage-do", args=["delete"])).text
    assert [page.count(f">Which language? ({name})<") for name in ("one", "two")] == [1, 1]


def test_only_what_detectors_read_can_be_prelabelled(desk, demo_corpus, make_records_task):
    make_records_task()
    assert action_forms.CHOICES["prelabel", "corpus"]() == [(demo_corpus.name, demo_corpus.name)]


def test_an_impossible_option_is_refused_in_the_words_of_the_form_and_what_was_said_stays(desk, demo_corpus):
    response = desk.post(reverse("manage-do", args=["prelabel"]), {"corpus": demo_corpus.name, "k": "none"})
    assert response.status_code == 400
    assert "“Languages per detector”: 'none' is not a whole number" in words(response)
    assert 'value="none"' in response.text
    response = desk.post(reverse("manage-do", args=["import_predictions"]), {"corpus": "x", "file": "/etc/passwd"})
    assert (response.status_code, "is no longer available" in words(response)) == (400, True)
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("name", "option"),
    [(name, option.name) for name in action_forms.JOB_FORMS for option in by_name()[name].options if option.is_file],
)
@pytest.mark.parametrize("path", ["{}", "a={}"])
def test_no_option_of_a_form_reads_a_file_outside_the_inbox(db, tmp_path, name, option, path):
    secret = tmp_path / "secret.tsv"
    secret.write_text("hello\tthe salary list\n")
    form = QueryDict(mutable=True)
    form[option] = path.format(secret)
    if option in action_forms.find_job_form(name)[0].hidden:
        assert action_forms.submitted_options(name, form) == {}
        return
    with pytest.raises(ActionError, match="is no longer available"):
        action_forms.submitted_options(name, form)


def test_files_of_systems_are_chosen_from_the_inbox(desk):
    chosen = [str(lay("ours.tsv")), str(lay("theirs.tsv"))]
    form = QueryDict(mutable=True)
    form.setlist("systems", chosen)
    assert action_forms.submitted_options("open_task", form) == {"systems": chosen}
    first, _ = action_forms.form("open_task", {})
    [field] = [field for field in first if field.name == "systems"]
    assert (field.kind, field.is_file) == ("choices", True)


def test_what_cannot_be_taken_back_is_asked_first(desk, demo_corpus):
    address = reverse("manage-do", args=["delete"])
    response = desk.post(address, {"corpus": demo_corpus.name})
    assert response.status_code == 200
    assert "This cannot be undone." in words(response)
    assert not Job.objects.exists()
    assert desk.post(address, {"corpus": demo_corpus.name, "sure": "yes"}).status_code == 302
    assert Job.objects.get().given == {"corpus": demo_corpus.name}


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (KIND, "mine.toml"),
        *(
            (kind, "mine.toml, line 1: this is not valid TOML (A key has more than 10 parts)")
            for kind in (
                "a." * 20_000 + "a = 1",
                "[[" + '"a" . ' * 20_000 + "a]]",
                "x = {" + "a." * 20_000 + "a = 1}",
            )
        ),
    ],
    ids=["without a field", "key", "table", "inline"],
)
def test_a_kind_with_an_error_in_its_file_says_so_where_it_would_be_chosen(desk, demo_corpus, kind, sentence):
    lay("mine.toml", kind.encode())
    page = desk.get(NEW_TASK, {"corpus": demo_corpus.name})
    assert (sentence in words(page), 'class="notice"' in page.text) == (True, True)


def test_a_refused_import_offers_the_rows_that_it_rejected(desk):
    lay("bad.jsonl", b'{"id": "1", "text": ""}\n' * 3)
    importing(desk, file="bad.jsonl")
    job = Job.objects.get()
    with pytest.raises(ActionError) as refused:
        by_name()["import_corpus"].perform(job.given)
    ended(job, Job.FAILED, warned=[str(refused.value)])
    page = desk.get(reverse("manage-job", args=[job.pk])).text
    [link] = re.findall(r'href="([^"]*)">Download the rejected rows', page)
    assert b"".join(desk.get(link).streaming_content).count(b"\n") == 3


def test_a_failed_job_waits_for_its_manager_until_the_same_is_done(desk):
    lay()
    for name in ("july", "may"):
        importing(desk, corpus=name)
    july, may = Job.objects.order_by("pk")
    for job in (july, may):
        ended(job, Job.FAILED, warned=["--column is wrong."])
    first = words(desk.get("/manage/"))
    assert first.count("failed: “Columns” is wrong.") == 2
    importing(desk, corpus="may")
    ended(Job.objects.first(), Job.DONE)
    assert list(Job.objects.failed()) == [july]


def test_what_holds_no_rows_is_neither_kept_nor_offered(desk):
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
    for address, field in ((NEW, "upload-file"), (reverse("manage-do", args=["evaluate"]), "upload-predictions")):
        response = desk.post(address, {field: arrived("plot.png", png)})
        assert (response.status_code, "it does not contain rows" in words(response), lying()) == (400, True, [])
    response = desk.post(NEW, {"upload-file": arrived("plot.csv", png)})
    assert (response.status_code, "because it is not text" in words(response), lying()) == (400, True, [])
    refused = desk.post(NEW, {"upload-file": arrived("t.ods", b"PK")})
    assert "is a spreadsheet. Save it as .xlsx or as CSV" in words(refused)
    response = desk.post(address, {field: arrived("mine.csv", b"id;label\r\n\r\n")})
    assert "mine.csv was not saved: it has a heading but no rows. Add the rows." in words(response)
    for name, content in (
        ("plot.png", png),
        ("kind.toml", KIND.encode()),
        ("guide.md", b"# Guide"),
        ("mine.run", b"1 Q0 2\n"),
        ("heading.csv", b"id,label\n"),
        ("heading.tsv", "id\tlabel\n".encode("utf-16")),
        ("one-row.tsv", b"17\tde\n"),
    ):
        lay(name, content)
    [field] = [field for field in action_forms.form("evaluate", {})[0] if field.name == "predictions"]
    assert sorted(text for _, text, _ in field.choices) == ["mine.run", "one-row.tsv"]
    assert "plot.png" not in words(desk.get(NEW))


def again_at(desk, job):
    """Return the address to which a failed job's page links first."""
    ended(job, Job.FAILED, warned=["It failed."])
    page = desk.get(reverse("manage-job", args=[job.pk])).text
    [address] = re.findall(r'<a class="primary" href="([^"]+)">Change and try again', page)
    return unescape(address)


def test_a_failed_import_leads_back_to_its_form_as_it_was(desk):
    lay("r.csv", b"key;query;title;lang;user\n1;a;b;en;c\n")
    form = {"file": "r.csv", "holds": "records", "column-id": "key", "column-text": "", "column-language": "lang"}
    importing(desk, **form, fields="query title", licence="my own", text_may_leave="yes", source="a café")
    page = desk.get(again_at(desk, Job.objects.get())).text
    for shown in ('value="july"', 'value="my own"', 'value="a café"', 'value="query title"', "r.csv"):
        assert shown in page
    for value in ("records", "yes"):
        assert re.search(f'value="{value}" checked', page)
    assert re.findall(r'<option value="([^"]+)" selected>', page) == ["semicolon", "utf-8", "key", "lang"]


def test_any_failed_job_leads_back_to_its_form(desk, demo_corpus):
    lay("p.csv")
    options = {"corpus": demo_corpus.name, "file": str(inbox.folder() / "p.csv"), "name": "mine", "version": "7"}
    page = desk.get(again_at(desk, Job.objects.create(action="import_predictions", given=options))).text
    assert 'value="mine"' in page
    assert 'value="7"' in page
    assert re.search(r'<option value="[^"]*p.csv" selected>', page)
    options = UNIFORM | {"name": "t", "dry_run": True, "size": "7", "labels": "de"}
    page = desk.get(again_at(desk, Job.objects.create(action="open_task", given=options))).text
    for shown in ('value="t"', 'value="7"', 'value="de"'):
        assert shown in page
    assert desk.get(reverse("manage-do", args=["prelabel"]), {"job": "1"}).status_code == 404


@pytest.mark.parametrize(
    ("action", "data", "first"),
    [
        ("import_corpus", {"accepted": 5}, "Label with detectors"),
        ("prelabel", {}, "New task"),
        ("open_task", {}, "Invite people"),
        ("close", {}, "View the task"),
        ("delete", {}, ""),
    ],
)
def test_a_finished_job_leads_on(desk, demo_corpus, make_task, action, data, first):
    make_task([], name="task")
    job = Job.objects.create(action=action, given={"name": "task", "task": "task"}, corpus=demo_corpus.name)
    if action == "import_corpus":
        by_name()[action].perform({"corpus": "july", "files": [str(lay())], "licence": "CC0-1.0"})
        job.corpus, job.given = "july", {"corpus": "july"}
        job.save()
    if action == "prelabel":
        Job.objects.update(given={"corpus": demo_corpus.name})
    ended(job, Job.DONE, data=data, said=["A sentence of prose.", "a  b\n1  2"])
    page = desk.get(reverse("manage-job", args=[job.pk])).text
    primary = re.findall(r'<(?:a|button) class="primary"[^>]*>([^<]+)<', page)
    assert primary[:1] == [first] * bool(first)
    assert ("<p>A sentence of prose.</p>" in page, page.count('<pre class="said"')) == (True, 1)
    if data:
        assert re.search(r"<dt>Rows imported</dt><dd>5</dd>", page)


def test_the_page_of_each_kind_can_be_looked_at(desk):
    for kind in ("language", "verify", "qa_match", "concepts", "better_replies"):
        response = desk.get(reverse("manage-kind"), {"kind": kind})
        assert (response.status_code, "<style>" in response.text) == (200, False)
    assert desk.get(reverse("manage-kind"), {"kind": "none"}).status_code in (400, 404)


# --- what a new task would give


def foreseen(desk, **fields):
    return words(desk.get(reverse("manage-foreseen"), UNIFORM | {"size": "500", "seed": "1"} | fields))


def test_while_a_task_is_set_up_its_draw_its_readers_and_its_expected_widths_are_shown(desk, demo_corpus, person):
    person("ann", "de en fr")
    page = foreseen(desk)
    assert re.search(r"agree on \d+ of 500 posts; people read \d+ of them as a check, and \d+ on which ", page)
    assert re.search(r" Done by .* with 1 annotator\.", page)
    assert "languages have no readers" in page
    assert "finishes about" in page
    assert "all are drawn" not in page
    assert "fewer than 999,999, so all are drawn." in foreseen(desk, size="999999")
    assert foreseen(desk, labels="de, en, fr") == foreseen(desk, labels="de en fr")
    assert "of 500 posts" in foreseen(desk, labels="de, en, fr")
    assert page != foreseen(desk, audit_share="0", audit_least="0")
    page = foreseen(desk, size="1000", audit_least="1")
    assert "The 95% interval of accuracy will be about" in page
    assert "Width of the 95% interval by reading" in page
    assert "→ 15.0%" in page


@pytest.mark.slow
def test_a_forecast_warns_of_an_audit_too_small_to_measure_and_of_missing_adjudicators(desk, demo_corpus, person):
    few, least = "Too few audited items to measure the detectors", {"audit_least": "0"}
    assert f"{few}: 1 of at least 30. Raise “Audit share” under Advanced, or leave it empty." in foreseen(
        desk, size="50", audit_share="0.02", **least
    )
    assert few not in foreseen(desk, audit_share="1")
    unadjudicated = "will need an adjudicator, but there is none."
    assert unadjudicated not in foreseen(desk)  # the next step is to invite people
    person("ann", "de en fr")
    assert unadjudicated in foreseen(desk)
    assert unadjudicated not in foreseen(desk, audit_recheck="0", check_share="0")
    person("ada", "de", adjudicates=True)
    assert unadjudicated not in foreseen(desk)


def test_while_a_task_is_set_up_the_agreement_of_its_voters_is_shown(desk, demo_corpus, tmp_path):
    address = reverse("manage-new-task-voters")
    form = UNIFORM | {"size": "500", "seed": "1"}
    assert f'hx-get="{address}"' in desk.get(reverse("manage-foreseen"), form).text
    page = words(desk.get(address, form))
    assert re.search(r"The voters agree on 1,1\d\d of 1,525 items", page)
    assert "its error is unknown" in page
    assert "langid cld2 fasttext" in page
    pair = words(desk.get(address, form | {"voters": "cld2 fasttext"}))
    assert "cld2 fasttext" in pair
    assert "langid" not in pair
    assert "has no predictor 'nobody'" in words(desk.get(address, form | {"voters": "cld2 nobody"}))

    import_topics(tmp_path)
    inbox.folder().mkdir(exist_ok=True)
    kind = inbox.folder() / "topic_panel.toml"
    kind.write_text(TOPIC_KIND, encoding="utf-8")
    form = {"corpus": "topics", "kind": str(kind), "design": "records", "seed": "1"}
    assert address not in desk.get(reverse("manage-foreseen"), form).text
    form["voters"] = "a b c"
    assert f'<details open hx-get="{address}"' in desk.get(reverse("manage-foreseen"), form).text
    page = words(desk.get(address, form))
    assert re.search(r"The voters agree on \d\d\d of 280 items", page)
    assert "correlation of errors" in page


FEW_PER_LANGUAGE = {"size": "100", "audit_least": "0"}


def test_a_small_draw_audits_enough_to_measure_the_detectors_unless_a_share_is_entered(desk, demo_corpus):
    raised = re.compile(r"“Audit share” is (\d+)%, so that people read enough of them")
    page = foreseen(desk, **FEW_PER_LANGUAGE)
    assert int(raised.search(page)[1]) > 15
    assert int(re.search(r"people read (\d+) of them as a check", page)[1]) >= 30
    assert not raised.search(foreseen(desk, size="1000"))
    assert not raised.search(foreseen(desk, **FEW_PER_LANGUAGE, audit_share="0.2"))


@pytest.mark.parametrize("entered", [{}, {"audit_share": "0.1"}])
def test_a_task_is_opened_with_the_audit_share_that_its_forecast_shows(desk, demo_corpus, entered):
    desk.post(NEW_TASK, UNIFORM | {"name": "t", "seed": "1"} | FEW_PER_LANGUAGE | entered)
    share = float(Job.objects.get().given["audit_share"])
    assert share == 0.1 if entered else share > 0.15


@pytest.mark.slow
def test_a_reload_restores_the_size_and_its_forecast(new_page, manager, demo_corpus):
    page = new_page(user=manager)
    page.goto(f"{NEW_TASK}?corpus={demo_corpus.name}&kind=language&design=uniform")
    page.wait_for_selector(".headline:has-text('of 300 posts')")
    page.fill("[name=size]", "500")
    page.press("[name=size]", "Tab")
    page.wait_for_selector(".headline:has-text('of 500 posts')")
    page.reload()
    page.wait_for_selector(".headline:has-text('of 500 posts')")
    assert page.input_value("[name=size]") == "500"


def test_what_is_foretold_of_a_draw_is_what_a_draw_gives_on_average(demo_corpus):
    kind = KINDS["language"]
    task = provisional_task(kind, (), {})
    forecast = forecast_before(task, stream_of(demo_corpus.name, task), 1000)
    opened = open_task("t", demo_corpus, kind, seed="1", design="uniform", size=1000).task
    work = opened.units.exclude(stage=stages.AGREED).count()
    assert sum(row["people"] for row in forecast["drawn"]) == pytest.approx(work, rel=0.1)
    assert sum(row["posts"] for row in forecast["drawn"]) == pytest.approx(1000)
    agreed = opened.units.exclude(agreed_label="").count()
    assert sum(row["agreed"] for row in forecast["drawn"]) == pytest.approx(agreed, rel=0.05)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"size": ""}, "Enter a size"),
        ({"size": "many"}, "“Size”: 'many' is not a whole number"),
        ({"labels": "de xx"}, "xx"),
        ({"kind": "verify", "design": "recall"}, "depends on which items are drawn"),
    ],
)
def test_what_cannot_be_foretold_says_why(desk, demo_corpus, fields, why):
    assert why in foreseen(desk, **fields)


@pytest.mark.parametrize(
    ("done", "total", "unit", "words"),
    [
        (512, 2048, "B", "0.5 of 2.0 kB"),
        (0, 512, "B", "0.0 of 0.5 kB"),
        (1 << 20, 3 << 20, "B", "1.0 of 3.0 MB"),
        (1234, 5000, "post", "1,234 of 5,000 posts"),
        (7, None, "unit", "7 units"),
    ],
)
def test_progress_has_a_unit_in_which_it_can_be_seen(done, total, unit, words):
    record = {"done": done, "total": total, "unit": unit, "said": [], "began": 0.0, "at": 0.5}
    assert job_pages.progress(record)["words"] == words


@pytest.mark.parametrize(
    ("action", "sentence", "named"),
    [
        (
            "import_corpus",
            "Add --text-may-leave or --text-stays.",
            "Add “May the text be published?: yes” or “May the text be published?: no”.",
        ),
        ("import_corpus", "{inbox}/a.csv: see --max-rejects.", "a.csv: see “Maximum share of rejected rows”."),
        ("evaluate", "--map a=b: a label occurs twice.", "“Renamed labels” a=b: a label occurs twice."),
    ],
)
def test_options_are_named_as_the_form_labels_them(data_dir, action, sentence, named):
    assert action_forms.with_form_labels(sentence.format(inbox=inbox.folder()), by_name()[action].options) == named


def test_a_job_that_cannot_run_again_leads_to_its_form(desk, demo_corpus, make_task):
    make_task([], name="task")
    job = done("open_task", {"corpus": "demo", "kind": "language", "name": "task", "size": "7", "seed": "1"})
    response = desk.post(reverse("manage-job-again", args=[job.pk]), follow=True)
    assert "The task 'task' already exists." in words(response)
    assert 'value="7"' in response.text
    assert Job.objects.count() == 1


def test_a_report_on_a_job_page_names_options_as_forms_do(monkeypatch):
    reports = []
    monkeypatch.setattr(job_pages.report_renderer, "as_context", reports.append)
    words = {
        "commands": ["Open the next task with `--check-share`.", "Run `assay audit t --add 5`."],
        "all": ["Posts."],
    }
    data = {"warnings": [], "reading": ["To look while people are reading, use --sequential."], "words": words}
    job_pages._report(Job(data=data), by_name()["evaluate"])
    assert reports[0]["reading"] == ["To look while people are reading, use “Sequential”."]
    assert reports[0]["words"] == {
        "commands": ["Open the next task with “Share of checks”.", "Run `assay audit t --add 5`."],
        "all": ["Posts."],
    }


def test_the_list_of_jobs_shows_one_sentence_of_an_outcome():
    report = "mine, measured on gold\n======================\n\nmine: accuracy 90.0% on\n40 posts. More.\n\n├──┤  1.5"
    assert job_pages.first_sentence([report, "Report written to out."]) == "mine: accuracy 90.0% on 40 posts."
    assert job_pages.first_sentence(["The file a.tsv is missing."]) == "The file a.tsv is missing."
    assert job_pages.first_sentence([]) == ""
