"""Writes to memory, views, copies, and the values that nodes save."""
