"""Decorators that surround each call of a function, whether plain, generator or coroutine."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

Around = Callable[[], AbstractContextManager[Any]]


def each_call(function: Callable[..., Any], context: Around) -> Callable[..., Any]:
    """Run each call of `function` inside a context manager that `context` returns for that call.

    A coroutine runs inside it as a whole, a generator at each step.

    The context manager of a generator is entered again for each step. It is made last, so that
    nothing comes between its construction and the first step.
    """
    if not callable(function):
        raise TypeError(
            f"a mode decorates functions, not {type(function).__name__}: {function!r:.60}"
        )
    if inspect.isgeneratorfunction(function):
        return _each_step(function, context)
    if inspect.isasyncgenfunction(function):
        return _each_asynchronous_step(function, context)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            with context():
                return await function(*args, **kwargs)

        return coroutine

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with context():
            return function(*args, **kwargs)

    return wrapper


def _each_step(function: Callable[..., Any], context: Around) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        resume, value, around = generator.send, None, context()
        while True:
            try:
                with around:
                    item = resume(value)
            except StopIteration as stop:
                return stop.value
            try:
                value = yield item
                resume = generator.send
            except GeneratorExit:
                with around:
                    generator.close()
                raise
            except BaseException as error:
                resume, value = generator.throw, error

    return wrapper


def _each_asynchronous_step(function: Callable[..., Any], context: Around) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        resume, value, around = generator.asend, None, context()
        while True:
            try:
                with around:
                    item = await resume(value)
            except StopAsyncIteration:
                return
            try:
                value = yield item
                resume = generator.asend
            except GeneratorExit:
                with around:
                    await generator.aclose()
                raise
            except BaseException as error:
                resume, value = generator.athrow, error

    return wrapper
