"""Programs that write into arrays, and what PyTorch makes of each: values, gradients, versions,
refusals.

A program is a function `f(xp, ...)`. Its other parameters name its arrays (see corpus.ARRAYS); `xp`
has the functions of the standard and what sides.Library adds. It returns Tensors to look at, and
lists of plain facts or of Tensors that hooks have seen.

expected.json holds the outcomes. `cd tests && python -m parity.mutations` makes it by
running PyTorch.
"""
