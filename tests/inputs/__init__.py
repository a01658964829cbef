"""Careless and hostile inputs to all commands: the error message and the exit status for each."""
