"""The page about a run of a script: python -m multigrad profile."""
