"""``hopfuse info``, ``selftest`` and ``bench``: an index, this machine, and its speed."""
