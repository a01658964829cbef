"""What the API answers to OPTIONS. By itself, as Django REST framework imports it before anything that has a view."""

from rest_framework.metadata import BaseMetadata


class NoMetadata(BaseMetadata):
    """The header Allow says which methods an address takes; what it takes and gives is said once, in the schema."""

    def determine_metadata(self, request, view) -> None:
        return None
