"""The version of Assay: of the package, the command, the pages, the API, and of what wrote a manifest."""

VERSION = "0.2.0"
