from annotate.actions.commands import ActionCommand
from annotate.actions.unlock import ACTION


class Command(ActionCommand):
    action = ACTION
