"""Libraries that are told of Tensors once they are imported, and those that find them: when, in
what order, by which thread, at what cost.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad import clients, func
from multigrad.core import tensor
from multigrad.errors import GradientError

DETACH = r"requires grad.* detach\(\)|\.detach\(\)"
X = np.linspace(0.2, 2.0, 24).reshape(2, 3, 4)


def in_python(program: str) -> str:
    """What a program prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def leaf(x: Any = X) -> Any:
    return mg.asarray(np.array(x), requires_grad=True)


def slopes(f: Any, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The gradient of a function of NumPy arrays by central differences."""
    g = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[at] = 1e-6
        g[at] = (f(x + step) - f(x - step)) / 2e-6
    return g


# ----- Registration -----


def test_importing_multigrad_imports_no_client() -> None:
    found = in_python(
        "import sys, multigrad as mg; mg.asarray([1.0]); mg.register_clients()\n"
        "print([m for m in ('einops', 'matplotlib', 'autoray', 'pint', 'opt_einsum', 'scipy', "
        "'xarray') if m in sys.modules])"
    )
    assert found == "[]\n"


TELL = "y = einops.rearrange(t, 'a b -> b a'); mg.sum(y * y).backward(); print(t.grad.shape)"


@pytest.mark.sweep_after(1)
@pytest.mark.parametrize(
    "program",
    [
        "import einops, multigrad as mg\nt = mg.ones((2, 3)).requires_grad_()\n" + TELL,
        "import multigrad as mg\n"
        "mg.asarray(1.0)\n"
        "import einops\n"
        "t = mg.zeros((2, 3)).requires_grad_()\n" + TELL,
        "import multigrad as mg\n"
        "t = mg.ones((2, 3)).requires_grad_()\n"
        "import einops\n"
        "mg.register_clients()\n" + TELL,
        "import multigrad as mg\n"
        "t = mg.ones((2, 3)).requires_grad_()\n"
        "import einops\n"
        "mg.asarray(1.0)\n" + TELL,
        "import multigrad as mg, numpy as np\n"
        "t = mg.ones((2, 3)).requires_grad_()\n"
        "import einops\n"
        "einops.rearrange(np.ones((2, 3)), 'a b -> b a')\n"
        "mg.register_clients()\n"
        "mg.register_clients()\n" + TELL,
    ],
    ids=["before", "between", "by name", "by another Tensor", "by name, when it was used"],
)
def test_orders_of_imports(program: str) -> None:
    assert in_python(program) == "(2, 3)\n"


def test_before_that_a_library_does_not_know_them() -> None:
    assert "Tensor type unknown to einops" in in_python(
        "import multigrad as mg\n"
        "t = mg.ones((2, 3))\n"
        "import einops\n"
        "try: einops.rearrange(t, 'a b -> b a')\n"
        "except RuntimeError as e: print(e)"
    )


def test_threads_register_once() -> None:
    program = """
import threading, multigrad as mg
t = mg.ones((2, 3))
import einops, matplotlib.units
go = threading.Barrier(8)
def work():
    go.wait()
    mg.asarray([1.0])
    assert einops.rearrange(t, 'a b -> b a').shape == (3, 2)
threads = [threading.Thread(target=work) for _ in range(8)]
for x in threads: x.start()
for x in threads: x.join()
from einops._backends import AbstractBackend
print([c.framework_name for c in AbstractBackend.__subclasses__()].count('multigrad'))
"""
    assert in_python(program) == "1\n"


def test_a_library_that_is_being_imported_is_told_later(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[ModuleType] = []
    place, mine = ModuleType("a_client.place"), ModuleType("multigrad.clients.a_client")
    place.__spec__ = type("Spec", (), {"_initializing": True})()
    mine.register = told.append  # type: ignore[attr-defined]
    monkeypatch.setitem(clients.PLACES, "a_client.place", "a_client")
    monkeypatch.setitem(sys.modules, "multigrad.clients.a_client", mine)
    monkeypatch.setitem(sys.modules, "a_client.place", place)
    mg.asarray([1.0])
    assert not told and tensor.seen == [-1]  # the next Tensor looks again
    place.__spec__ = None
    mg.asarray([1.0])
    mg.asarray([1.0])
    mg.register_clients()
    assert told == [place] and tensor.seen == [len(sys.modules)]
    clients._registered.discard("a_client.place")


def test_a_version_without_the_place_is_left_alone() -> None:
    from multigrad.clients import einops

    before = len(einops._kept)
    einops.register(ModuleType("einops._backends"))
    assert len(einops._kept) == before


def test_where_no_module_was_imported_a_new_tensor_looks_for_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mg.asarray([1.0])
    monkeypatch.setattr(
        tensor, "register_clients", lambda: pytest.fail("it was looked for clients")
    )
    mg.asarray([1.0])
    mg.zeros(2)
    monkeypatch.setitem(sys.modules, "a_module_more", ModuleType("a_module_more"))
    with pytest.raises(pytest.fail.Exception, match="looked for clients"):
        mg.asarray(X)


# ----- einops -----


def test_einops_on_every_backend_and_layer(xp: Any) -> None:
    einops = pytest.importorskip("einops")
    x = xp.asarray(X, requires_grad=True)
    for operation in ("sum", "mean", "max", "min", "prod"):
        y = einops.reduce(x, "a b (c d) -> d a", operation, c=2)
        np.testing.assert_allclose(values(y), einops.reduce(X, "a b (c d) -> d a", operation, c=2))
        assert y.requires_grad
    y = einops.repeat(einops.rearrange(x, "a b c -> c (b a)"), "c x -> c r x", r=2)
    packed, shapes = einops.pack([y, y], "* x")
    # strict: x[:, ...] only
    first = (
        packed[: packed.shape[0] // 2, ...]
        if xp is mg.namespace("strict")
        else einops.unpack(packed, shapes, "* x")[0]
    )
    (g,) = mg.autograd.grad(xp.sum(first * first), x)
    np.testing.assert_allclose(values(g), 4 * X)
    assert einops.parse_shape(x, "a _ c") == {"a": 2, "c": 4}
    with pytest.raises(GradientError, match=DETACH):
        einops.asnumpy(x)
    assert type(einops.asnumpy(x.detach())) is np.ndarray


def test_einops_inside_transformations() -> None:
    einops = pytest.importorskip("einops")
    mg.register_clients()
    turned = lambda x: einops.rearrange(x, "b c -> c b")
    np.testing.assert_array_equal(func.vmap(turned)(X), np.swapaxes(X, 1, 2))
    np.testing.assert_allclose(
        func.jvp(lambda x: turned(x) ** 2, (X[0],), (X[0],))[1], 2 * X[0].T ** 2
    )
    np.testing.assert_allclose(
        func.grad(lambda x: mg.sum(func.grad(lambda y: mg.sum(turned(y) ** 3))(x)))(X[0]), 6 * X[0]
    )
    t = leaf()
    np.testing.assert_allclose(
        values(einops.einsum(t, X, "a b c, a b d -> c d")), np.einsum("abc,abd->cd", X, X)
    )


# ----- Libraries that find the names -----


def test_opt_einsum() -> None:
    oe = pytest.importorskip("opt_einsum")
    a, b = leaf(X[0]), leaf(X[1].T)
    for result in (
        oe.contract("ij,jk,kl->il", a, b, X[0], backend="auto"),
        oe.contract_expression("ij,jk,kl->il", (3, 4), (4, 3), X[0], constants=[2])(a, b),
    ):
        np.testing.assert_allclose(values(result), X[0] @ X[1].T @ X[0])
        (g,) = mg.autograd.grad(mg.sum(result), a)
        np.testing.assert_allclose(values(g), np.broadcast_to((X[1].T @ X[0]).sum(1), (3, 4)))


def test_autoray() -> None:
    autoray = pytest.importorskip("autoray")
    mg.register_clients()
    t = leaf(X[0])
    assert autoray.infer_backend(t) == "multigrad"
    np.testing.assert_allclose(
        values(autoray.do("einsum", "ij,kj->ik", t, t, like=t)), X[0] @ X[0].T
    )
    numpy_does = {
        "power": (2,),
        "cumsum": (0,),
        "cumprod": (1,),
        "linalg.norm": (),
        "conjugate": (),
        "absolute": (),
        "amax": (),
        "amin": (),
        "ptp": (),
        "rot90": (),
        "squeeze": (),
        "average": (),
    }
    for name, rest in numpy_does.items():
        y = autoray.do(name, t, *rest, like=t)
        np.testing.assert_allclose(values(y), autoray.do(name, X[0], *rest, like="numpy"))
        assert y.requires_grad, name
    assert autoray.do("allclose", t, X[0], like=t) and autoray.do("array_equal", t, X[0], like=t)
    np.testing.assert_allclose(values(autoray.do("vdot", t[0], t[1])), X[0, 0] @ X[0, 1])
    np.testing.assert_allclose(
        values(autoray.do("linalg.multi_dot", [t, t.T, t], like=t)), X[0] @ X[0].T @ X[0]
    )
    np.testing.assert_allclose(values(autoray.do("complex", t, t)), X[0] + 1j * X[0])
    assert values(autoray.do("array", [1.0, 2.0], like=t)).tolist() == [1, 2] and autoray.do(
        "identity", 2, like=t
    ).shape == (2, 2)
    for made in (
        autoray.do("array", t, like=t),
        autoray.do("array", list(t), dtype="float32", like=t),
    ):
        assert made is not t and made.requires_grad
        (g,) = mg.autograd.grad(mg.sum(made * made), t)
        np.testing.assert_allclose(values(g), 2 * X[0], rtol=1e-6)
    with pytest.raises(GradientError, match=DETACH):
        autoray.to_numpy(t)
    lazy = autoray.lazy.array(t)
    assert (lazy @ lazy.T).compute().requires_grad


def test_pint() -> None:
    pint = pytest.importorskip("pint")
    units = pint.UnitRegistry()
    t = leaf()
    for q in (units.Quantity(t, "m"), t * units.m, units.m * t):
        assert (
            q.units == units.m and isinstance(q.magnitude, mg.Tensor) and q.magnitude.requires_grad
        )
    q = units.Quantity(t, "m")
    made = {
        "cm": q.to("cm"),
        "m**2": q * q,
        "m": np.sum(q, axis=0) + q[0] - q[0],
        "m**0.5": np.sqrt(q),
        "m ": q * t,
        "m  ": t * q,
        "1/m": 1 / q,
        "km": np.concatenate([q, q]).to("km"),
        "kelvin": units.Quantity(t, "degC").to("kelvin"),
    }
    for unit, result in made.items():
        assert result.units == units(unit.strip()).units and isinstance(
            result.magnitude, mg.Tensor
        ), unit
        (g,) = mg.autograd.grad(mg.sum(result.magnitude), t, retain_graph=True)
        assert np.all(np.isfinite(values(g))), unit
    (g,) = mg.autograd.grad(mg.sum(made["cm"].magnitude), t)
    np.testing.assert_allclose(values(g), np.full(X.shape, 100.0))
    (g,) = mg.autograd.grad(mg.sum(made["kelvin"].magnitude), t)
    np.testing.assert_allclose(values(g), np.ones(X.shape))
    np.testing.assert_array_equal(values(t), X)
    with pytest.raises(pint.DimensionalityError):
        q + t


def test_matplotlib_plots_constants_and_has_the_others_detached() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    import matplotlib

    matplotlib.use("Agg")
    mg.register_clients()
    x, t = mg.asarray(X[0, 0]), leaf(X[0, 0])
    one = ("plot", "hist", "semilogy", "boxplot", "violinplot")
    two = ("plot", "scatter", "bar", "step", "errorbar", "fill_between", "stem", "hist2d")
    for name, count in (*product(one, (1,)), *product(two, (2,))):
        figure = pyplot.figure()
        axes = figure.gca()
        getattr(axes, name)(*[x] * count)
        for again in (figure.gca(), pyplot.figure().gca()):  # one that knows Tensors, and a new one
            with pytest.raises(RuntimeError, match=DETACH):
                getattr(again, name)(*[t * 1.0] * count)
    pyplot.close("all")
    (line,) = pyplot.figure().gca().plot([x[0], x[1]], [x[2], x[3]])
    np.testing.assert_array_equal(
        line.get_xydata(), [[X[0, 0, 0], X[0, 0, 2]], [X[0, 0, 1], X[0, 0, 3]]]
    )
    pyplot.close("all")


def test_numpy_testing_compares_constants_as_pytorch_has_it(xp: Any) -> None:
    x, t = xp.asarray(X), xp.asarray(X, requires_grad=True)
    for check in (
        np.testing.assert_allclose,
        np.testing.assert_array_equal,
        np.testing.assert_equal,
        np.testing.assert_array_almost_equal,
    ):
        check(x, X)
        check(X, x)
        with pytest.raises(AssertionError, match="Mismatched elements: 24 / 24"):
            check(x, X + 1)
        with pytest.raises(GradientError, match=DETACH):
            check(t, X)
        check(t.detach(), X)
    assert np.allclose(t, X) and np.array_equal(t, X) and not np.allclose(t, X + 1)


# ----- scipy.fft -----


fft = pytest.importorskip("scipy.fft")
NORMS = (None, "backward", "ortho", "forward")


def by_ours(function: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    with fft.set_backend(clients.scipy_fft):
        return function(x, *args, **kwargs)


def agree(function: Any, x: Any, *args: Any, **kwargs: Any) -> None:
    expected = function(x, *args, **kwargs)
    found = by_ours(function, mg.asarray(x), *args, **kwargs)
    assert (
        isinstance(found, mg.Tensor)
        and found.dtype == expected.dtype
        and found.shape == expected.shape
    )
    tolerance = 1e-5 if found.dtype in (np.float32, np.complex64) else 1e-12
    np.testing.assert_allclose(
        found.array,
        expected,
        rtol=tolerance,
        atol=tolerance,
        err_msg=f"{function.__name__} {args} {kwargs}",
    )


@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
def test_transforms_of_cosines_and_sines_are_scipys(name: str) -> None:
    x = X[0] - 1.1
    one, several = getattr(fft, name), getattr(fft, f"{name}n")
    for kind, norm, ends in product((1, 2, 3, 4), NORMS, (None, True, False)):
        for n, axis in product((None, 2, 3, 7), (-1, 0)):
            agree(one, x, kind, n, axis, norm, orthogonalize=ends)
        for rest in (
            {},
            {"s": (2, 6)},
            {"axes": (1,)},
            {"s": (3,), "axes": (0,)},
            {"s": 5},
            {"axes": 1},
        ):
            agree(several, x, kind, norm=norm, orthogonalize=ends, **rest)
    for kind in (1, 2, 3, 4):
        agree(one, x + 1j * x[::-1], kind, norm="ortho")
        agree(one, x.astype(np.float32), kind)
        agree(one, np.arange(12).reshape(3, 4), kind)
        if not (name.endswith("dct") and kind == 1):
            agree(one, x, kind, n=1, norm="ortho")


def test_fourier_transforms_are_scipys() -> None:
    for name in (
        "fft",
        "ifft",
        "rfft",
        "irfft",
        "hfft",
        "ihfft",
        *(f"{n}{end}" for n in ("fft", "ifft", "rfft", "irfft") for end in "2n"),
    ):
        function = getattr(fft, name)
        for norm in NORMS:
            agree(function, X, norm=norm)
        agree(function, X.astype(np.float32))
        if name[-1] in "2n":
            agree(function, X, (3, 4), (1, 0))
            agree(function, X, s=(5, 2))
        else:
            agree(function, X, 7, 0)
        if name not in ("rfft", "ihfft", "rfft2", "rfftn"):
            agree(function, X * (1 - 2j))
    agree(fft.fftn, X, (3,))
    agree(fft.fftn, X, axes=1)


@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst", "dctn", "idctn", "dstn", "idstn"])
def test_their_gradients(name: str, xp: Any) -> None:
    function, x = getattr(fft, name), X[0] - 1.1
    weights = np.cos(np.arange(12.0)).reshape(3, 4)
    for how in (
        product((1, 2, 3, 4), ("backward", "ortho"))
        if xp is mg.namespace("numpy")
        else [(2, "ortho")]
    ):
        t, options = (
            xp.asarray(x, requires_grad=True),
            dict(zip(("type", "norm"), how, strict=True)),
        )
        (g,) = mg.autograd.grad(xp.sum(by_ours(function, t, **options) * xp.asarray(weights)), t)
        expected = slopes(lambda a, options=options: np.sum(function(a, **options) * weights), x)
        np.testing.assert_allclose(values(g), expected, rtol=1e-6, atol=1e-7)
    assert mg.autograd.gradgradcheck(lambda a: by_ours(function, a) ** 2, (leaf(x[:2, :3]),))


def test_what_is_no_tensor_or_has_no_counterpart_is_left_to_scipy() -> None:
    with fft.set_backend(clients.scipy_fft):
        assert type(fft.dct(X)) is np.ndarray
        np.testing.assert_allclose(np.asarray(fft.hfft2(mg.asarray(X[0]))), fft.hfft2(X[0]))
        with pytest.raises(RuntimeError, match=DETACH):
            fft.hfft2(leaf(X[0]))
        with pytest.raises(NotImplementedError, match="fft: multigrad takes no plan"):
            fft.fft(leaf(), plan=3)
        with pytest.raises(TypeError, match=r"^fft\(\) got an unexpected keyword argument 'bad'"):
            fft.fft(leaf(), bad=3)
        with pytest.raises(ValueError, match="dct: type must be 1, 2, 3 or 4, not 5"):
            fft.dct(leaf(), 5)
        with pytest.raises(ValueError, match="dct: type 1 is defined for two elements or more"):
            fft.dct(leaf(X[..., :1]), 1)
        with pytest.raises(
            ValueError, match=r'dst: norm must be "backward", "ortho" or "forward", not \'other\''
        ):
            fft.dst(leaf(), norm="other")
        with pytest.raises(
            ValueError, match="idst: axis 3 is out of bounds for an array of 3 dimensions"
        ):
            fft.idst(leaf(), axis=3)
        with pytest.raises(ValueError, match=r"dct: invalid number of data points \(0\) specified"):
            fft.dct(leaf(), n=0)
        with pytest.raises(
            ValueError,
            match="dctn: when given, axes and shape arguments have to be of the same length",
        ):
            fft.dctn(leaf(), s=(2,), axes=(0, 1))
        with pytest.raises(ValueError, match="dstn: all axes must be unique"):
            fft.dstn(leaf(), axes=(1, -2))


def test_threads_set_it_for_themselves() -> None:
    """uarray's own rule, which holds for this backend, too."""
    outcome: list[Any] = []

    def other() -> None:
        try:
            fft.dct(leaf(X[0]))
        except RuntimeError as error:
            outcome.append(str(error))

    with fft.set_backend(clients.scipy_fft):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert fft.dct(leaf(X[0])).requires_grad
    assert len(outcome) == 1 and "detach()" in outcome[0]
