"""The web page about a profiled run: python -m multigrad profile."""
