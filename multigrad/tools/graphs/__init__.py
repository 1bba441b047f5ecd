"""Graphs as pictures, as text and by memory. The public names are in multigrad.autograd.graph."""
