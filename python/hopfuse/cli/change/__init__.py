"""Commands that change an index while it is searched, and say what was changed."""
