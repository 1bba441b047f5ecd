"""What looks at a program: the profiler, pictures of graphs, the report of breaks, the page about a
run.

The public names are those of multigrad.autograd, which imports a tool when it is first asked for.
"""
