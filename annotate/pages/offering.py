"""Tables of a page that are filtered and downloaded by what stands in its address, for all managers' pages at once."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from django.http import Http404, HttpResponse

from annotate.reports.tables import Table, as_csv

MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"  # by which Excel knows UTF-8


def offered(value: Any, path: str, given: Mapping[str, str]) -> Any:
    """What a page is made of, with its tables, wherever they lie in it, told what stands in the page's address."""
    if isinstance(value, Table):
        return replace(value, path=path, given=given)
    if type(value) is dict:
        return {key: offered(each, path, given) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(offered(each, path, given) for each in value)
    return value


def downloaded(context: Any, name: str) -> HttpResponse:
    """The table of that name, of those that a page is made of, as a file."""
    for table in _tables(context):
        if table.name == name:
            return csv_reply(f"{name}.csv", as_csv(table))
    raise Http404("This page has no such table.")


def csv_reply(name: str, text: str) -> HttpResponse:
    """name: of the file."""
    reply = HttpResponse(f"{MARK}{text}", content_type="text/csv; charset=utf-8")
    reply["Content-Disposition"] = f'attachment; filename="{name}"'
    return reply


def _tables(value: Any) -> Iterator[Table]:
    if isinstance(value, Table):
        yield value
    elif type(value) in (dict, list, tuple):
        for each in value.values() if type(value) is dict else value:
            yield from _tables(each)
