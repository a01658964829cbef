"""Estimates and their intervals: proportions, comparisons, and shares of a corpus."""
