"""Tools that inspect a program: profiler, pictures of graphs, break detection, run report.

Their public names are those of multigrad.autograd, which imports a tool at the first access.
"""
