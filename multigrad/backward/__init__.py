"""The backward pass: its order, hooks, and the functions that start it."""
