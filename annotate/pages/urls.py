"""The pages' addresses; the API's are in api.py."""

from django.contrib.auth import views as auth
from django.urls import include, path, re_path

from annotate.pages import account, adjudicators, annotators, consent, docs, history, managers, personal, qualification

urlpatterns = [
    path("", annotators.home, name="home"),
    path("history/", history.history, name="history"),
    path("rest/", annotators.rest, name="rest"),
    path("login/", auth.LoginView.as_view(template_name="annotate/login.html"), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("invite/<str:token>/", account.accept_invite, name="invite"),
    path("account/", account.account, name="account"),
    path("account/password/", account.change_password, name="password"),
    path("account/preferences/", personal.preferences, name="preferences"),
    path("account/languages/", personal.languages, name="languages"),
    path("forgotten/", account.forgotten, name="forgotten"),
    path("forgotten/<uidb64>/<token>/", account.Reset.as_view(), name="reset"),
    path("tasks/<slug:task>/", annotators.queue, name="queue"),
    path("tasks/<slug:task>/start/", annotators.start, name="start"),
    path("tasks/<slug:task>/judge/", annotators.judge, name="judge"),
    path("tasks/<slug:task>/choose/", annotators.choose, name="choose"),
    path("tasks/<slug:task>/undo/", annotators.undo, name="undo"),
    path("tasks/<slug:task>/pause/", annotators.pause, name="pause"),
    path("tasks/<slug:task>/sheet/", annotators.sheet, name="sheet"),
    path("tasks/<slug:task>/sheet/start/", annotators.start_sheet, name="sheet-start"),
    path("tasks/<slug:task>/sheet/judge/", annotators.judge_sheet, name="sheet-judge"),
    path("tasks/<slug:task>/answers/", history.answers, name="answers"),
    path("tasks/<slug:task>/answers/<int:judgment>/", history.change, name="change"),
    path("tasks/<slug:task>/consent/", consent.consent, name="consent"),
    path("tasks/<slug:task>/guidelines/", qualification.guidelines, name="guidelines"),
    *(
        path(f"tasks/<slug:task>/qualification/<str:language>/{address}", view, name=name)
        for address, view, name in (
            ("", qualification.qualification, "qualification"),
            ("practice/", qualification.practise, "qualification-practice"),
            ("test/", qualification.take_test, "qualification-test"),
            ("answer/", qualification.answer, "qualification-answer"),
            ("choose/", qualification.choose, "qualification-choose"),
        )
    ),
    path("tasks/<slug:task>/adjudication/", adjudicators.adjudication, name="adjudication"),
    path("tasks/<slug:task>/adjudication/<int:unit>/", adjudicators.adjudicate, name="adjudicate"),
    path("tasks/<slug:task>/adjudication/<int:unit>/choose/", adjudicators.choose, name="adjudicate-choose"),
    path("tasks/<slug:task>/adjudication/<int:unit>/unsettle/", adjudicators.unsettle, name="unsettle"),
    path("manage/", managers.manage, name="manage"),
    path("manage/people/languages/", personal.requests, name="manage-languages"),
    path("manage/tasks/<slug:task>/", managers.task, name="manage-task"),
    path("manage/tasks/<slug:task>/people/", managers.people, name="manage-people"),
    path("manage/tasks/<slug:task>/comments/", managers.comments, name="manage-comments"),
    path("manage/tasks/<slug:task>/tests/", managers.tests, name="manage-tests"),
    path("manage/tasks/<slug:task>/agreement/", managers.agreement, name="manage-agreement"),
    path("manage/tasks/<slug:task>/rule/", managers.rule, name="manage-rule"),
    path("manage/tasks/<slug:task>/people/<int:annotator>/", managers.person, name="manage-person"),
    path("manage/tasks/<slug:task>/people/<int:annotator>/lift/", managers.lift, name="manage-lift"),
    path("manage/tasks/<slug:task>/people/<int:annotator>/pause/", managers.pause, name="manage-pause"),
    path("manage/tasks/<slug:task>/people/<int:annotator>/void/", managers.void, name="manage-void"),
    path("docs/", docs.index, name="docs"),
    re_path(r"^docs/(?P<file>.+\.[a-z]+)$", docs.file, name="docs-file"),
    path("docs/<path:page>/", docs.page, name="docs-page"),
    path("api/v1/", include("annotate.pages.api")),
]
