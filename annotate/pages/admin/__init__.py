"""The admin's pages, for the rare: records as they stand, rights of accounts, gold answers, who needs no test."""

import knox.admin  # noqa: F401 - it registers what is taken out below
from django.contrib import admin
from knox.models import AuthToken

from annotate.pages.admin import corpora, judged, people, qualification, tasks  # noqa: F401

admin.site.site_header = "Assay"
admin.site.site_title = "Assay"
admin.site.index_title = "Manage"
admin.site.site_url = "/"
# People make and revoke their own tokens on their account's page; a token made here could not be shown to anybody.
admin.site.unregister(AuthToken)
