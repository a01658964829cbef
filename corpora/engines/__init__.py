"""How a corpus is queried. Callers import from here and name no engine.

DuckDB (duckdb.py) asks on one machine, Spark (spark.py) on one or many; the setting ENGINE says which. Each is a module
with a Store of the same verbs, and both run the same sql/.
"""

from corpora.engines.asking import Store, asking, full_disk_explained, posts_by_author, spread, votes_in

__all__ = ["Store", "asking", "full_disk_explained", "posts_by_author", "spread", "votes_in"]
