"""unlock: somebody who typed too many wrong passwords may log in again."""

from django.contrib.auth.models import User

from annotate.actions.action import Action, ActionError, Outcome
from annotate.core.option import Option
from annotate.reports.tables import many
from annotate.work.accounts import unlock

OPTIONS = (Option("name", required=True, argument=True, help="the user name that has to wait"),)


def run(values, progress) -> Outcome:
    # As the log-in normalises what is typed there.
    name = User.normalize_username(values["name"])
    user = User.objects.filter(username=name).first()
    if user is None:
        raise ActionError(f"There is no account {name!r}.")
    wrong = unlock(name)
    said = (
        f"{name} may log in at once; {many(wrong, 'wrong password')} forgotten."
        if wrong
        else (f"{name} did not have to wait: no wrong password was typed in the last half hour.")
    )
    locked = f"{name} is locked out by a manager, who lets them in again on the page Accounts."
    return Outcome([said], [] if user.is_active else [locked], {"name": name, "wrong_passwords": wrong})


ACTION = Action(
    "unlock",
    "Let somebody log in at once who typed too many wrong passwords, and would have to wait for half an hour.",
    OPTIONS,
    run,
)
