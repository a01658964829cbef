from annotate.actions.commands import ActionCommand
from annotate.actions.preferences import ACTION


class Command(ActionCommand):
    action = ACTION
