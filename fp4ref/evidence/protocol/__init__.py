"""protocol: whether a run's barriers are right in every schedule."""
