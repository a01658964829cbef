"""From a task to files that can be published, and published files read back."""
