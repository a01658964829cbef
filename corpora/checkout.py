"""Whether the program is run from its source, or was installed."""

from pathlib import Path

IN_CHECKOUT = (Path(__file__).resolve().parents[1] / "manage.py").is_file()
