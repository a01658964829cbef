from annotate.actions.commands import ActionCommand
from annotate.actions.suggest import ACTION


class Command(ActionCommand):
    action = ACTION
