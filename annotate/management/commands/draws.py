from annotate.actions.commands import ActionCommand
from annotate.actions.draws import ACTION


class Command(ActionCommand):
    action = ACTION
