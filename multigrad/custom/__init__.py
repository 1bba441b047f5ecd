"""User-defined derivatives: autograd.Function, custom_vjp and custom_jvp, at every level.

function.py    Function, once_differentiable, and `apply_function`, which takes every application
               of a derivative through the levels
decorators.py  custom_vjp, custom_jvp; rules.py has the operation that a call of their functions
               applies
dual.py        the application to Duals; batch.py to batches
kept.py        the methods of ctx that forward calls, and what ctx keeps; node.py, the ctx of a
               level, which is its node
definition.py  operations that are not classes of the user
"""
