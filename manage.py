#!/usr/bin/env python
"""Assay's command line in a checkout. An installed package has it as the command `assay`."""

from annotate.actions.registry import main

if __name__ == "__main__":
    main()
