from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from knox.models import AuthToken


class Command(BaseCommand):
    help = "Make an API token for an account and print it; only its hash is kept."

    def add_arguments(self, parser):
        parser.add_argument("username")

    def handle(self, *, username, **options):
        user = User.objects.filter(username=username, is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active account {username!r}.")
        self.stdout.write(AuthToken.objects.create(user)[1])
