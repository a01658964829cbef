from annotate.actions.commands import ActionCommand
from annotate.actions.import_predictions import ACTION


class Command(ActionCommand):
    action = ACTION
