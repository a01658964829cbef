"""The interface for notebooks and scripts: lazy tables, gold sets and statistics.

The module `assay.py` exports it. Only `run` changes data, because it performs managers' actions.
"""
