"""Speed of calls of other libraries by their own code, and answered by hopfuse.

``python -m bench.drop_ins`` measures the libraries that are installed; docs/integrations.md has the results.
"""
