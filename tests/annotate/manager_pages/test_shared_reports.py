"""Reports and cards in the browser, and public links to them."""

import csv
import io
import json
import re
from datetime import timedelta
from hashlib import sha256

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from annotate.core.refusals import InvalidAnswer
from annotate.models import Job, Share
from annotate.work import job_store

CARD = "---\npretty_name: A set\n---\n\n# A set\n\n**3 labels.**\n\n| a | b |\n|---|---|\n| 1 | &lt;script> |\n"


@pytest.fixture
def job(manager):
    """A job that wrote a report, a card and rows."""
    made = job_store.begin("close", {"task": "t"}, by=manager)
    out = job_store.folder(made) / "out"
    (out / "set").mkdir(parents=True)
    (out / "report.html").write_text("<!doctype html><title>t</title><p>93.4%", encoding="utf-8")
    (out / "set" / "README.md").write_text(CARD, encoding="utf-8")
    (out / "rows.jsonl").write_text("{}\n")
    now = timezone.now()
    Job.objects.filter(pk=made.pk).update(state=Job.DONE, began_at=now, ended_at=now)
    made.refresh_from_db()
    return made


def made_link(desk, job, **fields):
    page = desk.post(f"/manage/jobs/{job.pk}/share/", {"path": "report.html", "days": "30"} | fields)
    match = re.search(r'value="http://testserver(/shared/[^"]+)"', page.text)
    return match[1] if match else page.status_code


def test_reports_and_cards_open_and_everything_else_is_downloaded(desk, job):
    report, card = (desk.get(f"/manage/jobs/{job.pk}/files/{path}") for path in ("report.html", "set/README.md"))
    for page in (report, card):
        assert "Content-Disposition" not in page
        assert page["Content-Type"].startswith("text/html")
        policy = page["Content-Security-Policy"]
        assert {"default-src 'none'", "sandbox", "frame-ancestors 'none'"} <= set(policy.split("; "))
    assert report.text == "<!doctype html><title>t</title><p>93.4%"
    assert "<title>A set</title>" in card.text
    assert "<strong>3 labels.</strong>" in card.text
    assert "<td>&lt;script&gt;</td>" in card.text
    assert "pretty_name" not in card.text
    for path in ("rows.jsonl", "report.html?download"):
        got = desk.get(f"/manage/jobs/{job.pk}/files/{path}")
        b"".join(got.streaming_content)
        assert got["Content-Disposition"].startswith("attachment")


def test_a_link_shows_one_document_to_anybody_and_only_its_hash_is_stored(desk, job):
    link = made_link(desk, job)
    page = Client().get(link)
    assert (page.status_code, page.text) == (200, "<!doctype html><title>t</title><p>93.4%")
    assert (page["Referrer-Policy"], page["X-Robots-Tag"]) == ("no-referrer", "noindex, nofollow")
    assert "no-store" in page["Cache-Control"]
    assert not page.cookies
    token = link.split("/")[2]
    share = Share.objects.get()
    assert share.digest == sha256(token.encode()).hexdigest()
    assert token not in str([*Share.objects.values()])
    # The page of the job lists the link without its token.
    listed = desk.get(f"/manage/jobs/{job.pk}/").text
    assert f"until {share.expires_at:%Y-%m-%d}" in listed
    assert token not in listed
    assert share.expires_at - share.created_at == pytest.approx(timedelta(days=30), abs=timedelta(minutes=1))


def test_every_link_that_does_not_work_is_answered_alike(desk, job):
    expired, withdrawn, removed = (made_link(desk, job) for _ in range(3))
    gone = made_link(desk, job, path="set/README.md")
    last, third, second, first = Share.objects.all()
    Share.objects.filter(pk=first.pk).update(expires_at=timezone.now())
    assert desk.post(f"/manage/jobs/{job.pk}/share/{second.pk}/withdraw/").status_code == 302
    assert desk.post(f"/manage/jobs/{job.pk}/share/{second.pk}/withdraw/").status_code == 404
    (job_store.folder(job) / "out" / last.path).unlink()
    Share.objects.filter(pk=third.pk).delete()
    nobody = Client()
    pages = {link: nobody.get(link) for link in (expired, withdrawn, removed, gone, "/shared/x/")}
    assert {page.status_code for page in pages.values()} == {404}
    assert len({re.sub(r'value="[^"]*"', "", page.text) for page in pages.values()}) == 1
    assert not job_store.open_shares(job=job).exclude(pk=last.pk).exists()


def test_removing_the_job_ends_its_links(desk, job):
    link = made_link(desk, job)
    assert desk.post(f"/manage/jobs/{job.pk}/remove/").status_code == 302
    assert Client().get(link).status_code == 404


@pytest.mark.parametrize(
    ("fields", "status"),
    [({"path": "rows.jsonl"}, 404), ({"path": "../pid"}, 404), ({"days": "0"}, 400), ({"days": "366"}, 400)],
)
def test_only_documents_are_shared_and_only_for_a_time(desk, job, fields, status):
    assert made_link(desk, job, **fields) == status
    assert not Share.objects.exists()


def test_no_link_works_for_ever(manager, job):
    with pytest.raises(InvalidAnswer, match="1 to 365 days"):
        job_store.share(job, "report.html", manager, None)


def test_an_address_that_asks_too_often_is_refused(desk, job, monkeypatch):
    link = made_link(desk, job)
    monkeypatch.setattr(settings, "API_RATE_UNKNOWN", 2)
    statuses = [Client().get(link, REMOTE_ADDR="192.0.2.7").status_code for _ in range(4)]
    assert statuses[0] == 200
    assert statuses[-1] == 429


def test_the_rows_of_a_gold_set_are_downloaded_as_csv_that_runs_no_formula(desk, job):
    gold = job_store.folder(job) / "out" / "gold.jsonl"
    rows = [
        {"id": "1", "text": "=1+1", "labels": [], "share": -0.5, "judgments": [{"label": "de"}], "checked": True},
        {"id": "-2", "text": 'a\n"b", ü', "labels": ["x", "=y"], "share": None, "judgments": [], "checked": False},
    ]
    gold.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    [link] = re.findall(r'href="([^"]+\?csv)"', desk.get(f"/manage/jobs/{job.pk}/").text)
    page = desk.get(link)
    assert page["Content-Disposition"] == 'attachment; filename="gold.csv"'
    assert list(csv.reader(io.StringIO(page.getvalue().decode("utf-8-sig"), newline=""))) == [
        ["id", "text", "labels", "share", "checked"],
        ["1", "'=1+1", "", "-0.5", "true"],
        ["'-2", 'a\n"b", ü', "x; =y", "", "false"],
    ]
