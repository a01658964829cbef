from annotate.actions.commands import ActionCommand
from annotate.actions.prelabel import ACTION


class Command(ActionCommand):
    action = ACTION
