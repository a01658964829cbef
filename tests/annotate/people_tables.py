"""Tables of annotators for tests."""

from pathlib import Path
from tempfile import TemporaryDirectory

from annotate.work.people_file import read_table


def rows_of(table, name="people.csv"):
    """Return the people in a table that is written as text or bytes."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(table if isinstance(table, bytes) else table.encode())
        return read_table(path)
