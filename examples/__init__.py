"""Runnable examples of hopfuse; each is run by a test."""
