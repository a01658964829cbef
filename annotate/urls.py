"""The pages' addresses; the API's are in annotate/api.py."""

from django.contrib.auth import views as auth
from django.urls import include, path

from annotate import adjudication_views, views

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
    path("tasks/<slug:task>/guidelines/", views.guidelines, name="guidelines"),
    path("tasks/<slug:task>/adjudication/", adjudication_views.adjudication, name="adjudication"),
    path("tasks/<slug:task>/adjudication/<int:unit>/", adjudication_views.adjudicate, name="adjudicate"),
    path("tasks/<slug:task>/adjudication/<int:unit>/unsettle/", adjudication_views.unsettle, name="unsettle"),
    path("api/v1/", include("annotate.api")),
]
