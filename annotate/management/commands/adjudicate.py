from annotate.actions.adjudicate import ACTION
from annotate.actions.commands import ActionCommand


class Command(ActionCommand):
    action = ACTION
