from annotate.actions.commands import ActionCommand
from annotate.actions.reopen import ACTION


class Command(ActionCommand):
    action = ACTION
