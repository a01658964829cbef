from annotate.actions.add_manager import ACTION
from annotate.actions.commands import ActionCommand


class Command(ActionCommand):
    action = ACTION
