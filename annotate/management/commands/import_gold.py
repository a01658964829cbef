from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from annotate.core.labels import is_negative
from annotate.goldsets.importing import REJECTS, TWO_LABELS, import_gold, unlisted
from annotate.goldsets.reading import DESIGNS, GoldSetError
from corpora.core.languages import UND

MANY = 100  # posts: the article counts the languages that have as many
SHOWN = 10  # spellings that are told; manifest.json has them all


class Command(BaseCommand):
    help = (
        "Import a published gold file (label<TAB>id, no header; plain or packed by gzip or zstd) as a gold set to "
        "evaluate against. Every faulty row is refused and listed with its line."
    )

    def add_arguments(self, parser):
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--out", type=Path, required=True, help="folder to write; an earlier import is replaced")
        parser.add_argument("--design", choices=DESIGNS, required=True, help="how the posts were sampled")
        parser.add_argument("--name", required=True, help="of the gold set, for reports")
        parser.add_argument("--source", default="", help="where the file comes from, for the card")
        parser.add_argument("--licence", default="", help="of the file, for example CC0-1.0")

    def handle(self, *, file, out, design, name, source, licence, **options):
        try:
            manifest = import_gold(file, out, design=design, name=name, source=source, licence=licence)
        except GoldSetError as error:
            raise CommandError(str(error)) from error
        counts = manifest["counts"]
        if counts["refused"]:
            self.stdout.write(f"Refused, and listed in {out / REJECTS}:")
            for reason, rows in counts["refused"].items():
                ids = f" ({counts['ids_with_two_labels']:,} ids)" if reason == TWO_LABELS else ""
                self.stdout.write(f"{rows:>9,}  {reason}{ids}")
        if spellings := counts["rewritten"]:
            named = ", ".join(f"{pair} ({posts:,})" for pair, posts in list(spellings.items())[:SHOWN])
            more = f" and {len(spellings) - SHOWN} more spellings" if len(spellings) > SHOWN else ""
            self.stdout.write(f"Labels rewritten in {sum(spellings.values()):,} rows: {named}{more}.")
        if others := unlisted(counts["by_label"]):
            named = ", ".join(f"{label} ({posts:,})" for label, posts in others.items())
            self.stdout.write(f"Kept, though not among the languages known here: {named}.")
        labels = counts["by_label"]
        many = sum(posts >= MANY for label, posts in labels.items() if label != UND and not is_negative(label))
        self.stdout.write(
            f"{counts['labelled']:,} of {counts['rows']:,} rows written to {out}, in {len(labels)} labels; "
            f"{many} languages have at least {MANY} posts, {UND} apart."
        )
