"""Reproducible random draws, splits and balanced sets."""
