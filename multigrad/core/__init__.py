"""Tensors and what every room builds on: levels, elements, the graph, memory and its versions."""
