from annotate.actions.commands import ActionCommand
from annotate.actions.import_corpus import ACTION


class Command(ActionCommand):
    action = ACTION
