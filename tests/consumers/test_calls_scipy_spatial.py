"""scipy.spatial: rotations, rigid transforms and distances, on Tensors."""

from __future__ import annotations

from typing import Any

import pytest
from consumer_checks import drawn
from consumer_tables import SCIPY, Call, Table

spatial = pytest.importorskip("scipy.spatial", reason="scipy is a dependency of the tests only")
distance, transform = spatial.distance, pytest.importorskip("scipy.spatial.transform")
Rotation, RigidTransform = transform.Rotation, transform.RigidTransform

Q, R, QS = drawn(4), drawn(4, seed=1), drawn(2, 4)
V, W, VS, WS = drawn(3), drawn(3, seed=1), drawn(3, 3), drawn(3, 3, seed=2)
X, Y = drawn(3, 2), drawn(3, 2, seed=1)


def rotation(name: str, *given: Any) -> Call:
    """A method of a rotation, of its quaternion."""

    def of(q: Any) -> Any:
        result = getattr(Rotation.from_quat(q), name)(*given)
        return result.as_quat() if isinstance(result, Rotation) else result

    return Call(
        f"spatial.transform.Rotation.{name}",
        of,
        (QS if name in ("mean", "magnitude", "__getitem__") else Q,),
    )


def rigid(name: str, *given: Any) -> Call:
    """A method of a rigid transform, of its rotation and translation."""

    def of(q: Any, t: Any) -> Any:
        moved = RigidTransform.from_components(t, Rotation.from_quat(q))
        result = getattr(moved, name)(*given)
        return result.as_matrix() if isinstance(result, RigidTransform) else result

    return Call(f"spatial.transform.RigidTransform.{name}", of, (Q, V))


CALLS = [
    rotation("as_matrix"),
    rotation("as_quat"),
    rotation("as_rotvec"),
    rotation("as_mrp"),
    rotation("as_euler", "xyz"),
    rotation("inv"),
    rotation("magnitude"),
    rotation("mean"),
    rotation("__pow__", 0.5),
    rotation("__getitem__", 0),
    Call(
        "spatial.transform.Rotation.as_davenport",
        lambda q: Rotation.from_quat(q).as_davenport(axes_like(q), "extrinsic"),
        (Q,),
    ),
    Call(
        "spatial.transform.Rotation.from_matrix",
        lambda q: Rotation.from_matrix(Rotation.from_quat(q).as_matrix()).as_quat(),
        (Q,),
    ),
    Call(
        "spatial.transform.Rotation.from_rotvec",
        lambda v: Rotation.from_rotvec(v).as_quat(),
        (V,),
        also=["jax"],
    ),
    Call("spatial.transform.Rotation.from_mrp", lambda v: Rotation.from_mrp(v / 4).as_quat(), (V,)),
    Call(
        "spatial.transform.Rotation.from_euler",
        lambda v: Rotation.from_euler("xyz", v).as_quat(),
        (V,),
    ),
    Call(
        "spatial.transform.Rotation.from_davenport",
        lambda v: Rotation.from_davenport(axes_like(v), "extrinsic", v).as_quat(),
        (V,),
    ),
    Call("spatial.transform.Rotation.apply", lambda q, v: Rotation.from_quat(q).apply(v), (Q, V)),
    Call(
        "spatial.transform.Rotation.__mul__",
        lambda q, r: (Rotation.from_quat(q) * Rotation.from_quat(r)).as_quat(),
        (Q, R),
    ),
    Call(
        "spatial.transform.Rotation.align_vectors",
        lambda a, b: Rotation.align_vectors(a, b)[0].as_matrix(),
        (VS, WS),
    ),
    Call(
        "spatial.transform.Rotation.concatenate",
        lambda q, r: Rotation.concatenate([Rotation.from_quat(q), Rotation.from_quat(r)]).as_quat(),
        (Q, R),
    ),
    Call(
        "spatial.transform.Rotation.reduce",
        lambda q, r: (
            Rotation.from_quat(q).reduce(Rotation.from_quat(r), Rotation.from_quat(r)).as_quat()
        ),
        (QS, QS + 1),
    ),
    Call(
        "spatial.transform.Slerp",
        lambda q: transform.Slerp([0.0, 1.0], Rotation.from_quat(q))([0.3]).as_quat(),
        (QS,),
    ),
    rigid("__pow__", 0.5),
    rigid("as_dual_quat"),
    rigid("as_exp_coords"),
    rigid("as_matrix"),
    rigid("inv"),
    Call(
        "spatial.transform.RigidTransform",
        lambda v: RigidTransform.from_translation(v).as_matrix(),
        (V,),
        note="from_translation",
    ),
    Call(
        "spatial.transform.RigidTransform.__mul__",
        lambda v, w: (
            RigidTransform.from_exp_coords(v) * RigidTransform.from_exp_coords(w)
        ).as_matrix(),
        (drawn(6), drawn(6, seed=1)),
    ),
    Call(
        "spatial.transform.RigidTransform.as_components",
        lambda q, t: (
            RigidTransform.from_components(t, Rotation.from_quat(q)).as_components()[0] * 2.0
        ),
        (Q, V),
    ),
    Call(
        "spatial.transform.RigidTransform.apply",
        lambda q, v: RigidTransform.from_translation(q).apply(v),
        (V, W),
    ),
    Call(
        "spatial.transform.RigidTransform.from_dual_quat",
        lambda q: RigidTransform.from_dual_quat(q).as_matrix(),
        (drawn(8),),
    ),
    Call(
        "spatial.transform.RigidTransform.from_exp_coords",
        lambda v: RigidTransform.from_exp_coords(v).as_matrix(),
        (drawn(6),),
    ),
    Call(
        "spatial.transform.RigidTransform.from_rotation",
        lambda q: RigidTransform.from_rotation(Rotation.from_quat(q)).as_matrix(),
        (Q,),
    ),
    Call(
        "spatial.transform.RigidTransform.mean",
        lambda v: RigidTransform.from_exp_coords(v).mean().as_matrix(),
        (drawn(2, 6),),
    ),
    Call("spatial.distance.cdist", distance.cdist, (X, Y)),
    Call("spatial.distance.euclidean", distance.euclidean, (V, W)),
]


def axes_like(x: Any) -> Any:
    """Three axes at right angles, of the kind of an array."""
    xp = x.__array_namespace__()
    return xp.eye(3, dtype=x.dtype, device=x.device)


TABLE = Table("SciPy", "scipy_spatial", CALLS, part="scipy.spatial", settings=SCIPY)
test_calls = TABLE.test()
