"""``score``, ``search``, ``trace`` and ``policy``: questions, asked of an index."""
