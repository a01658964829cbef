"""Measures of predictions for each form of answer, with intervals."""
