"""Many people at work at one server over HTTP: what it bears, and whether anything is lost."""
