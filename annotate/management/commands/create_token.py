from annotate.actions.commands import ActionCommand
from annotate.actions.create_token import ACTION


class Command(ActionCommand):
    action = ACTION
