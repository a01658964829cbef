from annotate.actions.commands import Command as Base
from annotate.management import catalogs


class Command(Base):
    help = "Regenerate and compile the catalogs of translations after a change of sentences that pages show."

    def handle(self, **options):
        for code in catalogs.tongues():
            lacking = catalogs.write(code)
            self.stdout.write(f"{code}: {len(lacking)} sentences lack a translation." if lacking else f"{code}: whole.")
            for words in lacking:
                self.stdout.write(f"  {words}")
