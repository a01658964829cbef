"""A classifier measured on gold sets. What the estimates rest on is in MEASURING.md."""
