"""add_manager: an account that may do everything, the first one of an installation among them."""

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

from annotate.actions.action import Action, ActionError, Outcome
from annotate.actions.options import assumed
from annotate.core.option import Option
from annotate.work.accounts import add_manager, may_change_all

OPTIONS = (Option("name", required=True, argument=True, help="the user name to log in with"),)
BACK = (
    "To take it back, open the account in the admin under Users, and take the ticks off “Staff status” and “Superuser "
    "status”."
)


def asks(values) -> list[str]:
    """What is to be confirmed, if the account exists already and does not have the right yet; otherwise nothing."""
    name = values["name"]
    user = User.objects.filter(username=name).first()
    if not user or may_change_all(user):
        return []
    locked = "" if user.is_active else " It is locked out now, and will be let in."
    return [
        f"There is an account {name} already. This lets whoever logs in with it see and change everything: corpora, "
        f"tasks, people, votes and answers.{locked} {BACK}"
    ]


def run(values, progress) -> Outcome:
    name = values["name"]
    try:
        User._meta.get_field("username").clean(name, None)
    except ValidationError as error:
        raise ActionError(
            f"{name!r} cannot be a user name; use at most 150 letters, digits and the characters @ . + - _"
        ) from error
    _, password = add_manager(name)
    data = {"name": name, "password": password}
    if password is None:
        return Outcome(
            [
                f"{name} is a manager. The password stays as it was; `assay django changepassword {name}` sets "
                f"another. {BACK}"
            ],
            data=data,
        )
    said = (
        f"{name} is a manager. Log in at {settings.SITE}/{assumed()} with the password  {password}  which is shown "
        "only here."
    )
    return Outcome([said], data=data)


ACTION = Action(
    "add_manager",
    "Make an account for a manager, who sees to corpora, tasks and people, and print its password; or make a manager "
    "of an account that there is already, which is asked about first.",
    OPTIONS,
    run,
    asks=asks,
)
