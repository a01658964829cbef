"""How good predictions are: a measure for each form of answer, with intervals."""
