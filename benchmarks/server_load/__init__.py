"""Many people who work on one server over HTTP: its capacity, and whether answers are lost."""
