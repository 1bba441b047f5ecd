"""What tools for editors and notebooks read of the methods of Tensors, and what an error says that
a function takes.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import multigrad as mg


@pytest.mark.parametrize("name", ["sum", "argsort", "clip", "diag", "cumulative_sum", "reshape"])
@pytest.mark.parametrize("of", [mg.Tensor, mg.asarray(1.0)])
def test_methods_show_their_own_parameters(of: Any, name: str) -> None:
    parameters = inspect.signature(getattr(of, name)).parameters.values()
    assert parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters)


def test_what_a_method_takes_by_position_is_shown_so() -> None:
    assert (
        str(inspect.signature(mg.Tensor.argsort))
        == "(x, /, axis=-1, *, descending=False, stable=True)"
    )
    assert (
        str(inspect.signature(mg.asarray(1.0).argsort))
        == "(axis=-1, *, descending=False, stable=True)"
    )


def test_the_error_shows_what_a_function_takes_without_annotations() -> None:
    with pytest.raises(
        TypeError,
        match=r"^sum\(\) got an unexpected keyword argument 'dim'\. It takes sum\(a, axis=None, "
        r"dtype=None, out=None, ",
    ):
        mg.sum(mg.asarray(np.ones(3)), dim=0)
