"""The commands that say whether a graph helps: ``diagnose`` and ``compare``."""
