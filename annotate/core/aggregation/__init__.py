"""Aggregation of several annotators' answers into one label, by majority or by a model of the annotators."""
