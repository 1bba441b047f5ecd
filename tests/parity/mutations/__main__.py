"""`python -m parity.mutations [--write] [--on torch] [programs]`: compare the outcomes with
expected.json, or write it by PyTorch's.

What multigrad does differently on purpose (deviations.py) is written by running it on NumPy: look
at the difference before committing it.
"""

from __future__ import annotations

import argparse
import sys

from . import corpus
from .sides import Library, Multigrad, Torch, Traced


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m parity.mutations", description=__doc__)
    parser.add_argument("programs", nargs="*", help="parts of their names; all, if none is given")
    parser.add_argument("--on", default="torch", help="torch, traced, or a backend")
    parser.add_argument(
        "--write", action="store_true", help="write what PyTorch gives as what is expected"
    )
    options = parser.parse_args()
    names = [
        n
        for n in corpus.PROGRAMS
        if not options.programs or any(part in n for part in options.programs)
    ]
    xp: Library = (
        Torch()
        if options.on == "torch" or options.write
        else Traced()
        if options.on == "traced"
        else Multigrad(options.on)
    )
    if options.write:
        return write(xp)
    expected = corpus.load()
    differences = {n: corpus.complaint(xp, n, expected[n]) for n in names}
    print(*(f"{n}: {d}\n" for n, d in differences.items() if d), sep="", end="")
    print(
        f"{len(names)} programs on {xp.name}, {sum(map(bool, differences.values()))} differ "
        "from what is expected"
    )
    return int(any(differences.values()))


def write(xp: Library) -> int:
    """Write the outcomes of all programs, and show those that raise."""
    own = Multigrad("numpy")
    outcomes = {
        n: corpus.run(own if corpus.differs(n) else xp, f) for n, f in corpus.PROGRAMS.items()
    }
    corpus.save(outcomes)
    raising = {n: o["raises"] for n, o in outcomes.items() if o["raises"]}
    print(*(f"{n}: {r}" for n, r in raising.items()), sep="\n")
    print(f"{len(outcomes)} programs, {len(raising)} of which raise")
    return 0


if __name__ == "__main__":
    sys.exit(main())
