"""A generation file: its head, sections and directory, and the columns that are read from it."""
