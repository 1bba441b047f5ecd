"""autograd.graph, and the attributes of nodes: on every backend and in PyTorch."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from function_programs import enabled, square_function

import multigrad as mg
from multigrad.autograd import graph as ours

FREED = "Trying to backward through the graph a second time"


@pytest.fixture
def graph(side):
    return side.autograd.graph


@pytest.fixture
def x(side):
    return side.tensor([1.0, 2.0], requires_grad=True)


def gradient(side, y, x, **options):
    return side.values(side.autograd.grad(side.xp.sum(y), x, **options)[0])


# saved_tensors_hooks


def test_pack_and_unpack(side, graph, x):
    log = []

    def pack(t):
        log.append(("pack", t.requires_grad, t.grad_fn is not None, t is x, enabled(side)))
        return t.detach()

    def unpack(t):
        log.append(("unpack", enabled(side)))
        return t

    with graph.saved_tensors_hooks(pack, unpack):
        y = x * x
        z = side.xp.exp(y)
        side.xp.sum(z + 1)  # saves nothing
    assert log == [("pack", True, False, True, False)] * 2 + [("pack", True, True, False, False)]
    log.clear()
    np.testing.assert_allclose(
        gradient(side, z, x, retain_graph=True), 2 * np.array([1, 2]) * np.exp([1, 4])
    )
    assert log == [("unpack", False)] * 3
    log.clear()
    (g,) = side.autograd.grad(side.xp.sum(z), x, create_graph=True)
    assert log == [("unpack", True)] * 3
    np.testing.assert_allclose(gradient(side, g, x), (2 + 4 * np.array([1, 4])) * np.exp([1, 4]))


def stored(side, graph, store):
    def pack(t):
        store.append(side.values(t))
        return len(store) - 1

    return graph.saved_tensors_hooks(pack, lambda i: side.tensor(store[i]))


def test_packing_as_something_else(side, graph, x):
    store = []
    with stored(side, graph, store):
        y = side.xp.sin(x) * x
    assert len(store) == 3
    np.testing.assert_allclose(gradient(side, y, x), np.cos([1, 2]) * [1, 2] + np.sin([1, 2]))


def test_lists_and_several_outputs(side, graph, x):
    store = []
    with stored(side, graph, store):
        q, r = side.xp.linalg.qr(
            side.xp.reshape(side.xp.concat([x, x * x]), (2, 2))
            + side.tensor([[3.0, 1.0], [0.0, 2.0]])
        )
        y = side.xp.sum(q * r)
    assert len(store) >= 4
    packed = gradient(side, y, x)
    q, r = side.xp.linalg.qr(
        side.xp.reshape(side.xp.concat([x, x * x]), (2, 2)) + side.tensor([[3.0, 1.0], [0.0, 2.0]])
    )
    np.testing.assert_allclose(packed, gradient(side, side.xp.sum(q * r), x))


def test_scalars_are_not_packed(side, graph, x):
    log = []
    with graph.saved_tensors_hooks(lambda t: log.append(t), lambda _: x):
        x * 3
    assert log == []


def test_what_the_hooks_get_wrong(side, graph, x):
    def use(pack, unpack):
        with graph.saved_tensors_hooks(pack, unpack):
            y = side.xp.exp(x)
        return gradient(side, y, x)

    def in_place(t):
        t += 1
        return t

    with pytest.raises(
        TypeError,
        match="Output of saved tensor unpack_hook expected to be a Tensor but got result of type",
    ):
        use(lambda t: 3, lambda t: t)
    with pytest.raises(
        RuntimeError, match="A saved tensor pack hook is modifying its input in place."
    ):
        use(in_place, lambda t: t)
    with pytest.raises(TypeError):
        use(3, lambda t: t)
    with pytest.raises(ZeroDivisionError):
        use(lambda t: 1 / 0, lambda t: t)


def test_the_innermost_pair_is_in_force(side, graph, x):
    log = []
    with graph.saved_tensors_hooks(lambda t: log.append("outer") or t.detach(), lambda t: t):
        with graph.saved_tensors_hooks(lambda t: log.append("inner") or t.detach(), lambda t: t):
            side.xp.exp(x)
        side.xp.exp(x)
    side.xp.exp(x)
    assert log == ["inner", "outer"]


def test_of_another_thread_nothing_is_packed(side, graph, x):
    log = []
    with graph.saved_tensors_hooks(lambda t: log.append(1) or t.detach(), lambda t: t):
        thread = threading.Thread(target=lambda: x * x)
        thread.start()
        thread.join()
        assert log == []
        x * x
    assert log == [1, 1]


def test_freed_with_the_graph_and_unchecked(side, graph, x):
    with graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
        a = x * 1
        y = side.xp.sum(a * side.xp.exp(a))
    # whose arrays are never written, so that the packed ones keep their values
    if side.name != "jax":
        a += 1  # no error: the hooks may have kept anything
        y.backward()
        assert not np.allclose(side.values(x.grad), np.exp([1, 2]) * [2, 3])
    else:
        y.backward()
    with pytest.raises(RuntimeError, match=FREED):
        y.backward()


def test_a_function_is_packed_too(side, graph, x):
    log = []
    with graph.saved_tensors_hooks(
        lambda t: log.append("pack") or t.detach(), lambda t: log.append("unpack") or t
    ):
        y = square_function(side).apply(x)
    np.testing.assert_allclose(gradient(side, y, x), [2, 4])
    assert log == ["pack", "unpack"]


def test_disable(side, graph, x):
    def enter():
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass

    with graph.disable_saved_tensors_hooks("outer"):
        with pytest.raises(RuntimeError, match="outer"):
            enter()
        with graph.disable_saved_tensors_hooks("inner"), pytest.raises(RuntimeError, match="inner"):
            enter()
        with pytest.raises(RuntimeError, match="outer"):
            enter()
    enter()
    with (
        graph.saved_tensors_hooks(lambda t: t, lambda t: t),
        pytest.raises(RuntimeError, match="late"),
        graph.disable_saved_tensors_hooks("late"),
    ):
        pass
    decorated = graph.disable_saved_tensors_hooks("decorated")(enter)
    with pytest.raises(RuntimeError, match="decorated"):
        decorated()


def test_save_on_cpu_moves_there_and_back():
    strict = pytest.importorskip("array_api_strict")
    device = strict.Device("device1")
    t = mg.asarray(strict.asarray([1.0, 2.0], device=device), requires_grad=True)
    kept = []
    real = ours._to_host
    with ours.saved_tensors_hooks(lambda a: kept.append(real(a)) or kept[-1], ours._from_host):
        y = mg.sum(mg.exp(t) * t)
    assert {type(library.array) for library, _ in kept} == {np.ndarray}
    y.backward()
    assert t.grad.device == device
    np.testing.assert_allclose(
        np.asarray(t.grad.array.to_device(strict.Device("CPU_DEVICE"))), np.exp([1, 2]) * [2, 3]
    )


def test_allow_mutation(side, graph, x):
    with graph.allow_mutation_on_saved_tensors():
        a = x * 1
        b = a * a
        a *= 5
        c = side.xp.sum(b + a)
        c.backward()
        np.testing.assert_allclose(side.values(x.grad), [2 + 5, 4 + 5])
        with (
            pytest.raises(
                RuntimeError, match="allow_mutation_on_saved_tensors contexts cannot be nested"
            ),
            graph.allow_mutation_on_saved_tensors(),
        ):
            pass
    a = x * 1
    b = a * a
    a *= 5
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        side.xp.sum(b).backward()


# Nodes


def test_saved_attributes(side, x):
    saved = {"torch": ("self", "other", "result")}.get(side.name, ("x1", "x2", "ans"))
    w = side.tensor([3.0, 4.0], requires_grad=True)
    y = x * w
    z = side.xp.exp(y)
    first, second, result = (f"_saved_{name}" for name in saved)
    assert getattr(y.grad_fn, first) is x or side.name == "torch"
    assert getattr(y.grad_fn, first).requires_grad and getattr(y.grad_fn, first).is_leaf
    np.testing.assert_array_equal(side.values(getattr(y.grad_fn, second)), [3, 4])
    ans = getattr(z.grad_fn, result)
    assert ans.grad_fn is z.grad_fn
    np.testing.assert_allclose(side.values(ans), np.exp([3, 8]))
    assert first in dir(y.grad_fn) and result not in dir(y.grad_fn)
    constant = x * side.tensor([5.0, 6.0])
    assert getattr(constant.grad_fn, first) is None  # nobody needs it
    with pytest.raises(AttributeError, match="_saved_nothing"):
        y.grad_fn._saved_nothing
    side.xp.sum(z).backward()
    with pytest.raises(RuntimeError, match=FREED):
        getattr(y.grad_fn, first)


def test_plain_parameters_are_saved_as_they_are():
    y = mg.permute_dims(mg.asarray(np.ones((2, 3)), requires_grad=True), (1, 0))
    assert y.grad_fn._saved_axes == (1, 0)


def test_a_saved_attribute_is_checked(side, x):
    name = "_saved_result" if side.name == "torch" else "_saved_ans"
    y = side.xp.exp(x)
    node = y.grad_fn
    y += 1
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        getattr(node, name)


def test_hooks_of_one_saved_tensor(side, x):
    name = "_raw_saved_result" if side.name == "torch" else "_raw_saved_ans"
    y = side.xp.exp(x)
    log = []
    getattr(y.grad_fn, name).register_hooks(
        lambda t: log.append(t.grad_fn is y.grad_fn) or t.detach() * 2, lambda t: t * 5
    )
    assert len(log) == 1
    with pytest.raises(
        RuntimeError,
        match="Calling register_hooks on a saved tensor whose hooks have already been set. "
        "Hint: only one pair",
    ):
        getattr(y.grad_fn, name).register_hooks(lambda t: t, lambda t: t)
    np.testing.assert_allclose(gradient(side, y, x), 10 * np.exp([1, 2]))
    with pytest.raises(
        RuntimeError, match="Calling register_hooks on a saved tensor after it has been freed."
    ):
        getattr(y.grad_fn, name).register_hooks(lambda t: t, lambda t: t)
    other = "_raw_saved_self" if side.name == "torch" else "_raw_saved_x1"
    with pytest.raises(
        RuntimeError, match="Calling register_hooks on a saved tensor with value None is forbidden"
    ):
        getattr((x * 3).grad_fn, other).register_hooks(lambda t: t, lambda t: t)


def test_the_others_of_that_node_are_still_checked(side, x):
    a, b = x * 1, x * 2
    y = a * b
    getattr(
        y.grad_fn, "_raw_saved_self" if side.name == "torch" else "_raw_saved_x1"
    ).register_hooks(lambda t: t.detach(), lambda t: t)
    a += 1
    side.xp.sum(y).backward(retain_graph=True)
    b += 1
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        side.xp.sum(y).backward()


def test_names_numbers_and_notes(side, graph, x):
    y = x * 2
    z = y + 1
    assert isinstance(z.grad_fn, graph.Node) and z.grad_fn.name().startswith("Add")
    assert z.grad_fn._sequence_nr() > y.grad_fn._sequence_nr()
    assert z.grad_fn.next_functions == ((y.grad_fn, 0), (None, 0))
    z.grad_fn.metadata["note"] = 1
    assert z.grad_fn.metadata == {"note": 1}
    edge = graph.get_gradient_edge(z)
    (info,) = edge.node._input_metadata
    assert tuple(info.shape) == (2,) and info.dtype == z.dtype and info.device == z.device
    (info,) = y.grad_fn.next_functions[0][0]._input_metadata
    assert tuple(info.shape) == (2,)


def test_a_node_knows_its_output_only_where_somebody_noted_it():
    y = mg.asarray(np.ones(2), requires_grad=True) * 2
    with pytest.raises(
        RuntimeError,
        match="MultiplyBackward does not keep what its output is like. Ask get_gradient_edge",
    ):
        y.grad_fn._input_metadata
    assert mg.exp(y).grad_fn._input_metadata[0].shape == (2,)  # it saves its output


# GradientEdge


def test_edges_as_inputs_and_outputs(side, graph, x):
    y = x * 2
    z = side.xp.sum(y)
    grad = side.autograd.grad
    at_y, at_z, at_x = (graph.get_gradient_edge(t) for t in (y, z, x))
    assert at_y[:2] == (y.grad_fn, 0) and at_y.ownership_token is None
    for outputs, inputs, given, expected in (
        (z, at_y, None, [1, 1]),
        (at_z, x, None, [2, 2]),
        (z, [at_x], None, [2, 2]),
        (at_y, x, side.tensor([1.0, 3.0]), [2, 6]),
        (z, graph.GradientEdge(*z.grad_fn.next_functions[0]), None, [1, 1]),
    ):
        (g,) = grad(outputs, inputs, given, retain_graph=True)
        np.testing.assert_array_equal(side.values(g), expected)
    del y, z
    side.autograd.backward(at_z, retain_graph=True)
    np.testing.assert_array_equal(side.values(x.grad), [2, 2])
    side.autograd.backward(at_z, inputs=[at_x])
    np.testing.assert_array_equal(side.values(x.grad), [4, 4])


def test_edges_of_several_outputs(side, graph, x):
    a, b = side.xp.unstack(x)
    assert graph.get_gradient_edge(b)[:2] == (a.grad_fn, 1)
    ga, gb = side.autograd.grad(a + 2 * b, [graph.get_gradient_edge(a), graph.get_gradient_edge(b)])
    assert (float(ga), float(gb)) == (1.0, 2.0)


def test_errors_of_edges(side, graph, x):
    y = x * 2
    z = side.xp.sum(y)
    grad, edge, other = (
        side.autograd.grad,
        graph.get_gradient_edge,
        side.tensor([1.0], requires_grad=True),
    )
    with pytest.raises(
        RuntimeError,
        match="It is not possible to get the gradient edge for a Tensor that does not require "
        "gradients",
    ):
        edge(side.tensor([1.0]))
    with pytest.raises(
        RuntimeError, match="grad can be implicitly created only for scalar outputs"
    ):
        grad(edge(y), x)
    with pytest.raises(
        RuntimeError,
        match=r"Mismatch in shape: grad_output\[0\] has a shape of .*3.* and output\[0\] has a "
        r"shape of .*2.*",
    ):
        grad(edge(y), x, side.tensor([1.0, 1.0, 1.0]))
    with pytest.raises(
        RuntimeError,
        match="materialize_grads cannot be used when the given input is a GradientEdge",
    ):
        grad(z, [edge(other)], materialize_grads=True)
    assert grad(z, [edge(other)], allow_unused=True, retain_graph=True) == (None,)
    with pytest.raises(
        RuntimeError,
        match="The differentiated Tensor at index 0 appears to not have been used in the graph",
    ):
        grad(z, [edge(other)])


# increment_version, hooks on several Tensors


def test_increment_version(side, graph, x):
    t = side.tensor([1.0, 2.0])
    y = x * t
    graph.increment_version(t)
    assert t._version == 1
    graph.increment_version([t, t])
    assert t._version == 3
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        side.xp.sum(y).backward()
    with pytest.raises(
        RuntimeError, match=r"increment_version expect a Iterable\[Tensor\] as input"
    ):
        graph.increment_version(3)
    with pytest.raises(
        RuntimeError, match="increment_version expects each element of the iterable to be a tensor"
    ):
        graph.increment_version([3])


def plain(side, gs):
    return [None if g is None else side.values(g).tolist() for g in gs]


def test_multi_grad_hook_all(side, graph, x):
    y, u = side.tensor([3.0, 4.0], requires_grad=True), side.tensor([5.0, 6.0], requires_grad=True)
    log = []
    handle = graph.register_multi_grad_hook((x, y, u), lambda gs: log.append(plain(side, gs)))
    side.xp.sum(x * y).backward()
    assert log == [[[3, 4], [1, 2], None]]
    log.clear()
    side.xp.sum(x * y * u).backward()
    assert log == [[[15, 24], [5, 12], [3, 8]]]
    log.clear()
    handle.remove()
    handle.remove()
    side.xp.sum(x * y).backward()
    assert log == []
    a = x * y
    with graph.register_multi_grad_hook((a, a), lambda gs: log.append(plain(side, gs))):
        side.xp.sum(a * 2).backward()
    assert log == [[[2, 2], [2, 2]]]


def test_multi_grad_hook_any(side, graph, x):
    log = []
    a = x * 2
    graph.register_multi_grad_hook(
        (x, a), lambda g: log.append(side.values(g).tolist()), mode="any"
    )
    loss = side.xp.sum(a)
    loss.backward(retain_graph=True)
    loss.backward()
    assert log == [[1, 1], [1, 1]]
    with pytest.raises(ValueError, match=r"Expects mode to be one of \('all', 'any'\) but got foo"):
        graph.register_multi_grad_hook((x,), print, mode="foo")


def test_multi_grad_hook_under_grad():
    """Leaves among them are no hindrance here, as they are in PyTorch."""
    x, y = (
        mg.asarray(np.asarray(2.0), requires_grad=True),
        mg.asarray(np.asarray(3.0), requires_grad=True),
    )
    log = []
    ours.register_multi_grad_hook(
        (x, y), lambda gs: log.append([None if g is None else float(g) for g in gs])
    )
    mg.autograd.grad(x * y, x)
    assert log == [[3.0, None]]
    with pytest.raises(
        RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"
    ):
        ours.register_multi_grad_hook((mg.asarray(1.0),), print)


# What holds here and not everywhere


def test_the_old_value_of_an_in_place_operation_is_packed(xp):
    """PyTorch's gradient is wrong here: its hook gets the memory that is then written."""
    x = xp.asarray(np.asarray([1.0, 2.0]), requires_grad=True)
    for pack in (lambda t: t, lambda t: t.detach(), lambda t: t.detach().clone()):
        with ours.saved_tensors_hooks(pack, lambda t: t):
            a = x * 1
            a *= a
            a.exp_()
        (g,) = mg.autograd.grad(xp.sum(a), x)
        np.testing.assert_allclose(np.asarray(g.array), [2 * np.exp(1), 4 * np.exp(4)])


def test_inside_a_transformation():
    log = []

    def f(a):
        with ours.saved_tensors_hooks(lambda t: log.append(t.shape) or t, lambda t: t):
            y = a * a * a
        y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 2,))
        return mg.sum(y)

    np.testing.assert_allclose(mg.func.grad(f)(np.array([1.0, 2.0])), [6, 24])
    assert log == [(2,)] * 4
    np.testing.assert_allclose(
        mg.func.grad(lambda a: mg.sum(mg.func.grad(f)(a)))(np.array([1.0, 2.0])), [12, 24]
    )
    with mg.autograd.set_detect_anomaly(True):
        np.testing.assert_allclose(
            mg.func.grad(lambda a: mg.sum(mg.func.grad(f)(a)))(np.array([1.0, 2.0])), [12, 24]
        )


@pytest.mark.parametrize("backend", ["jax"], indirect=True)
def test_under_a_trace(backend):
    import jax

    def f(a):
        x = mg.asarray(a, requires_grad=True)
        with ours.save_on_cpu():
            y = mg.sum(mg.exp(x) * x)
        (g,) = mg.autograd.grad(ours.get_gradient_edge(y), x)
        return g.array

    np.testing.assert_allclose(jax.jit(f)(np.array([1.0, 2.0])), np.exp([1, 2]) * [2, 3])
