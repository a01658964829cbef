"""Whom a token of the API belongs to."""

import binascii
from contextlib import suppress
from hmac import compare_digest

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.contrib.knox_auth_token import KnoxTokenScheme
from knox import auth
from knox.crypto import hash_token
from knox.models import AuthToken
from knox.settings import CONSTANTS
from rest_framework.exceptions import AuthenticationFailed

from corpora.database.prepared import prepared


class TokenAuthentication(auth.TokenAuthentication):
    """Knox's, which fails on a token that is no UTF-8, and with every request looks for tokens that have expired."""

    def authenticate_credentials(self, token: bytes):
        if not token.isascii():
            raise AuthenticationFailed
        text = token.decode()
        for found in _tokens(text[: CONSTANTS.TOKEN_KEY_LENGTH], timezone.now()):
            with suppress(TypeError, binascii.Error):  # it is no token, which Knox says
                if compare_digest(hash_token(text), found.digest):
                    return self.validate_user(found)
        return super().authenticate_credentials(token)


@prepared
def _tokens(key, now) -> QuerySet[AuthToken]:
    return AuthToken.objects.filter(token_key=key, expiry__gt=now).select_related("user")


class TokenScheme(KnoxTokenScheme):
    """How the reference of the API tells of it."""

    target_class = TokenAuthentication
