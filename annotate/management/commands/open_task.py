from annotate.actions.commands import ActionCommand
from annotate.actions.open_task import ACTION


class Command(ActionCommand):
    action = ACTION
