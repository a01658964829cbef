"""The documentation as the app shows it: the Markdown files of annotate/docs, rendered, in order, and searched.

The same files read as Markdown on a code host, so links between them are relative and lead to .md files. What is
generated in them is written by the command write_docs (management/reference.py).
"""
