"""prelabel: the detectors' votes on a corpus."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from corpora.errors import CorpusError
from corpora.prelabel import prelabel
from corpora.store import manifest_of


class Command(BaseCommand):
    help = (
        "Have the three detectors name the languages of every post of a corpus. Stopped, it goes on where it was; "
        "run again, it does the parts that have been added since."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("corpus")
        parser.add_argument("--k", type=int, default=3, help="languages that a detector names at most (default: 3)")
        parser.add_argument("--processes", type=int, help="default: one a core")
        parser.add_argument(
            "--again",
            action="store_true",
            help="do anew what other versions of the detectors or another k did; a draw made from the old votes "
            "can then no longer be extended",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["corpus"]
        try:
            total = manifest_of(name).rows
            with tqdm(total=total, unit="post", unit_scale=True, desc="prelabel", file=self.stderr) as bar:
                manifest = prelabel(
                    name,
                    k=options["k"],
                    processes=options["processes"],
                    again=options["again"],
                    progress=bar.update,
                )
        except CorpusError as error:
            raise CommandError(str(error)) from error
        agreed = sum(votes.unanimous for votes in manifest.votes)
        have = "post has" if manifest.rows == 1 else "posts have"
        self.stdout.write(
            f"Corpus {name}: {manifest.rows:,} {have} votes; on {agreed:,} ({agreed / manifest.rows:.1%}) "
            "all three detectors name the same language."
        )
