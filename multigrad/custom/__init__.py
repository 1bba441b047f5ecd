"""Derivatives of one's own: autograd.Function, custom_vjp and custom_jvp, at every level.

function.py    Function, once_differentiable, and the one way of any application through the
               levels: `apply_function`
decorators.py  custom_vjp, custom_jvp, and rules.py, what a call of their functions applies
dual.py        what happens at a Dual; batch.py at a batch
kept.py        what forward says on its ctx, and what that keeps; node.py, the ctx of a level,
               its node
definition.py  what is applied besides the user's classes
"""
