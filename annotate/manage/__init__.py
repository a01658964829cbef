"""The manager's pages: how tasks stand, who works how well, why queues stand still. Reads, but for the pause."""
