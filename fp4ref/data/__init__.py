"""Input data that comes with the package."""
