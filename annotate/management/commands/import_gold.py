from annotate.actions.commands import ActionCommand
from annotate.actions.import_gold import ACTION


class Command(ActionCommand):
    action = ACTION
