"""The profiler: calls, their times and their memory. Public as multigrad.autograd.profiler."""

FORWARD, BACKWARD, USER = 0, 1, 7
"""The scopes of events, as PyTorch numbers them."""
