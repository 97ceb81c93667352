"""``hopfuse eval`` and ``sweep``: measure runs against judgements, and choose options."""
