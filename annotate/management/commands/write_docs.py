from typing import Any

from django.core.management.base import CommandError

from annotate.actions.commands import Command as Base
from annotate.management.reference import regenerate
from annotate.manual.pages import DOCS


class Command(Base):
    help = "Regenerate the generated parts of the documentation after a change to the code."

    def handle(self, **options: Any) -> None:
        changed = []
        for path in sorted(DOCS.rglob("*.md")):
            old = path.read_text(encoding="utf-8")
            try:
                new = regenerate(old)
            except KeyError as error:
                raise CommandError(f"{path} contains a marker for the part {error}, which does not exist.") from error
            except ValueError as error:
                raise CommandError(f"{path} contains an incomplete marker: {error}.") from error
            if new != old:
                path.write_text(new, encoding="utf-8")
                changed.append(path.relative_to(DOCS).as_posix())
        self.stdout.write(f"Regenerated: {', '.join(changed)}." if changed else "Everything is up to date.")
