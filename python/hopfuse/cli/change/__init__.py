"""Commands that change an index while it is searched, and list its changes."""
