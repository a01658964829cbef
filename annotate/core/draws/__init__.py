"""Random draws that anybody can repeat, splits and balanced sets."""
