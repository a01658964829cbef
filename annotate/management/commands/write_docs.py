from typing import Any

from django.core.management.base import CommandError

from annotate.actions.commands import Command as Base
from annotate.management.reference import written
from annotate.manual.pages import DOCS


class Command(Base):
    help = "Regenerate the generated parts of the documentation after a change of the code."

    def handle(self, **options: Any) -> None:
        changed = []
        for path in sorted(DOCS.rglob("*.md")):
            before = path.read_text(encoding="utf-8")
            try:
                after = written(before)
            except KeyError as error:
                raise CommandError(f"{path} has a place for {error}, and no such part is generated.") from error
            except ValueError as error:
                raise CommandError(f"{path} has a place that is not whole: {error}.") from error
            if after != before:
                path.write_text(after, encoding="utf-8")
                changed.append(path.relative_to(DOCS).as_posix())
        self.stdout.write(f"Regenerated: {', '.join(changed)}." if changed else "Everything is up to date.")
