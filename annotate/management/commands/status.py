from annotate.actions.commands import ActionCommand
from annotate.actions.status import ACTION


class Command(ActionCommand):
    action = ACTION
