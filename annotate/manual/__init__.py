"""The documentation in the app: it renders the Markdown files of annotate/docs, orders them and makes them searchable.

The files can also be read on a code host, so the links between them are relative and lead to .md files. The command
write_docs generates some parts of the files (management/reference.py).
"""
