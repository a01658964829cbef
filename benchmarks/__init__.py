"""Measurements on real data that are too large for the tests: `python -m benchmarks FOLDER [NAMES...]`.

One module a benchmark, listed in __main__.py; each works in a temporary folder and a database of its own. The
others are what they share: material.py reads FOLDER, world.py holds the simulated people and what they know,
clients.py makes them use the server, place.py is where it all runs, tally.py counts what came out.
"""
