"""What forward may ask of its ctx."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ..engine.element import is_array

PUBLIC = "multigrad.autograd.function"
"""Where users have the classes of this room from."""


class FunctionCtx:
    """What forward may ask of its ctx."""

    __module__ = PUBLIC

    to_save: Sequence[Any] | None = None
    saved_for_forward: Sequence[Any] | None = None
    dirty_tensors: Sequence[Any] | None = None
    non_differentiable: Sequence[Any] | None = None
    materialize_grads: bool = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep arrays for backward, which finds them in `saved_tensors`: inputs, outputs or others; None is allowed.

        Only what is kept this way is freed after the backward pass and checked for in-place modification. To be called
        once, in forward or setup_context; a second call replaces the first.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep arrays for `jvp`, which finds them in `saved_tensors`. To be called once, as `save_for_backward`."""
        for x in tensors:
            if x is not None and not is_array(x):
                raise AssertionError("save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx.")
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Say which inputs forward modifies in place, before or after it does. Each must be returned."""
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Deprecated, and without effect: shared memory is tracked by itself."""
        warnings.warn("`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked. "
                      "Note that calls to `set_()` are not tracked", FutureWarning, stacklevel=2)

    def mark_non_differentiable(self, *args: Any) -> None:
        """Say which outputs have no gradient. backward still gets one for each of them: zeros."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (the default) or None as the gradient of an output that was not used."""
        if not isinstance(value, bool):
            raise TypeError(f"set_materialize_grads received an invalid combination of arguments - got ({type(value).__name__}), but expected (bool)")
        self.materialize_grads = value


def no_setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
    """Save for backward, after a forward that gets no ctx."""
    raise NotImplementedError("setup_context is not implemented.")


def no_vmap(info: Any, in_dims: Any, *args: Any) -> Any:
    """Compute the outputs for a batch of examples: return (output, out_dims). For vmap.

    info      info.batch_size, the number of examples, and info.randomness, the argument of vmap
    in_dims   a tuple: for each of `args` the axis that counts the examples, or None for what is the same for all; nested as they are
    args      arrays of all examples

    `out_dims` says the same of the output: an int or None, or a structure of these like that of `output`. What vmap computes is
    differentiated as any function; where a gradient is taken inside of vmap, backward and jvp are, with what setup_context keeps.
    """
    raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
                              "generate_vmap_rule=True.")
