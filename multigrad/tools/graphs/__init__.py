"""The graph as a picture, as text, and by the memory that it keeps: names of
multigrad.autograd.graph.
"""
