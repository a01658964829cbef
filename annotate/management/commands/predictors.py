from annotate.actions.commands import ActionCommand
from annotate.actions.predictors import ACTION


class Command(ActionCommand):
    action = ACTION
