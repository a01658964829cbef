from annotate.actions.commands import ActionCommand
from annotate.actions.delete import ACTION


class Command(ActionCommand):
    action = ACTION
