#!/usr/bin/env python3
"""The wheel: installed into a fresh virtual environment with an empty home and no network, and used there.

  scripts/package_test/wheel.py WHEEL [quick]

With `quick` the wheel may be one of a debug build, whose speed says nothing.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import bare, check, run, step

# What docs/python.md promises.
LONGEST_INSTALL = 5.0
LONGEST_IMPORT = 0.05
IMPORT = "import time; a = time.process_time(); import probity; print(time.process_time() - a)"
USE = """
import probity
assert probity.check_json('{"a": 1}')["value"] == {"a": 1}, probity.check_json('{"a": 1}')
assert probity.command.safety("rm -rf /")["unsafe"], probity.command.safety("rm -rf /")
"""


def test(wheel, work, is_quick):
    step(f"the wheel {wheel.name}, in a fresh environment")
    venv = work / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    home = work / "wheel-home"
    variables = bare(home, PATH=f"{venv}/bin:/usr/bin:/bin")
    began = time.monotonic()
    run([venv / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", wheel], env=variables)
    took = time.monotonic() - began
    check(is_quick or took < LONGEST_INSTALL, f"it is installed in less than {LONGEST_INSTALL} s: {took:.1f} s")
    version = wheel.name.split("-")[1]
    said = run([venv / "bin/probity", "--version"], env=variables)
    check(said.startswith(f"probity {version}"), f"the command says its version: {said}")
    imports = min(float(run([venv / "bin/python", "-c", IMPORT], env=variables)) for _ in range(5))
    check(is_quick or imports < LONGEST_IMPORT, f"the module is imported in less than {LONGEST_IMPORT} s: {imports:.3f} s")
    run([venv / "bin/python", "-c", USE], env=variables)
    folder = work / "wheel-project"
    folder.mkdir()
    run([venv / "bin/probity", "init"], env=variables, cwd=folder)
    run([venv / "bin/probity", "run", "-q", "--informational"], env=variables, cwd=folder)
    pages = {it.name for it in (venv / "share/man/man1").iterdir()}
    check({"probity.1", "probity-run.1"} <= pages, f"the manual pages are there: {pages}")
    for place in ("bash-completion/completions/probity", "zsh/site-functions/_probity", "fish/vendor_completions.d/probity.fish"):
        check((venv / "share" / place).stat().st_size > 0, f"{place} is there")
    licences = {it.name for it in venv.glob("lib/python*/site-packages/probity_eval-*.dist-info/licenses/*")}
    check({"LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY.txt"} <= licences, f"licences are there: {licences}")
    step(f"installed in {took:.1f} s, imported in {imports * 1000:.0f} ms of processor time")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["quick"]):
        sys.exit("usage: scripts/package_test/wheel.py WHEEL [quick]")
    with tempfile.TemporaryDirectory(prefix="probity-wheel-") as folder:
        test(Path(sys.argv[1]).resolve(), Path(folder), sys.argv[2:] == ["quick"])
