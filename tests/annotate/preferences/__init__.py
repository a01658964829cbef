"""Tests of comparisons between two systems: opening tasks, answering, and keeping the systems secret."""
