"""The corpus of programs that write into arrays: what is expected is what PyTorch does, see
mutations/.
"""

from __future__ import annotations

import pytest
from parity.mutations import corpus
from parity.mutations.sides import Multigrad, Torch, Traced

import multigrad as mg
from multigrad.errors import BackendError

EXPECTED = corpus.load()
CLONES = {  # a deviation, and the same in words that PyTorch takes
    "times_itself": "operands.times_clone_of_itself",
    "times_its_other_part": "operands.times_clone_of_its_other_part",
    "plus_its_own_part": "operands.plus_clone_of_its_own_part",
    "older_view_of_a_constant_written": "stale.older_view_of_a_constant_written",
}


def check(xp, names):
    found = {name: corpus.complaint(xp, name, EXPECTED[name]) for name in names}
    wrong = [f"{name}: {text}" for name, text in found.items() if text]
    assert not wrong, "\n".join(wrong)


def of(module):
    return [name for name in corpus.PROGRAMS if name.startswith(f"{module}.")]


def backend(name):
    try:
        return Multigrad(name)
    except BackendError as error:
        pytest.skip(f"backend {name!r} cannot be used here: {error}")


@pytest.mark.parametrize("name", corpus.PROGRAMS)
def test_on_numpy(name):
    check(Multigrad("numpy"), [name])


@pytest.mark.parametrize("name", corpus.PROGRAMS)
def test_on_strict(name):
    check(backend("strict"), [name])


# Not one by one: processes that share the tests would each compile for all shapes.


@pytest.mark.sweep
@pytest.mark.parametrize("module", corpus.MODULES)
def test_on_jax(module):
    check(backend("jax"), of(module))


@pytest.mark.sweep
@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_under_jit(every):
    backend("jax")
    check(Traced(), list(corpus.PROGRAMS)[::every])


@pytest.mark.parametrize("module", corpus.MODULES)
def test_in_pytorch(module):
    pytest.importorskip("torch")
    check(Torch(), of(module))


# Where the graph keeps what it saved


# no hook is given these
INDICES = {
    "history.index_array_written",
    "history.index_array_of_a_write_written",
    "history.mask_written",
}
BY_VIEWS = {
    "views.twin_through_view",
    "history.factor_written_through_view",
    "modes.write_through_view_of_detached_is_noticed",
    # PyTorch takes a view that was written for the array that was saved
    "loops.recurrence_that_keeps_what_is_written",
    "modes.write_through_data_is_not_noticed",
}


def test_a_write_that_is_allowed_copies_what_a_copy_of_all_that_is_saved_keeps():
    xp = Multigrad("numpy")
    for program, function in corpus.PROGRAMS.items():
        with mg.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
            expected = corpus.run(xp, function)
        with mg.autograd.graph.allow_mutation_on_saved_tensors():
            found = corpus.run(xp, function)
        difference = corpus.same(found, expected)
        if program in INDICES:
            assert expected["raises"][1] == "changed" and found["raises"] is None
        elif program in corpus.UNSPOILT:  # x.data: writes through it are noticed by nothing
            assert difference and not corpus.same(found, EXPECTED[program])
        else:
            assert not difference, f"{program}: {difference}"


@pytest.mark.parametrize("module", [m for m in corpus.MODULES if m != "deviations"])
def test_a_write_that_is_allowed_as_in_pytorch(module):
    torch = pytest.importorskip("torch")
    for program in of(module):
        with torch.autograd.graph.allow_mutation_on_saved_tensors():
            expected = corpus.run(Torch(), corpus.PROGRAMS[program])
        with mg.autograd.graph.allow_mutation_on_saved_tensors():
            found = corpus.run(Multigrad("numpy"), corpus.PROGRAMS[program])
        if program in BY_VIEWS:
            assert corpus.same(found, expected)
        else:
            assert not corpus.same(found, expected), program


@pytest.mark.parametrize("name", CLONES)
def test_a_deviation_is_what_clones_give(name):
    own, clones = EXPECTED[f"deviations.{name}"], EXPECTED[CLONES[name]]
    assert own["raises"] is clones["raises"] is None
    assert not corpus.same(own | {"facts": []}, clones | {"facts": []})


def test_what_immutable_arrays_keep():
    pytest.importorskip("jax")
    xp = mg.namespace("jax")
    x = xp.asarray([0.5, 1.0, 2.0], dtype="float64", requires_grad=True)
    y = xp.exp(x)
    y.data.zero_()
    assert y.tolist() == [0.0, 0.0, 0.0] and y._version == 0
    xp.sum(y).backward()
    assert x.grad.tolist() == xp.exp(x.detach()).tolist()


def test_what_the_corpus_has():
    assert corpus.PROGRAMS.keys() == EXPECTED.keys()
    refusals = {found["raises"][1] for found in EXPECTED.values() if found["raises"]}
    assert refusals == corpus.REFUSALS.keys()
