"""Functions of users, as a run calls them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from types import CellType, CodeType
from typing import Any


def wrapped(function: Callable[..., Any], most: int) -> Callable[..., Any]:
    """The function, called with as many arguments as it takes, and waited for if it is `async`."""
    if not callable(function):
        raise TypeError(f"a backend or scorer is a function, not a value of type `{type(function).__name__}`")
    count = _count(function, most)

    def call(*arguments: Any) -> Any:
        returned = function(*arguments[:count])
        return _awaited(returned) if inspect.isawaitable(returned) else returned

    return call


def identity(function: Callable[..., Any]) -> str:
    """What tells a function from others, so that cached answers of one are not taken for those of another: its name, its
    code, and the values that it was made with. Globals that it reads are not seen."""
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    inner = getattr(function, "__func__", function)
    code = getattr(inner, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    cells = [it.cell_contents for it in getattr(inner, "__closure__", None) or () if it != _EMPTY]
    values = [getattr(inner, "__defaults__", None), getattr(function, "__self__", None), cells]
    if code is None or inner is function and not inspect.isfunction(function):
        values.append(function)
    return "\n".join((name, repr(_parts(code)), repr(values)))


_EMPTY = CellType()


def _parts(code: CodeType | None) -> Any:
    """The code without where it stands."""
    if code is None:
        return None
    constants = [_parts(it) if isinstance(it, CodeType) else it for it in code.co_consts]
    return code.co_code, code.co_names, constants


def _count(function: Callable[..., Any], most: int) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return 1
    if any(it.kind is it.VAR_POSITIONAL for it in parameters):
        return most
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return min(most, sum(it.kind in plain for it in parameters))


def _awaited(returned: Awaitable[Any]) -> Any:
    import asyncio

    async def wait() -> Any:
        return await returned

    return asyncio.run(wait())
