"""``hopfuse build``: an index from files."""
