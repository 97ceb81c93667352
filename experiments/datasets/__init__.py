"""Make and check the folders of data sets that benchmarks and experiments read."""
