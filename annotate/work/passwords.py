"""What comes with passwords: what a new one ends, and wrong ones, after which a name has to wait.

django-axes counts wrong passwords, by name and address (deploy/settings.py says how many, and for how long).
"""

from datetime import datetime

from axes.helpers import get_cool_off
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.db.models import Max, Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.models import Invite


class NewPasswordEndsTheRest:
    """Ends what an account's old password opened, whoever sets the new one and wherever.

    It stands among the validators, since Django tells these of every password that was set. Sessions end by themselves:
    each holds a hash of the password.
    """

    def validate(self, password: str, user: User | None = None) -> None:
        """Refuses none."""

    def get_help_text(self) -> str:
        return _("A new password ends the account’s sessions elsewhere, its API tokens, and links that set a password.")

    def password_changed(self, password: str, user: User) -> None:
        user.auth_token_set.all().delete()
        Invite.objects.filter(annotator__user=user, used_at=None, revoked_at=None).update(revoked_at=timezone.now())
        unlock(user.username)


def wrong_passwords(username: str) -> int:
    """How many were typed for this name of late, from everywhere."""
    attempts = AccessAttempt.objects.filter(username=username)
    return attempts.aggregate(total=Sum("failures_since_start"))["total"] or 0


def unlock(username: str) -> int:
    """Let this name log in again at once, from everywhere. Returns how many wrong passwords were forgotten."""
    wrong = wrong_passwords(username)
    AccessAttempt.objects.filter(username=username).delete()
    return wrong


def locked_until(username: str, address: str | None) -> datetime:
    """When a name that had too many wrong passwords from this address may try again."""
    attempts = AccessAttempt.objects.filter(username=username, ip_address=address)
    last = attempts.aggregate(last=Max("attempt_time"))["last"] or timezone.now()
    return last + get_cool_off()
