from annotate.actions.audit import ACTION
from annotate.actions.commands import ActionCommand


class Command(ActionCommand):
    action = ACTION
