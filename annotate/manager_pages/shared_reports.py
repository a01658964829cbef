"""Reports and cards that open in the browser, for managers and for anybody with a link (work/job_store.py).

Assay generates the documents, but they quote texts and names from files. Each document is therefore sent with its own
content security policy, which allows only inline styles: no scripts, no loading of resources, and no access to the
site. The export of the gold set determines which texts a report or card may quote (Export.with_text).
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
from annotate.pages.access import UserRequest, whole_number
from annotate.pages.api_access import allows_visitor
from annotate.work import job_store

REPORT, CARD = "report.html", ".md"
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; sandbox; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
# Cards escape all text that comes from files, so the only tags are those of the templates.
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
TOO_MANY = 429


def is_document(path: str) -> bool:
    """Return whether an output file of a job opens in the browser."""
    return path.rpartition("/")[2] == REPORT or path.endswith(CARD)


def document(file: Path) -> HttpResponse:
    """Return a report or card as a self-contained page."""
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
    """Create a link to one of the job's documents and return the URL, which is shown only once.

    POST fields:
    path: path of the document
    days: number of days for which the link is valid
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
@csrf_exempt  # changes no data; with the check, a POST would fail because of the token instead of the method
@require_safe
def shared(request: HttpRequest, token: str) -> HttpResponse:
    """Show a shared document to anybody with the link.

    The response is the same for all invalid links, so it does not reveal whether a link ever existed.
    """
    if not allows_visitor(request):
        return HttpResponse("Too many requests. Try again in a minute.\n", status=TOO_MANY, content_type="text/plain")
    found = job_store.find_share(token)
    file = found and job_store.folder(found.job) / "out" / found.path
    if not file or not file.is_file():
        raise Http404
    return document(file)
