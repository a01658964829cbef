from annotate.actions.add_annotators import ACTION
from annotate.actions.commands import ActionCommand


class Command(ActionCommand):
    action = ACTION
