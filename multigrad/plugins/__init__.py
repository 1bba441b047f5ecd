"""Plugins: found, loaded one by one, kept apart; their backends, and whose an array is."""

API = 1
"""The version of the API for plugins, `multigrad.extend.API`.

It increases when something is added that a plugin may need.
"""
