from annotate.actions.commands import ActionCommand
from annotate.actions.vocabularies import ACTION


class Command(ActionCommand):
    action = ACTION
