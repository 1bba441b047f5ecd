"""Samples of exponential and elliptic integrals and their kin."""

from __future__ import annotations
