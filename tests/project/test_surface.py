"""tools/surface.txt is the public surface: what the files say, what a program finds, and every name
that users were promised.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import tool_modules
from public_surface import LINES, PATH, found, of_python

ROOT = Path(__file__).parents[2]
PROMISED = """
multigrad: Backend BackendSpec Tensor asarray autograd backends enable_grad extend fft func hookimpl
    inference_mode is_grad_enabled linalg namespace no_grad register_clients registry
    set_grad_enabled tensor use_backend
multigrad.Tensor: T array backward copy_ data detach detach_ exp grad grad_fn imag is_leaf item mT
    real register_hook requires_grad requires_grad_ reshape retain_grad retains_grad sin_ sum
    to_backend to_device tolist zero_ __deepcopy__ __iadd__
    __reduce_ex__ __setitem__
multigrad.autograd: Function Variable backward detect_anomaly forward_ad functional grad gradcheck
    gradgradcheck graph no_grad profiler set_detect_anomaly
multigrad.clients: register_clients
multigrad.extend: Layer Observer Transform
multigrad.func: checkpoint compile cond custom_jvp custom_vjp fori_loop grad hessian hvp jacfwd
    jacobian jacrev jvp linearize scan switch tree value_and_grad vjp vmap while_loop
multigrad.func.tree: flatten global_norm leaves map ravel unflatten
multigrad.registry: OPS composite define elementwise linear multilinear nondifferentiable
multigrad_autograd: grad
multigrad_conformance: check_function check_rule
multigrad_scipy: curve_fit least_squares minimize root solve_ivp
"""
PROMISED_ELSEWHERE = """
command multigrad backends
command multigrad breaks
command multigrad conformance --compare
command multigrad new backend NAME
command multigrad new rules NAME
command multigrad ops
command multigrad profile
hook multigrad_backends
hook multigrad_operations
hook multigrad_samples
numpy concatenate
numpy sin
pytest --multigrad-backend
pytest --multigrad-samples
pytest check_function
pytest check_rule
pytest xp
variable MULTIGRAD_BACKEND
"""


def test_the_file_is_the_surface() -> None:
    tool = tool_modules.tool("surface")
    (text,) = tool.texts().values()
    changed = [
        line
        for line in difflib.unified_diff(
            PATH.read_text().splitlines(), text.splitlines(), lineterm="", n=0
        )
        if not line.startswith(("---", "+++", "@@"))
    ]
    assert not changed, "\n".join([tool.CHANGED, *changed])


def test_every_name_is_there() -> None:
    """The file is read from the source: what it has is also there at run time.

    An annotation binds nothing: that of a field, of an attribute, of what type checkers know.
    """
    lines = of_python()
    missing = []
    for name in {line.name for line in lines if line.kind != "attribute"}:
        try:
            found(name)
        except (AttributeError, ImportError) as error:
            missing.append(f"{name}: {error!r}")
    assert len(lines) > 2000
    assert not missing, "\n".join(missing)


def test_what_was_promised_is_in_it() -> None:
    has = {line.name for line in LINES}
    promised = PROMISED_ELSEWHERE.strip().splitlines()
    for line in PROMISED.replace("\n    ", " ").strip().splitlines():
        module, _, members = line.partition(": ")
        promised += [module, *(f"{module}.{member}" for member in members.split())]
    assert [name for name in promised if name not in has] == []
