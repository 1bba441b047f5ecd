"""What a random program means, without any write: a small interpreter that keeps each memory as one
flat array and replaces it.

A view is a list of positions: it is read by `take`, written by choosing, for each element, the old
or a new value. An alias made by detach() has a history of its own, so each memory has one array for
each: equal values, different graphs. What is written without being recorded is added as a constant,
for the gradient does not know of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .generator import CONSTANTS, LEAVES, Draft, Place, Step, selected, view
from .sides import Multigrad


class Model:
    def __init__(self, xp: Multigrad, data: dict[str, Any]) -> None:
        self.xp = xp
        self.draft = Draft()
        self.flat: dict[int, dict[int, Any]] = {}
        """By memory and alias: the elements, with the history that this alias has."""
        for name in LEAVES + CONSTANTS:
            self.add(self.draft.new(data[name].shape), data[name])

    def add(self, place: Place, value: Any) -> None:
        self.draft.places.append(place)
        self.flat[place.memory] = {place.alias: self.xp.reshape(value, (-1,))}

    def run(self, steps: list[Step]) -> list[Any]:
        """The arrays in the end."""
        for step in steps:
            with (self.xp.enable_grad if step.recorded else self.xp.no_grad)():
                self.carry_out(step)
        return [self.read(p) for p in self.draft.places]

    def read(self, place: Place, positions: Any = None) -> Any:
        positions = place.positions if positions is None else positions
        flat = self.flat[place.memory][place.alias]
        return self.xp.reshape(
            self.xp.take(flat, self.xp.array(positions.ravel())), positions.shape
        )

    def write(self, place: Place, positions: Any, value: Any, recorded: bool) -> None:
        aliases = self.flat[place.memory]
        old = aliases[place.alias]
        values = self.xp.reshape(self.xp.broadcast_to(value, positions.shape), (-1,))
        source = np.arange(old.shape[0])
        source[positions.ravel()] = old.shape[0] + np.arange(positions.size)
        new = self.xp.take(self.xp.concat([old, values]), self.xp.array(source))
        with self.xp.enable_grad():
            for alias, flat in aliases.items():
                own = alias == place.alias and recorded
                aliases[alias] = new if own else flat + (new.detach() - flat.detach())

    def carry_out(self, step: Step) -> None:
        xp, place = self.xp, self.draft.places[step.i]
        made = self.draft.after(step)
        operand = step.value if step.j is None else self.read(self.draft.places[step.j])
        if step.kind == "view":
            assert made is not None
            if made.memory == place.memory:
                self.draft.places.append(made)
            else:
                self.add(made, view(xp, step.how, self.read(place)))
        elif step.kind == "detach":
            assert made is not None
            self.draft.places.append(made)
            aliases = self.flat[place.memory]
            aliases[made.alias] = aliases[place.alias].detach()
        elif made is not None:
            old = self.read(place)
            value = (
                getattr(xp, step.how)(old)
                if step.kind == "unary"
                else selected(xp.array, step.how, old)
                if step.kind == "copy"
                else getattr(xp, step.how)(old, operand)
            )
            self.add(made, value)
        else:
            self.write(place, *self.written(step, place, operand), step.recorded)

    def written(self, step: Step, place: Place, operand: Any) -> tuple[Any, Any]:
        """The positions that a step writes, and what."""
        xp, positions = self.xp, place.positions
        if step.kind == "augmented":
            return positions, getattr(xp, step.how)(self.read(place), operand)
        if step.kind == "twin":
            return positions, getattr(xp, step.how)(self.read(place))
        if step.kind == "zero":
            return positions, xp.array(np.zeros(()))
        if step.how == "greater":
            old = self.read(place)
            return positions, xp.where(old > 0.75, step.value, old)
        if step.kind == "set":
            positions = selected(np.asarray, step.how, positions)
        return positions, xp.array(np.asarray(operand)) if step.j is None else operand
