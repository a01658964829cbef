"""The documentation in the app: the Markdown files of annotate/docs, rendered, in order, with search.

The files can also be read on a code host, so links between them are relative and lead to .md files. The command
write_docs generates some parts of them (management/reference.py).
"""
