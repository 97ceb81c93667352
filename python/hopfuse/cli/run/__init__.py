"""``hopfuse search``, ``trace``, ``score``, ``serve``, ``mcp`` and ``policy``: questions answered from an index."""
