"""From several people's answers to one label, by majority or by a model of the annotators."""
