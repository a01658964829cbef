"""Agreement of annotators with each other, and of a judge with annotators."""
