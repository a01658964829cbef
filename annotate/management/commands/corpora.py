from annotate.actions.commands import ActionCommand
from annotate.actions.corpora import ACTION


class Command(ActionCommand):
    action = ACTION
