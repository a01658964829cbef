"""The URLs of the site."""

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView

handler400 = "annotate.pages.middleware.bad_request"
handler404 = "annotate.pages.middleware.page_not_found"
handler500 = "annotate.pages.middleware.server_error"

# This is called here rather than in AppConfig.ready, so that commands that serve no pages need not load the admin. They
# start in two thirds of the time without it.
admin.autodiscover()

urlpatterns = [
    path("admin/", admin.site.urls),
    # Browsers request this icon for pages of other packages, namely the admin and the API documentation.
    path("favicon.ico", login_not_required(RedirectView.as_view(url=static("annotate/icon.svg")))),
    path("", include("annotate.pages.urls")),
]
