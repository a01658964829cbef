"""Words and tables in GitHub's Markdown; what comes from a file is shown as text, never as markup."""

import re
from collections.abc import Callable

from annotate.reports.tables import NUMBER, Table


def marked_down(words: str) -> str:
    """Text that GitHub's Markdown shows as it is, in a table too."""
    # A bracket matters where a link's target could follow, a list's or heading's mark at the beginning alone.
    escaped = re.sub(
        r"[\\`*_|~$]|\](?=[(\[:])|^(?:[#>-]|\+(?=\s|$)|\d+(?=[.)](?:\s|$)))", _escaped_mark, " ".join(words.split())
    )
    return escaped.replace("&", "&amp;").replace("<", "&lt;")


def _escaped_mark(found: re.Match) -> str:
    mark = found[0]
    return f"{mark}\\" if mark.isdigit() else f"\\{mark}"


def parts(table: Table, written: Callable[[str], str] = marked_down) -> dict:
    """What a template needs to write a table. written: how words without markup are written."""
    return {
        "heads": [written(column.heading) or " " for column in table.columns],
        "rules": ["---:" if column.kind == NUMBER else "---" for column in table.columns],
        "rows": [[written(cell.shown) for cell in row] for row in table.rows],
    }
