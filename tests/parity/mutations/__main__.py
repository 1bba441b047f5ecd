"""`python -m parity.mutations`: write expected.json by PyTorch's outcomes.

What multigrad does differently on purpose (deviations.py) is written by running it on NumPy: look
at the difference before committing it.
"""

from __future__ import annotations

from . import corpus
from .sides import Multigrad, Torch


def main() -> None:
    """Write the outcomes of all programs, and show those that raise."""
    theirs, own = Torch(), Multigrad("numpy")
    outcomes = {
        n: corpus.run(own if corpus.differs(n) else theirs, f) for n, f in corpus.PROGRAMS.items()
    }
    corpus.save(outcomes)
    raising = {n: o["raises"] for n, o in outcomes.items() if o["raises"]}
    print(*(f"{n}: {r}" for n, r in raising.items()), sep="\n")
    print(f"{len(outcomes)} programs, {len(raising)} of which raise")


if __name__ == "__main__":
    main()
