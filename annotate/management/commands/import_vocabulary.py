from annotate.actions.commands import ActionCommand
from annotate.actions.import_vocabulary import ACTION


class Command(ActionCommand):
    action = ACTION
