from pathlib import Path

from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from annotate.people import INVITE_DAYS, BadTable, add_annotators, read_table
from annotate.presenting import full_url


class Command(BaseCommand):
    help = "Make annotators from a CSV with the columns username, name, languages (as in: de:5 en:4)."

    def add_arguments(self, parser):
        parser.add_argument("file", type=Path)

    def handle(self, *, file, **options):
        try:
            made = add_annotators(read_table(file.read_text(encoding="utf-8")))
        except BadTable as error:
            raise CommandError("\n".join(error.args) + "\nNothing was changed.") from error
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{file} cannot be read: {error}") from error
        for annotator, token in made:
            if token:
                self.stdout.write(f"{annotator.user.username}\t{full_url(reverse('invite', args=[token]))}")
        new = sum(token is not None for _, token in made)
        self.stdout.write(
            f"{new:,} annotators made, {len(made) - new:,} updated. Each link sets a password once, within "
            f"{INVITE_DAYS} days, and is shown only here."
        )
