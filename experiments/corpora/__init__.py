"""Make question folders of ordinary questions, which one passage answers, from packages of public registries."""
