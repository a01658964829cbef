"""The documentation in the app: rendering, order and search of the Markdown files in annotate/docs.

The files can also be read on a code host, so they link to each other by relative paths of .md files. The command
write_docs generates some parts of the files (management/reference.py).
"""
