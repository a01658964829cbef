"""In which language pages speak: that of the person's browser, or the one that they chose before they logged in.

What managers, programs and readers of the documentation are told is English, whatever else somebody speaks; this is
decided here alone. What a kind says in a language is in kinds/tongues.py, and all else in the catalogs of locale/.
"""

from django.contrib.auth.decorators import login_not_required
from django.utils.cache import patch_vary_headers
from django.utils.translation import get_language, get_language_from_request, override
from django.views.decorators.http import require_POST
from django.views.i18n import set_language

from annotate.kinds.tongues import ENGLISH

# Addresses of whose pages there is no other language.
IN_ENGLISH = ("/manage/", "/admin/", "/api/", "/docs/")


def is_english(path: str) -> bool:
    """Whether what stands at an address speaks English alone."""
    return path.startswith(IN_ENGLISH)


class TongueMiddleware:
    """Chooses by address, cookie and browser, in this order; without a statement of the database."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        spoken = ENGLISH if is_english(request.path_info) else get_language_from_request(request)
        with override(spoken):
            request.LANGUAGE_CODE = get_language()
            response = self.get_response(request)
        response.headers.setdefault("Content-Language", spoken)
        patch_vary_headers(response, ("Accept-Language",))
        return response


# Keeps the language in a cookie, and leads back to where the form stood.
choose = login_not_required(require_POST(set_language))
