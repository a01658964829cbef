from annotate.actions.commands import ActionCommand
from annotate.actions.reroute import ACTION


class Command(ActionCommand):
    action = ACTION
