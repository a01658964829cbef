"""The site's URL patterns, with the right that each page requires and the HTTP methods it allows.

The API's URL patterns are in the package api.
"""

from collections.abc import Callable, Collection

from django.contrib import admin
from django.contrib.auth import views as auth
from django.contrib.auth.decorators import login_not_required
from django.templatetags.static import static
from django.urls import URLPattern, include, path, re_path
from django.views.decorators.http import require_http_methods
from django.views.generic import RedirectView

from annotate.manager_pages import (
    account_administration,
    corpus_setup,
    dashboard,
    job_pages,
    kind_editor,
    task_configuration,
    task_items,
    task_reports,
    task_setup,
)
from annotate.manual import views
from annotate.pages import account, adjudicators, annotators, qualification_test, self_service, start_page
from annotate.pages.access import Guard, View, with_permit, with_right

handler400 = "annotate.pages.error_responses.bad_request"
handler404 = "annotate.pages.error_responses.page_not_found"
handler500 = "annotate.pages.error_responses.server_error"

# Call this here rather than in AppConfig.ready, so that commands that serve no pages don't load the admin. It takes up
# a third of their startup time.
admin.autodiscover()

GET, POST, BOTH = ("GET",), ("POST",), ("GET", "POST")
PERMIT = "permit"  # the user must be an annotator; the view receives their permit for the task
OWN = "own"  # the user must be logged in; views that change a task get the permit in their transaction


def page(
    address: str,
    view: View,
    name: str,
    right: str,
    methods: Collection[str] = GET,
    around: Callable[[View, Guard], View] = lambda view, guard: view,
) -> URLPattern:
    """Return a view's URL pattern, with checks of the user's right and the HTTP method.

    right: a key of access.RIGHTS, or PERMIT or OWN
    methods: allowed HTTP methods
    around: wraps the checked view; takes the view and the decorator that checks the right
    """
    guards = {PERMIT: with_permit, OWN: lambda view: view}
    guard = guards.get(right) or with_right(right)
    return path(address, around(require_http_methods(methods)(guard(view)), guard), name=name)


OF_ANNOTATORS = [
    page("", start_page.home, "home", OWN),
    page("history/", self_service.history, "history", "annotate"),
    page("rest/", start_page.rest, "rest", "annotate"),
    path("login/", account.LogIn.as_view(), name="login"),
    path("language/", account.choose_language, name="tongue"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("invite/<str:token>/", account.accept_invite, name="invite"),
    path("welcome/<str:token>/", account.first_manager, name="first-manager"),
    path("account/", account.account, name="account"),
    page("account/disturbing/", start_page.choose_disturbing, "disturbing", "annotate", POST),
    path("account/password/", account.change_password, name="password"),
    page("account/preferences/", self_service.preferences, "preferences", OWN, BOTH),
    page("account/languages/", self_service.languages, "languages", "annotate", BOTH),
    path("forgotten/", account.forgotten, name="forgotten"),
    path("forgotten/<uidb64>/<token>/", account.Reset.as_view(), name="reset"),
    page("replies/<int:flag>/read/", start_page.dismiss_reply, "reply-read", "annotate", POST),
    page("notes/<int:note>/read/", start_page.dismiss_note, "note-read", "annotate", POST),
]
IN_A_TASK = [
    page("", annotators.queue, "queue", PERMIT),
    page("start/", annotators.start, "start", OWN, POST),
    page("judge/", annotators.judge, "judge", OWN, POST),
    page("flag/", annotators.flag, "flag", OWN, POST),
    page("undo/", annotators.undo, "undo", OWN, POST),
    page("pause/", start_page.pause, "pause", "annotate", POST),
    page("sheet/", annotators.sheet, "sheet", PERMIT),
    page("sheet/start/", annotators.start_sheet, "sheet-start", OWN, POST),
    page("sheet/judge/", annotators.judge_sheet, "sheet-judge", "annotate", POST),
    page("answers/", self_service.answers, "answers", PERMIT),
    page("answers/<int:judgment>/", self_service.change, "change", PERMIT, BOTH),
    page("consent/", qualification_test.consent, "consent", "annotate", BOTH),
    page("guidelines/", qualification_test.guidelines, "guidelines", "read"),
    page("adjudication/", adjudicators.cases, "adjudication", "adjudicate"),
    page("adjudication/together/", adjudicators.settle_together, "adjudicate-together", "adjudicate", POST),
    page("adjudication/<int:unit>/", adjudicators.adjudicate, "adjudicate", "adjudicate", BOTH),
    page("adjudication/<int:unit>/unsettle/", adjudicators.unsettle, "unsettle", "adjudicate", POST),
]
OF_A_TEST = [
    page("", qualification_test.qualification, "qualification", PERMIT),
    page("practice/", qualification_test.practise, "qualification-practice", OWN, POST),
    page("test/", qualification_test.take_test, "qualification-test", OWN, POST),
    page("answer/", qualification_test.answer, "qualification-answer", OWN, POST),
]
# (URL below manage/, view, name without the prefix manage-, right, allowed methods)
OF_MANAGERS: list[tuple[str, View, str, str, tuple[str, ...]]] = [
    ("", dashboard.manage, "", "manage", GET),
    ("now/", dashboard.now, "now", "manage", GET),
    ("dates/", dashboard.dates, "dates", "manage", GET),
    ("people/", dashboard.everybody, "everybody", "manage", GET),
    ("people/hours.csv", dashboard.timesheet, "hours", "manage", GET),
    ("people/languages/", account_administration.languages, "languages", "manage", BOTH),
    ("questions/", task_items.questions, "questions", "manage", GET),
    ("questions/<int:flag>/", task_items.decide, "question", "decide", POST),
    ("tasks/<slug:task>/", task_reports.task, "task", "manage", GET),
    ("tasks/<slug:task>/items/", task_items.items, "items", "manage", GET),
    ("tasks/<slug:task>/items/<int:unit>/", task_items.item, "item", "manage", GET),
    ("tasks/<slug:task>/quality/", task_reports.quality, "quality", "manage", GET),
    ("tasks/<slug:task>/pace/", task_reports.pace, "pace", "manage", GET),
    ("tasks/<slug:task>/people/", task_reports.people, "people", "manage", GET),
    ("tasks/<slug:task>/members/", account_administration.members, "members", "decide", POST),
    ("tasks/<slug:task>/comments/", task_reports.comments, "comments", "manage", GET),
    ("tasks/<slug:task>/notes/", task_items.list_notes, "notes", "manage", GET),
    ("tasks/<slug:task>/notes/write/", task_items.note, "note", "decide", POST),
    ("tasks/<slug:task>/tests/", task_reports.tests, "tests", "manage", GET),
    ("tasks/<slug:task>/agreement/", task_reports.agreement, "agreement", "manage", GET),
    ("tasks/<slug:task>/rule/", task_reports.rule, "rule", "manage", GET),
    ("tasks/<slug:task>/people/<int:person>/", task_reports.person_page, "person", "manage", GET),
    ("tasks/<slug:task>/people/<int:person>/lift/", task_reports.lift, "lift", "decide", POST),
    ("tasks/<slug:task>/people/<int:person>/pause/", task_reports.pause, "pause", "decide", POST),
    ("tasks/<slug:task>/people/<int:person>/void/", task_reports.void, "void", "decide", BOTH),
    ("tasks/<slug:task>/guidelines/", task_configuration.guidelines, "guidelines", "manage", GET),
    ("tasks/<slug:task>/guidelines/add/", task_configuration.add, "guidelines-add", "guide", POST),
    ("tasks/<slug:task>/guidelines/preview/", task_configuration.preview, "guidelines-preview", "guide", POST),
    ("tasks/<slug:task>/settings/", task_configuration.settings, "settings", "manage", GET),
    ("tasks/<slug:task>/settings/change/", task_configuration.change, "settings-change", "decide", POST),
    ("tasks/<slug:task>/settings/switch/", task_configuration.switch, "switch", "decide", POST),
    ("tasks/<slug:task>/extend/", task_configuration.extend, "extend", "start", BOTH),
    ("tasks/<slug:task>/export/", job_pages.export, "export", "decide", BOTH),
    ("tasks/<slug:task>/jobs/", job_pages.jobs, "task-jobs", "manage", GET),
    ("accounts/new/", account_administration.new_accounts, "new-accounts", "invite", BOTH),
    ("accounts/links/", account_administration.links, "links", "invite", BOTH),
    ("accounts/managers/new/", account_administration.new_manager, "new-manager", "raise", BOTH),
    ("accounts/<int:person>/", account_administration.account, "account", "manage", GET),
    ("accounts/<int:person>/change/", account_administration.change_account, "account-change", "invite", POST),
    ("accounts/<int:person>/do/", account_administration.act_on_account, "account-do", "invite", POST),
    ("routes/", task_configuration.routes, "routes", "manage", GET),
    ("routes/new/", task_configuration.new_route, "new-route", "route", BOTH),
    ("routes/<str:language>/", task_configuration.route, "route", "route", BOTH),
    ("routes/<str:language>/remove/", task_configuration.remove_route, "route-remove", "route", POST),
    ("corpora/", corpus_setup.corpora, "corpora", "manage", GET),
    ("corpora/new/", corpus_setup.new_corpus, "new-corpus", "decide", BOTH),
    ("corpora/<slug:name>/", corpus_setup.corpus, "corpus", "manage", GET),
    ("corpora/<slug:name>/rejects/<int:number>/", corpus_setup.rejects, "rejects", "manage", GET),
    ("new-task/", task_setup.new_task, "new-task", "decide", BOTH),
    ("new-task/forecast/", task_setup.forecast, "foreseen", "manage", GET),
    ("new-task/voters/", task_setup.agreement, "new-task-voters", "manage", GET),
    ("kind/", task_setup.kind, "kind", "manage", GET),
    ("kind/edit/", kind_editor.edit, "kind-edit", "decide", BOTH),
    ("inbox/", corpus_setup.inbox_page, "inbox", "decide", BOTH),
    ("do/<slug:action>/", job_pages.do, "do", "decide", BOTH),
    ("jobs/", job_pages.jobs, "jobs", "manage", GET),
    ("jobs/<int:job>/", job_pages.job, "job", "manage", GET),
    ("jobs/<int:job>/cancel/", job_pages.cancel, "job-cancel", "start", POST),
    ("jobs/<int:job>/again/", job_pages.again, "job-again", "start", POST),
    ("jobs/<int:job>/remove/", job_pages.remove, "job-remove", "start", POST),
    ("jobs/<int:job>/share/", job_pages.share, "job-share", "start", POST),
    ("jobs/<int:job>/share/<int:share>/withdraw/", job_pages.withdraw, "job-withdraw", "start", POST),
    ("jobs/<int:job>/packed/", job_pages.download_all, "job-packed", "manage", GET),
    ("jobs/<int:job>/files/<path:path>", job_pages.file, "job-file", "manage", GET),
    ("webhooks/", task_configuration.webhooks, "webhooks", "manage", GET),
    ("webhooks/new/", task_configuration.new_webhook, "new-webhook", "start", BOTH),
    ("webhooks/<int:webhook>/", task_configuration.webhook, "webhook", "manage", GET),
    ("webhooks/<int:webhook>/delete/", task_configuration.delete_webhook, "webhook-delete", "start", POST),
    ("webhooks/notifications/<int:delivery>/again/", task_configuration.send_again, "delivery-again", "start", POST),
]

urlpatterns = [
    path("tasks/<slug:task>/", include(IN_A_TASK)),  # first, because every answer is sent there
    path("admin/", admin.site.urls),
    # Browsers request this icon for pages that don't link their own: the admin and the API's documentation.
    path("favicon.ico", login_not_required(RedirectView.as_view(url=static("annotate/icon.svg")))),
    *OF_ANNOTATORS,
    path("tasks/<slug:task>/qualification/<str:language>/", include(OF_A_TEST)),
    *(
        page(f"manage/{address}", view, f"manage-{name}".rstrip("-"), right, methods, around=dashboard.keeps_form)
        for address, view, name, right, methods in OF_MANAGERS
    ),
    path("shared/<str:token>/", job_pages.shared, name="shared"),
    path("docs/", views.index, name="docs"),
    re_path(r"^docs/(?P<file>.+\.[a-z]+)$", views.file, name="docs-file"),
    path("docs/<path:page>/", views.page, name="docs-page"),
    path("api/v1/", include("annotate.api.annotation_api")),
]
