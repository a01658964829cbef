from annotate.actions.commands import ActionCommand
from annotate.actions.import_threads import ACTION


class Command(ActionCommand):
    action = ACTION
