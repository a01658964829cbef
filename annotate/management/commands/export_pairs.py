from annotate.actions.commands import ActionCommand
from annotate.actions.export_pairs import ACTION


class Command(ActionCommand):
    action = ACTION
