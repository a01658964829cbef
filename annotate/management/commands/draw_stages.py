from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from annotate.core.stages import drawing

BEGIN, END = "<!-- stages: begin -->\n", "\n<!-- stages: end -->"


class Command(BaseCommand):
    help = "Draw the machine of a unit from its table into the README."

    def handle(self, **options):
        readme = Path(settings.BASE_DIR) / "README.md"
        before, begin, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
        _, end, after = rest.partition(END)
        if not begin or not end:
            raise CommandError(f"README.md has no place for the drawing: {BEGIN.strip()} and {END.strip()}.")
        readme.write_text(before + BEGIN + drawing() + END + after, encoding="utf-8")
        self.stdout.write("README.md shows the table of annotate/core/stages.py.")
