"""A client for the API, with the token of an annotator or manager."""

from knox.models import AuthToken


class Program:
    """A client that sends and receives JSON on behalf of an annotator or a user."""

    def __init__(self, client, person):
        self.client = client
        self.headers = {"Authorization": f"Token {AuthToken.objects.create(getattr(person, 'user', person))[1]}"}

    def get(self, path):
        return self.client.get(f"/api/v1/{path}", headers=self.headers)

    def post(self, path, **fields):
        return self.client.post(f"/api/v1/{path}", fields, content_type="application/json", headers=self.headers)
