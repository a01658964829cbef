"""Who a token of the API belongs to."""

from drf_spectacular.contrib.knox_auth_token import KnoxTokenScheme
from knox import auth
from rest_framework.exceptions import AuthenticationFailed


class TokenAuthentication(auth.TokenAuthentication):
    """Knox's, which fails on a token that is no UTF-8."""

    def authenticate_credentials(self, token: bytes):
        if not token.isascii():
            raise AuthenticationFailed
        return super().authenticate_credentials(token)


class TokenScheme(KnoxTokenScheme):
    """How the reference of the API tells of it."""

    target_class = TokenAuthentication
