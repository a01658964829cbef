"""create_token: an API token for an account."""

from django.contrib.auth.models import User
from knox.models import AuthToken

from annotate.actions.action import Action, ActionError, Outcome
from annotate.core.option import Option

OPTIONS = (Option("username", required=True, argument=True, help="the user name of the account that the token is for"),)


def run(values, progress) -> Outcome:
    name = values["username"]
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        raise ActionError(f"There is no active account {name!r}.")
    instance, token = AuthToken.objects.create(user)
    return Outcome([token], data={"username": name, "token": token, "expires": instance.expiry})


ACTION = Action(
    "create_token",
    "Make an API token for an account and print it; only its hash is kept. It works for 90 days, and until the "
    "password is changed; its owner can renew it on the account's page.",
    OPTIONS,
    run,
)
