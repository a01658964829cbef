"""The rights, accounts and pages of annotators and adjudicators."""
