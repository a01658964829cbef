"""The session and the account of a request, which every one asks for: Django's own, by statements built once."""

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.utils import timezone

from corpora.database.prepared import prepared
from corpora.system import is_storage_fault


class SessionStore(db.SessionStore):
    def _get_session_from_db(self) -> Session | None:
        found = _session(self.session_key, timezone.now())
        if not found:
            self._session_key = None
            return None
        return found[0]

    def save(self, must_create=False):
        try:
            super().save(must_create)
        except UpdateError as error:
            # Django takes it for a session that was ended meanwhile.
            fault = error.__context__
            if fault and is_storage_fault(fault):
                raise fault from fault.__cause__
            raise


class PasswordBackend(ModelBackend):
    def get_user(self, user_id) -> User | None:
        found = _user(user_id)
        return found[0] if found and self.user_can_authenticate(found[0]) else None


@prepared
def _session(key, now) -> QuerySet[Session]:
    return Session.objects.filter(session_key=key, expire_date__gt=now)


@prepared
def _user(key) -> QuerySet[User]:
    return User.objects.filter(pk=key)
