"""The `probity` command of the package does what the program does."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import BINARY, COMMAND

needs_binary = pytest.mark.skipif(BINARY is None, reason="PROBITY_BINARY names no program to compare with")


def told(program: str | os.PathLike[str], *words: str, text: str = "") -> tuple[int, str, str]:
    done = subprocess.run([program, *words], input=text, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@needs_binary
@pytest.mark.parametrize(
    "words",
    [
        ["--version"],
        ["--help"],
        ["run", "--help"],
        ["nonsense"],
        ["run", "nowhere.toml"],
        ["run", "nowhere.toml", "--porcelain"],
        ["run", "--nonsense", "--porcelain"],
        ["run", "suite.toml", "--dry-run"],
        ["check", "json", '{"a": 1,}'],
        ["check", "refusal"],
        ["schema", "suite"],
        ["dataset", "validate", "cases.jsonl"],
        ["classify", "nowhere.jsonl"],
        ["completions", "bash"],
    ],
)
def test_it_says_what_the_program_says(suite: Path, words: list[str]) -> None:
    assert BINARY is not None
    assert told(COMMAND, *words, text="I won't.") == told(BINARY, *words, text="I won't.")


def test_a_run_ends_with_the_exit_code_of_its_gates(suite: Path) -> None:
    assert told(COMMAND, "run", "suite.toml")[0] == 0
    suite.write_text(suite.read_text().replace("gates = false", "gates = { pass_rate = 0.9 }"))
    code, out, _ = told(COMMAND, "run", "suite.toml", "--porcelain")
    assert code == 1
    assert "N_CASES=3" in out


def test_it_can_be_started_as_a_module(suite: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "probity", "--version"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("probity ")


@pytest.mark.parametrize(("signals", "code"), [([signal.SIGINT], 3), ([signal.SIGTERM], 3), ([signal.SIGINT] * 2, 130)])
def test_signals_are_the_program_s(suite: Path, signals: list[signal.Signals], code: int) -> None:
    """A backend that never answers tells that it was asked; then come the signals."""
    os.mkfifo("asked")
    Path("slow.py").write_text("import time\ndef call_api(*_):\n    open('asked', 'w').write('x')\n    time.sleep(600)\n")
    suite.write_text(suite.read_text().replace('kind = "echo"', 'kind = "python"\nfile = "slow.py"'))
    words = [COMMAND, "run", "suite.toml", "--porcelain"]
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        asked = os.open("asked", os.O_RDONLY | os.O_NONBLOCK)
        assert select.select([asked], [], [], 60)[0], "nothing was asked"
        for it in signals:
            run.send_signal(it)
        out, _ = run.communicate(timeout=60)
    finally:
        run.kill()
    # The second of two signals may find the run ended by the first.
    assert run.returncode in ({code, 3} if len(signals) == 2 else {code})
    assert "ABORTED=1" in out


def test_a_signal_before_a_run_ends_it_at_once() -> None:
    waiting = subprocess.Popen([COMMAND, "check", "refusal", "--jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert waiting.stdin is not None and waiting.stdout is not None
    waiting.stdin.write(b'{"id": 1, "text": "no"}\n')
    waiting.stdin.flush()
    assert waiting.stdout.readline().startswith(b'{"id":1')
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(timeout=30) == -signal.SIGINT


def test_a_reader_may_leave(suite: Path) -> None:
    done = subprocess.run(f"'{COMMAND}' schema suite | head -c 1", shell=True, capture_output=True, text=True)
    assert done.stdout == "{"
    assert done.stderr == ""


def test_the_sandbox_has_its_keeper() -> None:
    """Where there can be a sandbox, the package has one as well as the program."""
    code, out, err = told(COMMAND, "sandbox", "doctor")
    if BINARY is None:
        pytest.skip("PROBITY_BINARY names no program to compare with")
    assert (code, out, err) == told(BINARY, "sandbox", "doctor")


def test_watching_starts_the_package_again(suite: Path) -> None:
    watching = subprocess.Popen([COMMAND, "run", "suite.toml", "--watch"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert watching.stderr is not None
        said = ""
        for line in watching.stderr:
            said += line
            if "watching" in line:
                break
        assert "press Ctrl-C to end" in said, said
        watching.send_signal(signal.SIGINT)
        out, _ = watching.communicate(timeout=60)
    finally:
        watching.kill()
    assert "words" in out
