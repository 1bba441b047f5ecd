"""Loops and branches whose bodies are functions: scan, fori_loop, while_loop, cond, switch.

Their arguments and meanings are those of jax.lax.

captured.py     a user's function of nested structures as a function of lists. The arrays that it
                captures are arguments
bodies.py       such a function with tangents, with cotangents, or on a batch; which steps are tried
looping.py      what all loops and branches share: tangents and batches of their bodies
scanning.py     a scan at each level, and its derivative
checkpoints.py  the carries that are kept for the backward pass, and the order in which the pass
                uses them
stepping.py     the loop itself, on raw arrays
whiles.py       while_loop and fori_loop
branches.py     cond and switch
scan.py         scan
"""
