"""Reports and cards that open in the browser: for managers, and for anybody who has a link (work/job_store.py).

A document is made by Assay, but it quotes texts and names from files. It is therefore sent with a content security
policy of its own, which allows its styles and nothing else: it runs no script, loads nothing, and has no access to the
site. Which texts a report or card may quote was decided when the set was exported (Export.with_text).
"""

import re
from collections.abc import Mapping
from pathlib import Path

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import mark_safe
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from markdown_it import MarkdownIt

from annotate.models import Job
from annotate.pages.access import UserRequest, allows_visitor, whole_number
from annotate.work import job_store

REPORT, CARD = "report.html", ".md"
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; sandbox; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
# Cards escape all text that comes from files, so their only tags are those of their templates.
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
TOO_MANY = 429


def is_document(path: str) -> bool:
    """Return whether an output file of a job opens in the browser."""
    return path.rpartition("/")[2] == REPORT or path.endswith(CARD)


def document(file: Path) -> HttpResponse:
    """Return a report or card as a page that stands alone."""
    text = file.read_text(encoding="utf-8")
    if file.name != REPORT:
        body = MARKDOWN.render(FRONT_MATTER.sub("", text))
        title = re.search(r"<h1>(.*?)</h1>", body)
        context = {"title": mark_safe(title[1] if title else ""), "body": mark_safe(body)}  # noqa: S308 - see MARKDOWN
        text = render_to_string("annotate/card.html", context)
    response = HttpResponse(text)
    response["Content-Security-Policy"] = POLICY
    response["Referrer-Policy"] = "no-referrer"
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response


def make_link(request: UserRequest, job: Job, files: Mapping[str, Path]) -> str:
    """Create a link to one of the job's documents and return its URL, which is shown only once.

    POST fields:
    path: path of the document
    days: number of days for which the link works
    """
    path = request.POST.get("path", "")
    if path not in files or not is_document(path):
        raise Http404
    token = job_store.share(job, path, request.user, whole_number(request.POST.get("days", "")))
    return request.build_absolute_uri(reverse("shared", args=[token]))


def withdraw(request: UserRequest, job: Job, share: int) -> HttpResponse:
    job_store.withdraw_share(job, share)
    return redirect("manage-job", job.pk)


@login_not_required
@csrf_exempt  # it changes nothing, and without this a POST would be refused for its token instead of its method
@require_safe
def shared(request: HttpRequest, token: str) -> HttpResponse:
    """Show a shared document to anybody who has its link.

    All links that do not work get the same response, so it does not reveal whether a link existed.
    """
    if not allows_visitor(request):
        return HttpResponse("Too many requests. Try again in a minute.\n", status=TOO_MANY, content_type="text/plain")
    found = job_store.find_share(token)
    file = found and job_store.folder(found.job) / "out" / found.path
    if not file or not file.is_file():
        raise Http404
    return document(file)
