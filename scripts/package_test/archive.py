"""The archive: extracted, it is installed. Its binary runs where there is nothing else."""

import os
import shutil
import tarfile

from common import bare, check, fail, run, step
from server import Model, Names, certificates

SUITE = """version = "1"
[backends.model]
kind = "openai"
base_url = "{url}/v1"
model = "small"
[[runners]]
name = "capitals"
dataset = "cases.jsonl"
gates = {{ pass_rate = {{ pass = 1.0 }} }}
"""
CASES = '{"id": "france", "prompt": "The capital of France?", "expected_response": "Paris", "match": "contains"}\n'


def extract(packages, prefix):
    """What `tar --strip-components 1` does, as the documentation says it."""
    prefix.mkdir(parents=True)
    run(["tar", "-xzf", packages.archive, "--strip-components", "1", "-C", prefix])


def test(packages, work):
    step("the archive, extracted into a prefix")
    prefix = work / "prefix"
    extract(packages, prefix)
    with tarfile.open(packages.archive) as archive:
        tops = {it.name.split("/")[0] for it in archive}
    check(tops == {packages.archive.name.removesuffix(".tar.gz")}, f"one folder holds everything: {tops}")
    variables = bare(work / "home", PATH=f"{prefix}/bin:/usr/bin:/bin")
    folder = work / "archive-project"
    folder.mkdir()
    use("probity", variables, folder, packages)

    for name in ("LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md", "THIRD-PARTY.txt"):
        check((prefix / "share/doc/probity" / name).stat().st_size > 0, f"{name} is there")
    notices = (prefix / "share/doc/probity/THIRD-PARTY.txt").read_text()
    for name in ("tokio", "rusqlite", "ring", "rquickjs-sys"):
        check(f"\n{name} " in notices, f"the licence of {name} is named")
    pages = {it.name for it in (prefix / "share/man/man1").iterdir()}
    check({"probity.1", "probity-run.1", "probity-dataset-validate.1"} <= pages, f"the manual pages are there: {pages}")
    for page in pages:
        text = (prefix / "share/man/man1" / page).read_text()
        check(f".TH {page.removesuffix('.1')} 1" in text, f"{page} is a manual page of its name")
    complete = (
        f"source {prefix}/share/bash-completion/completions/probity; COMP_WORDS=(probity cl); COMP_CWORD=1; "
        "_probity probity cl probity; echo ${COMPREPLY[*]}"
    )
    said = run(["bash", "--norc", "-c", complete], env=variables)
    check(said.split() == ["classify"], f"bash completes a command: {said}")


def use(program, variables, folder, packages):
    """Uses the program as the first page of the documentation does."""
    told = run([program, "--version"], env=variables, cwd=folder)
    check(told.startswith(f"probity {packages.version}"), f"the version is {packages.version}: {told}")
    run([program, "init"], env=variables, cwd=folder)
    run([program, "run", "-o", "report.html"], env=variables, cwd=folder)
    check("passed" in run([program, "show", "latest"], env=variables, cwd=folder), "the run is in the store")
    check((folder / "report.html").stat().st_size > 1000, "the report is written")


def test_on_empty_root(packages, work):
    """A root with the binary in it and nothing else: no libraries, no /etc, no /proc, no /dev."""
    step("the binary on an empty root")
    if os.geteuid() != 0:
        fail("only root can change the root")
    root = work / "root"
    extract(packages, work / "unpacked")
    (root / "work").mkdir(parents=True)
    (work / "unpacked/bin/probity").rename(root / "probity")
    size = (root / "probity").stat().st_size
    print(f"   {size} bytes")
    check(size < 25_000_000, "the binary is smaller than 25 MB")
    inside = Inside(root)
    check(inside.run("--version").startswith(f"probity {packages.version} ("), "it says its version and commit")
    inside.run("init")
    inside.run("run")
    inside.run("check", "json", "--text", '{"a": 1}')

    secrets = certificates(work / "certificates")
    with Model() as plain, Model(secrets) as secret:
        step("a call without certificates and without names")
        inside.ask(plain.url("127.0.0.1"))
        step("a call over TLS, to a name from /etc/hosts, with a certificate of its own")
        (root / "etc").mkdir()
        (root / "etc/hosts").write_text("127.0.0.1 model.test\n")
        (root / "authority.pem").write_bytes((secrets / "authority.pem").read_bytes())
        inside.ask(secret.url("model.test"), SSL_CERT_FILE="/authority.pem")
        step("the same with the certificate at the usual place of a system, and a name that a server knows")
        (root / "etc/ssl/certs").mkdir(parents=True)
        (root / "authority.pem").rename(root / "etc/ssl/certs/ca-certificates.crt")
        (root / "etc/hosts").unlink()
        with Names({"model.test": "127.0.0.1"}) as names:
            (root / "etc/resolv.conf").write_text(f"nameserver {names.address}\n")
            inside.ask(secret.url("model.test"))
            check(names.asked, "the server of names was asked")
        (root / "etc/ssl/certs/ca-certificates.crt").unlink()
        (root / "etc/hosts").write_text("127.0.0.1 model.test\n")
        step("a certificate that nobody vouches for is refused")
        refused = inside.ask(secret.url("model.test"), code=3)
        check("certificate" in refused, f"the reason is told: {refused}")


class Inside:
    """A root that programs are run in."""

    def __init__(self, root):
        self.root = root

    def run(self, *words, code=0, **variables):
        # The path of root, which `sudo` may have left out.
        chroot = shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin:/bin")
        command = [chroot, self.root, "/probity", *words]
        return run(command, code, env={"HOME": "/work", **variables}, cwd=self.root)

    def ask(self, url, code=0, **variables):
        (self.root / "suite.toml").write_text(SUITE.format(url=url))
        (self.root / "cases.jsonl").write_text(CASES)
        return self.run("run", "/suite.toml", "--store", "/work/asked.db", code=code, **variables)
