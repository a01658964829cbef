"""Several people an item: who is proven by a test, watched by gold answers, paused, voided; and how far they agree."""
