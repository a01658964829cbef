from annotate.actions.commands import ActionCommand
from annotate.actions.tasks import ACTION


class Command(ActionCommand):
    action = ACTION
