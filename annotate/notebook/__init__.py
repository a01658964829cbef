"""The interface for notebooks and scripts, exported by the module `assay.py`: lazy tables, gold sets and statistics.

Everything is implemented by other packages. Only `run` changes data, through the managers' actions.
"""
