"""The packages for npm: fetched by `npx` from a registry of our own, into an empty home."""

import base64
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tarfile
import urllib.parse

import archive
from common import TARGETS, bare, check, fail, run, step
from server import Handler, Serving


def registry(packages):
    """As much of npm's registry as an installation asks for. What was not built is not there, as before a release is whole."""
    documents, files = {}, {}
    for name in packages.files:
        if not name.startswith("npm/"):
            continue
        data = (packages.folder / name).read_bytes()
        with tarfile.open(packages.folder / name) as content:
            manifest = json.load(content.extractfile("package/package.json"))
        files["/" + name] = data
        digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
        documents[manifest["name"]] = manifest | {"dist": {"integrity": f"sha512-{digest}", "tarball": "/" + name}}

    class Registry(Handler):
        def do_GET(self):
            path = urllib.parse.unquote(urllib.parse.urlparse(self.path).path)
            if path in files:
                return self.answer(200, files[path], "application/octet-stream")
            found = documents.get(path.removeprefix("/"))
            if found is None:
                return self.answer(404, b'{"error": "Not found"}')
            url = f"http://{self.headers['host']}{found['dist']['tarball']}"
            version = found | {"dist": found["dist"] | {"tarball": url}}
            document = {"name": found["name"], "dist-tags": {"latest": found["version"]}, "versions": {found["version"]: version}}
            return self.answer(200, json.dumps(document).encode())

    return Serving(Registry)


def test(packages, work):
    step("npx, from a registry, into an empty home")
    if not (shutil.which("npm") and shutil.which("node")):
        fail("there is no npm")
    system, processor = TARGETS[packages.target]["npm"]
    with registry(packages) as serving:
        settings = {"npm_config_registry": serving.url(), "npm_config_update_notifier": "false", "npm_config_fund": "false",
                    "npm_config_audit": "false", "npm_config_fetch_retries": "0"}
        tools = os.pathsep.join(dict.fromkeys(str(os.path.dirname(shutil.which(it))) for it in ("npm", "node", "sh")))
        variables = bare(work / "npm-home", PATH=f"{tools}:/usr/bin:/bin", **settings)
        folder = work / "npm-project"
        folder.mkdir()
        said = run(["npx", "--yes", "probity", "--version"], env=variables, cwd=folder)
        check(f"probity {packages.version}" in said, f"npx starts the program: {said}")

        step("npm install --global: command, manual pages, exit codes, signals")
        prefix = work / "npm-prefix"
        run(["npm", "install", "--global", "--prefix", prefix, "probity"], env=variables, cwd=folder)
        there = {it.name for it in (prefix / "lib/node_modules/probity/node_modules").iterdir() if not it.name.startswith(".")}
        check(there == {f"probity-{system}-{processor}"}, f"the binary of this platform alone is installed: {there}")
        check((prefix / "share/man/man1/probity-run.1").is_file(), "npm installs the manual pages")
        installed = prefix / "bin/probity"
        check((prefix / "lib/node_modules/probity/completions/_probity").is_file(), "completions are there")
        archive.use(installed, variables, folder, packages)
        wrong = run([installed, "run", "nothing.toml"], 2, env=variables, cwd=folder)
        check("nothing.toml" in wrong, f"the exit code is the program's: {wrong}")
        ends_with_its_program(installed, variables, folder)

        step("a platform without a package, and a package that was left out")
        shutil.rmtree(prefix / f"lib/node_modules/probity/node_modules/probity-{system}-{processor}")
        said = run([installed, "--version"], 2, env=variables, cwd=folder)
        check("is not installed" in said and "--omit=optional" in said, f"it says what to do: {said}")
        script = "Object.defineProperty(process, 'platform', {value: 'plan9'}); require(process.argv[1])"
        said = run(["node", "-e", script, (prefix / "lib/node_modules/probity/bin/probity.js")], 2, env=variables, cwd=folder)
        check("no package of Probity for plan9" in said and "linux-x64" in said, f"it says what there is: {said}")


def ends_with_its_program(installed, variables, folder):
    """A signal to what npm started reaches the program, which ends the run in its own way."""
    marker = folder / "asked"
    os.mkfifo(marker)
    (folder / "slow.toml").write_text(
        f"""version = "1"
[backends.slow]
kind = "command"
command = ["sh", "-c", "echo > '{marker}'; exec sleep 600"]
[[runners]]
name = "slow"
dataset = "slow.jsonl"
"""
    )
    (folder / "slow.jsonl").write_text('{"id": "a", "prompt": "x", "expected_response": "y"}\n')
    words = [installed, "run", "slow.toml"]
    started = subprocess.Popen(words, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, start_new_session=True)
    # It is written when the case is under way.
    marker.read_text()
    started.send_signal(signal.SIGTERM)
    said, _ = started.communicate(timeout=60)
    check(started.returncode == 3, f"a run that was ended exits with 3, not {started.returncode}: {said}")
    check("--resume" in said, f"the program had the time to say how to go on: {said}")
