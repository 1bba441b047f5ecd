"""How an operation runs: generated code for the usual operands, the general path, pullbacks."""
