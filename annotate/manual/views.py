"""The documentation: its pages, their Markdown and pictures, and search. It holds no secret, so anybody may read it."""

import mimetypes
import re
from functools import wraps

from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_cache_control
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import conditional_page, require_safe

from annotate.manual import contents, pages
from annotate.manual.contents import INDEX
from annotate.manual.search import LONGEST, search

NEAR = 5  # passages, for an address at which there is no page


def read_by_anybody(view):
    """A view for GET and HEAD, open to people who are not logged in, which answers 304 if the reader has the page
    already. Nothing can be changed here, so no CSRF token is asked for, and other methods get 405 rather than 403.

    Pages say who is logged in, so those of somebody who is are kept by nobody.
    """

    @wraps(view)
    def shown(request, *arguments, **named):
        response = view(request, *arguments, **named)
        if not request.user.is_authenticated:
            patch_cache_control(response, no_cache=True)
        return response

    return login_not_required(csrf_exempt(require_safe(conditional_page(shown))))


@read_by_anybody
def index(request):
    """The first page, or what was found in all of them."""
    return _found(request, request.GET["q"]) if "q" in request.GET else _shown(request, INDEX)


@read_by_anybody
def page(request, page):
    if section := contents.section_of_folder(page):
        return redirect(f"{pages.address(INDEX)}#{pages.anchor_of(section, set())}")
    if page == INDEX or f"{page}.md" not in contents.files():
        return _missing(request, page)
    return _shown(request, page)


@read_by_anybody
def file(request, file):
    """A page as Markdown, a picture, or whatever else lies beside them."""
    found = contents.files().get(file)
    if found is None:
        return _missing(request, file.rpartition(".")[0])
    # Markdown as text, which every browser shows.
    kind = "text/plain; charset=utf-8" if file.endswith(".md") else mimetypes.guess_type(file)[0]
    return HttpResponse(found.read_bytes(), content_type=kind or "application/octet-stream")


def _shown(request, path):
    before, after = contents.around(path)
    context = {"page": pages.page(path), "before": before, "after": after, **_frame(path)}
    return render(request, "annotate/docs/page.html", context)


def _found(request, asked, missing=False):
    asked = asked.strip()[:LONGEST]
    passages, number = search(asked)
    # Where there is no page the contents come after what was found, and are to be seen.
    shown = passages[:NEAR] if missing else passages
    context = {"asked": asked, "passages": shown, "number": number, "missing": missing, **_frame("")}
    return render(request, "annotate/docs/found.html", context, status=404 if missing else 200)


def _missing(request, path):
    """What the words of the address find, and the contents."""
    return _found(request, re.sub(r"[\W_]+", " ", path), missing=True)


def _frame(path):
    """What stands around a page: the contents, and where in them it is."""
    return {
        "contents": contents.contents(),
        "here": path,
        "crumbs": contents.crumbs(path),
        "longest": LONGEST,
    }
