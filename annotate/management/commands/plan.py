from annotate.actions.commands import ActionCommand
from annotate.actions.plan import ACTION


class Command(ActionCommand):
    action = ACTION
