"""What all tests of packages need."""

import hashlib
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True


def load_packager():
    loader = importlib.machinery.SourceFileLoader("package", str(ROOT / "scripts/package"))
    spec = importlib.util.spec_from_loader("package", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


PACKAGER = load_packager()
own_target = PACKAGER.own_target
TARGETS = PACKAGER.TARGETS


class Packages:
    """A folder that scripts/package has made, with its checksums verified."""

    def __init__(self, folder):
        step(f"checksums in {folder}")
        sums = folder / "SHA256SUMS"
        if not sums.is_file():
            fail(f"there are no packages in {folder}; make them with scripts/package")
        self.folder = folder
        self.files = []
        for line in sums.read_text().splitlines():
            digest, name = line.split("  ")
            check(hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, f"the checksum of {name}")
            self.files.append(name)
        main = [it for it in self.files if it.startswith("npm/probity-") and it[len("npm/probity-")].isdigit()]
        check(len(main) == 1, "there is one main package for npm")
        self.version = main[0].removeprefix("npm/probity-").removesuffix(".tgz")
        self.target = own_target()
        self.archive = folder / f"probity-{self.version}-{self.target}.tar.gz"
        check(self.archive.is_file(), f"there is an archive for {self.target}")


def step(text):
    print(f"-- {text}", flush=True)


def fail(reason):
    sys.exit(f"package-test: {reason}")


def check(claim, words):
    if not claim:
        fail(f"not so: {words}")


def bare(home, **more):
    """The variables of somebody who has just got the machine."""
    home.mkdir(parents=True, exist_ok=True)
    return {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", **more}


def run(words, code=0, **more):
    """Runs a program, and returns what it says. It has to end with the code."""
    words = [os.fspath(it) for it in words]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL, **more)
    if done.returncode != code:
        fail(f"{' '.join(words)} ended with {done.returncode} instead of {code}\n{done.stdout}\n{done.stderr}")
    return done.stdout + done.stderr
