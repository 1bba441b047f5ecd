"""Random programs in transformations, alone and in each other, against plain NumPy."""

from __future__ import annotations

import program_checks as checks
import pytest
from hypothesis import strategies as st

from multigrad_conformance.strategies import programs
from multigrad_conformance.target import Target
