#!/usr/bin/env python
"""The command line for use in a checkout. An installed package provides the command `assay` instead."""

from annotate.actions.registry import main

if __name__ == "__main__":
    main()
