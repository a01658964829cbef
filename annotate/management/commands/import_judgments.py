from annotate.actions.commands import ActionCommand
from annotate.actions.import_judgments import ACTION


class Command(ActionCommand):
    action = ACTION
