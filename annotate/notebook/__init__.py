"""The interface for notebooks and scripts, exported by the module `assay.py`: lazy tables, gold sets and statistics.

It only calls the packages below. Only `run` changes anything, through the managers' actions.
"""
