"""Loops and branches whose bodies are functions: scan, fori_loop, while_loop, cond, switch, with
the arguments and meanings of jax.lax.

captured.py    a user's function of nested structures as a function of lists, whose captured arrays
               are arguments
bodies.py      such a function with tangents, with cotangents, of a batch
scanning.py    what a scan is at each level, and its derivative
checkpoints.py which carries are kept for the pass, and how it goes back through them
stepping.py    the loop itself, on raw arrays
whiles.py      while_loop; fori_loop
branches.py    cond, switch
scan.py        scan
"""
