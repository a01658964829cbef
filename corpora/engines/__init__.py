"""How a corpus is queried. Callers import from here and name no engine.

Another engine, such as Spark, stands beside duckdb.py behind the same verbs, and runs the same sql/.
"""

from corpora.engines.duckdb import Store, asking, full_disk_explained, posts_by_author

__all__ = ["Store", "asking", "full_disk_explained", "posts_by_author"]
