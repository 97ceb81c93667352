"""The log of changes: frames, their records, the rows that they add, and the index after them."""
