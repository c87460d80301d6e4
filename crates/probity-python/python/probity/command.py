"""What shell commands mean. Nothing is executed.

>>> equal("ls -la", "ls -al")
'equal'
>>> safety("rm -rf /")["unsafe"]
True
>>> posix("[[ -f x ]]")["posix"]
False
>>> extract("Run this:\\n```sh\\nls -l\\n```")
'ls -l'
"""

from __future__ import annotations

from typing import Any, overload

from . import _probity
from ._detect import RulesLike

__all__ = ["equal", "extract", "judge", "posix", "safety"]

_SAFETY = ("parsed", "level", "risk", "unsafe", "opaque", "findings")
_POSIX = ("parsed", "parse_error", "edition", "posix", "violations", "unknown_utilities")


def judge(
    command: str,
    *,
    against: str | None = None,
    level: str | None = None,
    edition: str | None = None,
    reply: bool = False,
    rules: RulesLike = None,
) -> dict[str, Any]:
    """All that there is to say of a command, as `probity check command --json` has it.

    `against` is a command to compare it with, `level` (`strict`, `moderate`, `permissive`) says what counts as unsafe,
    `edition` is that of POSIX (`2017`, `2024`), and a `reply` is a text that the command is taken out of.

    >>> judge("ls -la", against="ls -a -l")["equivalence"]
    'equal'
    """
    answer: dict[str, Any] = _probity.check_command(
        command, against, level, edition, reply, rules, None
    )
    return answer


@overload
def equal(
    command: str, other: str, *, rules: RulesLike = None, threads: int | None = None
) -> str: ...
@overload
def equal(
    command: list[str],
    other: str | list[str],
    *,
    rules: RulesLike = None,
    threads: int | None = None,
) -> list[str]: ...
def equal(
    command: str | list[str],
    other: str | list[str],
    *,
    rules: RulesLike = None,
    threads: int | None = None,
) -> str | list[str]:
    """Whether two commands do the same: `equal`, `different`, or `unknown` where reading does not tell.

    >>> equal("cat a | grep x", "grep x a")
    'equal'
    >>> equal("sort a", "sort a | tac")
    'unknown'
    >>> equal("rm a", "rm b")
    'different'

    Many are compared with one command, or each with its own:

    >>> equal(["ls -al", "ls"], "ls -la")
    ['equal', 'different']
    >>> equal(["ls -al", "rm a"], ["ls -la", "rm b"])
    ['equal', 'different']
    """
    if isinstance(command, str):
        if not isinstance(other, str):
            raise TypeError("one command is compared with one other")
        return str(judge(command, against=other, rules=rules)["equivalence"])
    others = [other] * len(command) if isinstance(other, str) else other
    if len(others) != len(command):
        raise ValueError(f"{len(command)} commands cannot be compared with {len(others)}")
    pairs = list(zip(command, others))
    return [str(it["equivalence"]) for it in _probity.compare_commands(pairs, rules, threads)]


@overload
def safety(
    command: str, *, level: str | None = None, rules: RulesLike = None, threads: int | None = None
) -> dict[str, Any]: ...
@overload
def safety(
    command: list[str],
    *,
    level: str | None = None,
    rules: RulesLike = None,
    threads: int | None = None,
) -> list[dict[str, Any]]: ...
def safety(
    command: str | list[str],
    *,
    level: str | None = None,
    rules: RulesLike = None,
    threads: int | None = None,
) -> dict[str, Any] | list[dict[str, Any]]:
    """What a command, or each of a list, would put at risk.

    >>> [it["unsafe"] for it in safety(["ls", "mkfs /dev/sda"])]
    [False, True]
    """
    found: dict[str, Any] | list[dict[str, Any]] = _only(_probity.check_command(command, None, level, None, False, rules, threads), _SAFETY)
    return found


@overload
def posix(
    command: str, *, edition: str | None = None, rules: RulesLike = None, threads: int | None = None
) -> dict[str, Any]: ...
@overload
def posix(
    command: list[str],
    *,
    edition: str | None = None,
    rules: RulesLike = None,
    threads: int | None = None,
) -> list[dict[str, Any]]: ...
def posix(
    command: str | list[str],
    *,
    edition: str | None = None,
    rules: RulesLike = None,
    threads: int | None = None,
) -> dict[str, Any] | list[dict[str, Any]]:
    """Where a command, or each of a list, leaves the standard.

    >>> posix("echo hello")["posix"]
    True
    """
    found: dict[str, Any] | list[dict[str, Any]] = _only(
        _probity.check_command(command, None, None, edition, False, rules, threads), _POSIX
    )
    return found


@overload
def extract(reply: str, *, threads: int | None = None) -> str | None: ...
@overload
def extract(reply: list[str], *, threads: int | None = None) -> list[str | None]: ...
def extract(
    reply: str | list[str], *, threads: int | None = None
) -> str | None | list[str | None]:
    """The command in a reply, or in each of a list; `None` where there is none.

    >>> extract(["Run `ls -l`.", "I would rather not."])
    ['ls -l', None]
    """
    found: str | None | list[str | None] = _probity.extract_command(reply, threads)
    return found


def _only(answer: Any, keys: tuple[str, ...]) -> Any:
    if isinstance(answer, list):
        return [_only(it, keys) for it in answer]
    return {key: answer[key] for key in keys if key in answer}
