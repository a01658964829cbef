from annotate.actions.commands import ActionCommand
from annotate.actions.export_gold import ACTION


class Command(ActionCommand):
    action = ACTION
