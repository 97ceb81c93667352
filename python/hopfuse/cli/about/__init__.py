"""``info``, ``selftest`` and ``bench``: indexes, this machine, and its speed."""
