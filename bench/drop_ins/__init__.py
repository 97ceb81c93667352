"""Speed of other libraries' own calls, and of the same calls when hopfuse answers them.

``python -m bench.drop_ins`` runs what is installed; docs/integrations.md has its rows.
"""
