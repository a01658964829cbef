from annotate.actions.commands import ActionCommand
from annotate.actions.verify_lots import ACTION


class Command(ActionCommand):
    action = ACTION
