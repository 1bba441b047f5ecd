"""Samples of what is made of elementary functions."""

from __future__ import annotations
