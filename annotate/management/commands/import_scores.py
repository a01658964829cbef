from annotate.actions.commands import ActionCommand
from annotate.actions.import_scores import ACTION


class Command(ActionCommand):
    action = ACTION
