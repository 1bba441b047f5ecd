"""Derivatives of one's own: autograd.Function, custom_vjp and custom_jvp, at every level.

    function.py    Function, once_differentiable
    decorators.py  custom_vjp, custom_jvp, and rules.py, what a call of their functions applies
    applying.py    the one way of an application through the levels: `apply_function`
    dual.py        what happens at a Dual; batch.py at a batch
    context.py     what users ask of a ctx; node.py, the ctx of a level, its node; kept.py, what that keeps
    definition.py  what is applied besides the user's classes
"""
