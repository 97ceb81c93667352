"""``hopfuse build``: an index from files or a store."""
