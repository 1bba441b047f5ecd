"""multigrad-torch: tensors of PyTorch as plain arrays.

What the standard says of them is tested by the conformance suite.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import func
from multigrad.errors import BackendError, GradientError

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
if "torch" not in {b.name for b in mg.backends()}:
    pytest.skip("multigrad-torch is not installed", allow_module_level=True)

ROOT = Path(mg.__file__).parents[1]
FOLDER = ROOT / "plugins" / "multigrad-torch"
X = torch.arange(4.0, dtype=torch.float64)


def leaf(x: Any = X) -> Any:
    return mg.asarray(x.clone(), requires_grad=True)


def values(x: Any) -> Any:
    return np.asarray(x.detach() if isinstance(x, mg.Tensor) else x)


# ----- what PyTorch differentiates itself, and what is no plain array -----

REQUIRES = re.escape(
    "backend 'torch': this torch.Tensor requires grad, so PyTorch would record what multigrad "
    "computes of it, a second graph beside multigrad's. Pass t.detach(), and "
    "multigrad.asarray(t.detach(), requires_grad=True) where multigrad is to differentiate."
)
ENTRANCES: dict[str, Any] = {
    "asarray": mg.asarray,
    "tensor": mg.tensor,
    "of a list": lambda x: mg.asarray([x, x]),
    "function": mg.sin,
    "composite": mg.median,
    "right operand": lambda x: leaf() * x,
    "left operand": lambda x: x * leaf(),
    "power": lambda x: leaf() ** x,
    "list": lambda x: mg.stack([leaf(), x]),
    "where": lambda x: mg.where(X > 1, leaf(), x),
    "numpy's function": lambda x: np.add(mg.asarray(X), x),
    "write": lambda x: mg.asarray(X.clone()).__setitem__(slice(None), x),
    "in place": lambda x: mg.asarray(X.clone()).__iadd__(x),
    "cotangent": lambda x: leaf().backward(x),
    "func.grad": func.grad(lambda x: mg.sum(x * x)),
    "func.jvp": lambda x: func.jvp(mg.sin, (x,), (X,)),
    "tangent": lambda x: func.jvp(mg.sin, (X,), (x,)),
    "vmap": func.vmap(lambda x: x * x),
    "beside a Dual": lambda x: func.jvp(lambda y: y * x, (X,), (X,)),
    "beside a batch": lambda x: func.vmap(lambda y: y * x[0])(X),
    "torch.func.grad": lambda x: torch.func.grad(lambda y: mg.sum(y * y).array)(X),
}


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_a_tensor_that_requires_grad_is_refused_with_the_way_out(entrance: str) -> None:
    enter = ENTRANCES[entrance]
    with pytest.raises(GradientError, match=REQUIRES):
        enter(X.clone().requires_grad_())
    with pytest.raises(GradientError, match=REQUIRES), torch.no_grad():
        enter(X.clone().requires_grad_())
    if entrance != "torch.func.grad":
        enter(X.clone().requires_grad_().detach())


def test_a_parameter_is_refused_until_it_is_detached() -> None:
    parameter = torch.nn.Parameter(X.clone())
    with pytest.raises(GradientError, match=REQUIRES):
        leaf() * parameter
    assert torch.equal((mg.asarray(X) * parameter.detach()).array, X * X)
    assert torch.equal((mg.asarray(X) * torch.nn.Parameter(X, requires_grad=False)).array, X * X)


def test_what_has_another_layout_is_refused() -> None:
    with pytest.raises(
        BackendError,
        match=re.escape(
            "a torch.Tensor that is of layout torch.sparse_coo does not follow the Array API "
            "standard. Convert it to a plain one first: t.to_dense()."
        ),
    ):
        mg.sin(torch.eye(2).to_sparse())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch announces what becomes of them
        nested, quantized = (
            torch.nested.nested_tensor([X, X[:2]]),
            torch.quantize_per_tensor(X.float(), 0.1, 0, torch.qint8),
        )
        with pytest.raises(
            BackendError, match=r"a torch.Tensor that is nested .* t.to_padded_tensor\(0.0\)."
        ):
            mg.asarray(nested)
        with pytest.raises(
            BackendError, match=r"a torch.Tensor that is quantized .* t.dequantize\(\)."
        ):
            mg.asarray(quantized)
        # a mean of it has fewer elements than its gradient would count
        masked = torch.masked.masked_tensor(X, X > 1)
        with pytest.raises(
            BackendError, match=r"MaskedTensor do not follow the Array API standard"
        ):
            func.grad(mg.mean)(masked)


def test_no_graph_of_pytorch_is_made() -> None:
    x = leaf()
    y = mg.sum(mg.exp(X * x) * X)
    y.backward()
    assert not y.array.requires_grad and y.array.grad_fn is None
    assert not x.grad.array.requires_grad
    assert torch.allclose(x.grad.array, X * X * torch.exp(X * X))


# ----- either side -----


def test_a_raw_tensor_stands_on_either_side() -> None:
    x = leaf()
    for out, expected in (
        (X * x, X * X),
        (x * X, X * X),
        (X - x, X - X),
        (X @ x, X @ X),
        (X == x, X == X),
        (X // (x + 1), X // (X + 1)),
    ):
        assert isinstance(out, mg.Tensor) and torch.equal(out.array, expected)
    y = X.clone()
    y *= x  # Python's second way, y = y * x
    assert isinstance(y, mg.Tensor) and y.requires_grad


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(torch.sin, id="function"),
        pytest.param(lambda t: torch.add(X, t), id="second argument"),
        pytest.param(X.mul, id="method"),
        pytest.param(lambda t: X.clone().copy_(t), id="copy_"),
        pytest.param(lambda t: X.clone().__setitem__(0, t[0]), id="setitem"),
    ],
)
def test_what_pytorch_does_with_a_foreign_tensor_is_an_error(call: Any) -> None:
    with pytest.raises(TypeError, match=r"Tensor|View"):
        call(leaf())


def test_a_tensor_leaves_for_pytorch_without_its_gradient_only() -> None:
    x = leaf()
    with pytest.raises(
        BufferError,
        match=re.escape("Can't export tensors that require gradient, use tensor.detach()"),
    ):
        torch.as_tensor(x)
    assert torch.from_dlpack(x.detach()).data_ptr() == x.array.data_ptr()
    assert x.detach().numpy().__array_interface__["data"][0] == x.array.data_ptr()


# ----- dtypes -----


def test_arrays_without_axes_count_for_the_dtype() -> None:
    """In PyTorch's own operators they do not: float32 * a float64 without axes is float32."""
    narrow, wide = torch.ones(3), torch.tensor(1 / 3, dtype=torch.float64)
    for function in (
        mg.add,
        mg.multiply,
        mg.pow,
        mg.maximum,
        mg.atan2,
        mg.fmax,
        mg.fmod,
        mg.heaviside,
        mg.logaddexp2,
        mg.copysign,
    ):
        for out in (
            function(mg.asarray(narrow), wide),
            function(mg.asarray(wide), narrow),
            function(narrow, mg.asarray(wide)),
        ):
            assert out.dtype == torch.float64, function
    for x, limit in ((wide, narrow), (narrow, wide)):  # the standard keeps the dtype of x
        assert mg.clip(mg.asarray(x), limit).dtype == x.dtype
        assert mg.clip(mg.asarray(x), None, limit).dtype == x.dtype
    x = mg.asarray(narrow, requires_grad=True)
    (x * wide).sum().backward()
    assert x.grad.dtype == torch.float32 and torch.allclose(x.grad.array, torch.full((3,), 1 / 3))


def test_clip_raises_where_the_standard_leaves_it_open() -> None:
    for x, limit in (([1, 2], 1.5), ([True, False], 0), ([1j, 2.0], 1.0), ([1.0, 2.0], 1j)):
        with pytest.raises(TypeError, match="clip: .*(limits are for|the bounds must be)"):
            mg.clip(mg.asarray(torch.tensor(x)), limit)
    small = mg.asarray(torch.tensor([1, 200], dtype=torch.uint8))
    assert mg.clip(small, -1, 300).array.tolist() == [1, 200]


def test_integers_beside_floats_are_of_their_dtype() -> None:
    integers = torch.arange(3)
    assert (mg.asarray(integers) * torch.ones(3)).dtype == torch.float32
    assert (mg.asarray(integers) * torch.ones(3, dtype=torch.float64)).dtype == torch.float64
    assert (
        (mg.asarray(integers) * 1.5).dtype
        == mg.heaviside(integers, integers).dtype
        == torch.float32
    )
    assert mg.heaviside(integers, integers).array.tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_dtypes_are_added_up_in_float32(dtype: Any) -> None:
    x = mg.asarray(torch.ones(2, dtype=dtype), requires_grad=True)
    out = mg.take(x, torch.zeros(1000, dtype=torch.int64), axis=0)
    out.sum().backward()
    assert x.grad.dtype == dtype and x.grad.array.tolist() == [1000.0, 0.0]
    y = mg.asarray(torch.full((10,), 200.0, dtype=dtype))
    assert bool(mg.isfinite(mg.linalg.vector_norm(y))) and float(mg.std(y)) == 0.0


def test_bfloat16_has_no_way_to_numpy() -> None:
    with pytest.raises(
        BackendError,
        match="cannot bring an array of 'torch' to another backend, neither by DLPack nor "
        "through NumPy: .*BFloat16",
    ):
        mg.asarray(torch.ones(2, dtype=torch.bfloat16)).to_backend("numpy")


# ----- keys: negative steps, integers of any width -----


def test_negative_steps_read_and_write_through_views() -> None:
    x = leaf(torch.arange(12.0, dtype=torch.float64).reshape(3, 4))
    mine, theirs = x[::-1, ..., 3:0:-2], values(x)[::-1, ..., 3:0:-2]
    assert np.array_equal(values(mine), theirs)
    mine.sum().backward()
    assert values(x.grad).tolist() == [[0, 1, 0, 1]] * 3
    y, n = mg.asarray(X.clone()), X.numpy().copy()
    view, m = y[::-1], n[::-1]
    view[0], m[0] = 9.0, 9.0
    y[1], n[1] = 7.0, 7.0
    y[2:0:-1], n[2:0:-1] = torch.tensor([5.0, 6.0]), [5.0, 6.0]
    view *= 2
    m *= 2
    assert np.array_equal(values(y), n) and np.array_equal(values(view), m)


def test_negative_steps_inside_vmap() -> None:
    f = lambda x: mg.sum(x[::-1] * X)
    assert torch.equal(
        func.vmap(lambda x: x[::-2])(torch.stack([X, X])), torch.stack([X.flip(0)[::2]] * 2)
    )
    assert torch.equal(func.vmap(func.grad(f))(torch.stack([X, X])), torch.stack([X.flip(0)] * 2))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_an_array_of_integers_is_one_of_indices(dtype: Any) -> None:
    """PyTorch takes one of uint8 for a mask, and refuses others."""
    key = torch.tensor([1, 0, 1, 0], dtype=dtype)
    x = leaf()
    out = x[key]
    assert values(out).tolist() == [1.0, 0.0, 1.0, 0.0]
    out.sum().backward()
    assert values(x.grad).tolist() == [2.0, 2.0, 0.0, 0.0]
    y = mg.asarray(X.clone())
    y[key] = 5.0
    assert values(y).tolist() == [5.0, 5.0, 2.0, 3.0]
    for function in (mg.take, mg.take_along_axis):
        assert values(function(mg.asarray(X), key, axis=0)).tolist() == [1.0, 0.0, 1.0, 0.0]


def test_parts_of_one_memory_may_overlap() -> None:
    x = mg.asarray(X.clone())
    x[1:] = x[:-1]
    assert values(x).tolist() == [0.0, 0.0, 1.0, 2.0]
    y = leaf() * 1
    y[1:] = y[:-1]
    assert values(y).tolist() == [0.0, 0.0, 1.0, 2.0]
    with pytest.raises(
        RuntimeError,
        match="more than one element of the written-to tensor refers to a single memory location",
    ):
        mg.asarray(torch.zeros(1).expand(3)).__iadd__(1.0)


# ----- memory -----

Z = torch.tensor([1 + 2j, 3 - 1j])


def test_results_lie_in_memory_of_their_own() -> None:
    """PyTorch's conjugates and its grid are views, positive is its argument."""
    for function, x in (
        (mg.conj, Z),
        (mg.positive, Z),
        (mg.conj, X),
        (lambda t: mg.meshgrid(t, t)[0][0], X),
    ):
        t = mg.asarray(x.clone())
        out = function(t)
        expected = values(out).copy()
        t += 1
        assert np.array_equal(values(out), expected)


def test_lazy_conjugates_are_taken_written_and_exported() -> None:
    lazy = Z.clone().conj()
    x = mg.asarray(lazy)
    assert (
        values(x).tolist()
        == [1 - 2j, 3 + 1j]
        == x.numpy().tolist()
        == values(x.to_backend("numpy")).tolist()
    )
    imaginary = mg.imag(x)
    imaginary += 1
    assert values(x).tolist() == [1 - 1j, 3 + 2j] and values(imaginary).tolist() == [-1.0, 2.0]
    told = (
        "to_numpy(copy=False): a tensor on cpu, a lazy conjugate, cannot become a NumPy "
        "array without a copy. Leave out copy=False."
    )
    with pytest.raises(ValueError, match=re.escape(told)):
        mg.extend.backend("torch").kernel("to_numpy")(None, lazy, copy=False)
    y = mg.asarray(lazy, requires_grad=True)
    mg.sum(mg.real(y * mg.conj(y))).backward()
    assert torch.allclose(y.grad.array, 2 * lazy)


def test_numpy_shares_memory_both_ways() -> None:
    from_numpy = mg.extend.backend("torch").kernel("from_numpy")
    array = np.arange(3.0)
    assert from_numpy(None, array).data_ptr() == array.__array_interface__["data"][0]
    frozen = np.arange(3.0)
    frozen.setflags(write=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for other in (frozen, array[::-1]):
            assert from_numpy(None, other).tolist() == other.tolist()
    # a copy: two version counters for one memory would not know of each other
    given = mg.asarray(array, backend="torch")
    array[0] = 7.0
    assert float(given[0]) == 0.0


def test_gradients_lie_as_their_arrays() -> None:
    x = mg.asarray(torch.ones(3, 2).T, requires_grad=True)
    (x * torch.arange(6.0).reshape(2, 3)).sum().backward()
    assert x.grad.array.stride() == x.array.stride() == (1, 2)
    held = torch.ones(2, 3)
    x.backward(held)
    held += 1
    assert float(x.grad[0, 0]) == 1.0


def test_vectors_of_complex_numbers_have_distinct_values() -> None:
    z = torch.tensor([1 + 1j, complex("nan"), 1 - 1j, 1 + 1j, complex("nan")])
    out = mg.unique_all(z)
    assert values(out.counts).tolist() == [1, 2, 1, 1] and values(out.indices).tolist() == [
        2,
        0,
        1,
        4,
    ]
    assert values(out.inverse_indices).tolist() == [1, 2, 0, 1, 3]


def test_standard_deviation_takes_a_fraction_for_its_correction() -> None:
    assert np.allclose(values(mg.std(X, correction=0.5)), np.std(X.numpy(), ddof=0.5))


def test_standard_deviation_of_complex_numbers_is_real() -> None:
    x = mg.asarray(Z, requires_grad=True)
    out = mg.std(x)
    out.backward()
    assert (
        out.dtype == torch.float32
        and x.grad.dtype == Z.dtype
        and np.allclose(values(out), np.std(Z.numpy()))
    )


def test_indices_of_several_axes() -> None:
    x, key = (
        leaf(torch.arange(12.0, dtype=torch.float64).reshape(3, 4)),
        torch.tensor([[0, 2], [1, 1]]),
    )
    for axis in (0, 1, -1):
        assert np.array_equal(
            values(mg.take(x, key, axis=axis)), np.take(values(x), key.numpy(), axis=axis)
        )
    mg.take(x, key, axis=0).sum().backward()
    assert values(x.grad).sum(axis=1).tolist() == [4.0, 8.0, 4.0]
    assert mg.take(x[:, :0], key[:, :1], axis=0).shape == (2, 1, 0)


def test_bounds_of_several_axes() -> None:
    start, stop = leaf(X[:2, None].clone()), leaf(X[1:].clone())
    for endpoint in (True, False):
        for num in (0, 1, 5):
            made = mg.linspace(start, stop, num, endpoint=endpoint)
            expected = np.linspace(values(start), values(stop), num, endpoint=endpoint)
            assert np.allclose(values(made), expected) and made.dtype == X.dtype
    mg.linspace(start, stop, 5)[1].sum().backward()
    assert np.allclose(values(start.grad), 3 * 0.75) and np.allclose(values(stop.grad), 2 * 0.25)
    assert mg.linspace(X[:2].float(), 1.0, 3).dtype == torch.float32


def test_logarithms_of_gamma_of_complex_numbers() -> None:
    z = torch.tensor([0.5 + 1j, -1.5 + 0.25j, 3.0 - 2j], dtype=torch.complex128)
    t, expected = leaf(z), mg.asarray(z.numpy(), requires_grad=True)
    for x in (t, expected):
        mg.sum(mg.real(mg.special.loggamma(x))).backward()
    assert np.allclose(values(mg.special.digamma(t)), mg.special.digamma(expected).detach().array)
    assert np.allclose(values(t.grad), expected.grad.array)


def test_stacks_of_no_rows_are_transformed() -> None:
    assert tuple(mg.fft.rfft(torch.zeros(0, 6)).shape) == (0, 4)


DEFAULT_DEVICE: dict[str, Any] = {
    "maximum": lambda x: mg.maximum(x, 1.0),
    "a power of a number": lambda x: 2.0**x,
    "a comparison": lambda x: mg.where(x > 1.0, x, 0.0),
    "atan2": lambda x: mg.atan2(x, 1.0),
    "hypot": lambda x: mg.hypot(x, 2.0),
    "clip": lambda x: mg.clip(x, 0.0, 2.0),
    "std": mg.std,
    "quantile": lambda x: mg.quantile(x, 0.3),
    "a mask": lambda x: x[x > 0.0] * 2.0,
    "heaviside": lambda x: mg.heaviside(x, 0.5) * x,
}


@pytest.mark.parametrize("name", DEFAULT_DEVICE)
def test_the_default_device_is_for_new_arrays_only(name: str) -> None:
    """The device meta stands for an accelerator. Numbers beside an array are no new arrays."""
    loss = func.value_and_grad(lambda x: mg.sum(DEFAULT_DEVICE[name](x)))
    expected, second = (
        loss(X + 0.5),
        func.hessian(lambda x: mg.sum(DEFAULT_DEVICE[name](x)))(X + 0.5),
    )
    with torch.device("meta"):
        given, again = (
            loss(X + 0.5),
            func.hessian(lambda x: mg.sum(DEFAULT_DEVICE[name](x)))(X + 0.5),
        )
    assert all(torch.equal(x, y) for x, y in zip((*given, again), (*expected, second), strict=True))


# ----- the distribution -----


def test_the_backend_names_devices_with_values_only() -> None:
    found = mg.extend.backend("torch").kernel("devices")(None)
    assert found[0] == torch.device("cpu") and len(found) == 1 + torch.cuda.device_count()
    assert mg.asarray(X).to_device("cpu").array.device.type == "cpu"


def test_the_plugin_uses_public_names_alone() -> None:
    for path in (FOLDER / "multigrad_torch").glob("*.py"):
        text = path.read_text()
        assert set(re.findall(r"^(?:from|import) (multigrad[.\w]*)", text, re.M)) <= {
            "multigrad"
        }, path
        assert not re.findall(r"\b(?:mg|torch|xp)\.(?:\w+\.)*_(?!_)\w+", text), path
