from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from annotate.work.accounts import INVITE_DAYS, BadTable, add_annotators, read_table


class Command(BaseCommand):
    help = "Make annotators from a CSV: username, name, languages (as in: de:5 en:4) and, if wanted, adjudicates (yes)."

    def add_arguments(self, parser):
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--site",
            default=settings.SITE,
            help="what the links begin with (default: ASSAY_SITE, now %(default)s)",
        )

    def handle(self, *, file, site, **options):
        try:
            made = add_annotators(read_table(file.read_text(encoding="utf-8")))
        except BadTable as error:
            raise CommandError("\n".join(error.args) + "\nNothing was changed.") from error
        except UnicodeDecodeError as error:
            raise CommandError(f"{file} is not UTF-8. Save it as “CSV UTF-8”.") from error
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}.") from error
        for annotator, token in made:
            if token:
                self.stdout.write(f"{annotator.user.username}\t{site.rstrip('/')}{reverse('invite', args=[token])}")
        if updated := [annotator.user.username for annotator, token in made if not token]:
            self.stderr.write(f"Updated, as the file has them now (names, languages): {', '.join(updated)}.")
        new = sum(token is not None for _, token in made)
        self.stdout.write(
            f"{new:,} annotators made, {len(made) - new:,} updated. Each link sets a password once, within "
            f"{INVITE_DAYS} days, and is shown only here."
        )
