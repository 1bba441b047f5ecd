"""What runs, how long it takes, what memory it needs: multigrad.autograd.profiler."""

FORWARD, BACKWARD, USER = 0, 1, 7
"""The scopes of events, as PyTorch numbers them."""
