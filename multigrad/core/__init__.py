"""Tensors and their foundations: levels, elements, the graph, memory and its versions."""
