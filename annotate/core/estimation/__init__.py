"""Estimates with confidence intervals: proportions, comparisons, and shares of a corpus."""
