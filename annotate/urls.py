"""The pages' addresses; the API's are in annotate/api.py."""

from django.contrib.auth import views as auth
from django.urls import include, path

from annotate import adjudication_views, views
from annotate.crowd import qualification_views
from annotate.manage import management_views

urlpatterns = [
    path("", views.home, name="home"),
    path("login/", auth.LoginView.as_view(template_name="annotate/login.html"), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("invite/<str:token>/", views.accept_invite, name="invite"),
    path("account/", views.account, name="account"),
    path("tasks/<slug:task>/", views.queue, name="queue"),
    path("tasks/<slug:task>/start/", views.start, name="start"),
    path("tasks/<slug:task>/judge/", views.judge, name="judge"),
    path("tasks/<slug:task>/undo/", views.undo, name="undo"),
    path("tasks/<slug:task>/pause/", views.pause, name="pause"),
    path("tasks/<slug:task>/sheet/", views.sheet, name="sheet"),
    path("tasks/<slug:task>/sheet/start/", views.start_sheet, name="sheet-start"),
    path("tasks/<slug:task>/sheet/judge/", views.judge_sheet, name="sheet-judge"),
    path("tasks/<slug:task>/answers/", views.answers, name="answers"),
    path("tasks/<slug:task>/guidelines/", qualification_views.guidelines, name="guidelines"),
    *(
        path(f"tasks/<slug:task>/qualification/<str:language>/{address}", view, name=name)
        for address, view, name in (
            ("", qualification_views.qualification, "qualification"),
            ("practice/", qualification_views.practise, "qualification-practice"),
            ("test/", qualification_views.take_test, "qualification-test"),
            ("answer/", qualification_views.answer, "qualification-answer"),
        )
    ),
    path("tasks/<slug:task>/adjudication/", adjudication_views.adjudication, name="adjudication"),
    path("tasks/<slug:task>/adjudication/<int:unit>/", adjudication_views.adjudicate, name="adjudicate"),
    path("tasks/<slug:task>/adjudication/<int:unit>/unsettle/", adjudication_views.unsettle, name="unsettle"),
    path("manage/", management_views.manage, name="manage"),
    path("manage/tasks/<slug:task>/", management_views.task, name="manage-task"),
    path("manage/tasks/<slug:task>/people/", management_views.people, name="manage-people"),
    path("manage/tasks/<slug:task>/tests/", management_views.tests, name="manage-tests"),
    path("manage/tasks/<slug:task>/agreement/", management_views.agreement, name="manage-agreement"),
    path("manage/tasks/<slug:task>/rule/", management_views.rule, name="manage-rule"),
    path("manage/tasks/<slug:task>/people/<int:annotator>/", management_views.person, name="manage-person"),
    path("manage/tasks/<slug:task>/people/<int:annotator>/lift/", management_views.lift, name="manage-lift"),
    path("manage/tasks/<slug:task>/people/<int:annotator>/pause/", management_views.pause, name="manage-pause"),
    path("manage/tasks/<slug:task>/people/<int:annotator>/void/", management_views.void, name="manage-void"),
    path("api/v1/", include("annotate.api")),
]
