"""The metadata for cargo-binstall: it leads to the archive, and to the program in it."""

import os
import shutil
import tarfile
import tomllib

from common import ROOT, bare, check, fail, run, step
from server import Handler, Serving


def test(packages, work, is_quick):
    step("the metadata for cargo-binstall")
    with open(ROOT / "crates/probity/Cargo.toml", "rb") as file:
        metadata = tomllib.load(file)["package"]["metadata"]["binstall"]

    def filled(text):
        values = {"repo": "REPO", "version": packages.version, "target": packages.target, "bin": "probity"}
        for name, value in values.items():
            text = text.replace("{ " + name + " }", value)
        check("{" not in text, f"every name is known: {text}")
        return text

    url = filled(metadata["pkg-url"])
    check(url == f"REPO/releases/download/v{packages.version}/{packages.archive.name}", f"it leads to the archive: {url}")
    with tarfile.open(packages.archive) as archive:
        member = archive.getmember(filled(metadata["bin-dir"]))
    check(member.isfile() and member.mode == 0o755, "the program is where it says")
    if shutil.which("cargo-binstall"):
        install(packages, work, metadata)
    elif is_quick:
        step("NOT TESTED: cargo-binstall itself, which is not installed here")
    else:
        fail("cargo-binstall is not installed: cargo install cargo-binstall")


def install(packages, work, metadata):
    step("cargo binstall, from a server of our own")
    data = packages.archive.read_bytes()

    class Releases(Handler):
        def do_GET(self):
            is_it = self.path == f"/releases/download/v{packages.version}/{packages.archive.name}"
            self.answer(200 if is_it else 404, data if is_it else b"", "application/gzip")

        do_HEAD = do_GET

    with Serving(Releases) as serving:
        home = work / "binstall-home"
        variables = bare(home, CARGO_HOME=str(home / "cargo"), PATH=os.environ["PATH"])
        words = ["cargo-binstall", "--no-confirm", "--disable-telemetry", "--strategies", "crate-meta-data", "--targets", packages.target,
                 "--manifest-path", ROOT / "crates/probity", "--pkg-url", metadata["pkg-url"].replace("{ repo }", serving.url()),
                 "--install-path", home / "bin", "probity"]
        run(words, env=variables, cwd=home)
        said = run([home / "bin/probity", "--version"], env=bare(home))
        check(said.startswith(f"probity {packages.version}"), f"the program runs: {said}")
