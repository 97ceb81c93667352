"""``hopfuse diagnose`` and ``compare``: whether a graph helps, and which recipe is best."""
