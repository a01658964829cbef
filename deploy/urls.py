"""Every address of the site."""

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView

handler400 = "annotate.pages.middleware.bad_request"
handler404 = "annotate.pages.middleware.page_not_found"
handler500 = "annotate.pages.middleware.server_error"

# Here, and not whenever Django starts: a command that serves no page starts in two thirds of the time.
admin.autodiscover()

urlpatterns = [
    path("admin/", admin.site.urls),
    # Pages that are not ours, the admin's and the API's, make browsers ask for it.
    path("favicon.ico", login_not_required(RedirectView.as_view(url=static("annotate/icon.svg")))),
    path("", include("annotate.pages.urls")),
]
