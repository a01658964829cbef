"""SQL statements that the Django ORM cannot express."""

from pathlib import Path


def sql(name: str) -> str:
    """Return the statement in NAME.sql, without its comments."""
    lines = Path(__file__).with_name(f"{name}.sql").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("--"))
