"""check_kind: what people will see of a kind's file, in words and as a page."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from annotate.kinds.files import KindError, read_kind
from annotate.kinds.telling import tell
from annotate.pages.preview import languages_of, preview

MARK = '<meta name="generator" content="check_kind">'  # of the page's template: what may be written over


class Command(BaseCommand):
    help = "Say in English what people will see of a kind's TOML file, and write its page with an invented record."

    def add_arguments(self, parser):
        parser.add_argument("file", type=Path, help="the kind's file, such as my_kind.toml")
        parser.add_argument("--out", type=Path, metavar="PAGE", help="where to write the page (default: FILE as .html)")
        parser.add_argument(
            "--language", metavar="CODE", help="the language of the invented record, or that is asked about"
        )

    def handle(self, *, file, out, language, **options):
        try:
            kind = read_kind(file)
        except KindError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(tell(kind))
        if not kind.answered_here:
            return
        there = languages_of(kind)
        if language and language not in there:
            raise CommandError(
                f"--language {language} is none that the kind could show; it is one of {', '.join(there)}."
            )
        path = out or file.with_suffix(".html")
        try:
            if path.exists() and MARK not in path.read_text(encoding="utf-8", errors="replace"):
                raise CommandError(f"{path} is no page that check_kind wrote; move it, or name another with --out.")
            path.write_text(preview(kind, language or _usual(kind)), encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
        self.stdout.write(f"The page is in {path}.")


def _usual(kind) -> str:
    """What it adds, or English."""
    return next((code for code in [*kind.languages, "en", *kind.labels] if code in languages_of(kind)), "en")
