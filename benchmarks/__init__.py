"""Benchmarks on real data that are too large for the tests: `python -m benchmarks FOLDER [NAMES...]`.

Each benchmark is a module listed in __main__.py, and runs in a temporary folder with its own database. The other
modules are shared: material.py reads FOLDER, world.py simulates people, clients.py simulates their clients, place.py
sets up the installation, and tally.py counts the results.
"""
