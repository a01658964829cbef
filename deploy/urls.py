"""The URLs of the site."""

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView

handler400 = "annotate.pages.middleware.bad_request"
handler404 = "annotate.pages.middleware.page_not_found"
handler500 = "annotate.pages.middleware.server_error"

# Here rather than in AppConfig.ready, because commands that serve no pages start in two thirds of the time without it.
admin.autodiscover()

urlpatterns = [
    path("admin/", admin.site.urls),
    # Browsers request it for third-party pages (the admin and the API docs).
    path("favicon.ico", login_not_required(RedirectView.as_view(url=static("annotate/icon.svg")))),
    path("", include("annotate.pages.urls")),
]
