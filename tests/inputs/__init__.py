"""Careless and hostile inputs to every command: what is said to each, and with which status the program ends."""
