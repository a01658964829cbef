from annotate.actions.commands import ActionCommand
from annotate.actions.evaluate import ACTION


class Command(ActionCommand):
    action = ACTION
