"""The image: built from the Containerfile by buildah, without a network, and run."""

import shutil

from common import ROOT, TARGETS, check, fail, run, step


def test(packages, work):
    step("the image")
    if not shutil.which("buildah"):
        fail("there is no buildah: apt-get install buildah")
    # The folder that is copied from has to be where the Containerfile looks for it.
    context = work / "context"
    shutil.copytree(packages.folder / "image", context / "target/packages/image")
    shutil.copy(ROOT / "Containerfile", context)

    storage = ["--root", work / "containers", "--runroot", work / "containers-run", "--storage-driver", "vfs"]

    def buildah(*words, code=0):
        return run(["buildah", *storage, *words], code)

    architecture = TARGETS[packages.target]["image"]
    buildah("build", "--isolation", "chroot", "--build-arg", f"TARGETARCH={architecture}",
            "--tag", "probity:test", "--file", context / "Containerfile", context)
    container = buildah("from", "--pull-never", "probity:test").strip().splitlines()[-1]
    try:
        def probity(*words, code=0):
            return buildah("run", "--isolation", "chroot", container, "--", "/bin/probity", *words, code=code)

        check(f"probity {packages.version}" in probity("--version"), "the program runs in the image")
        probity("init")
        probity("run", "-o", "report.html")
        check("passed" in probity("show", "latest"), "the run is in the store")
        configured = buildah("inspect", "--format", "{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.WorkingDir}}", container)
        check("[/bin/probity] /work" in configured, f"the image starts the program: {configured}")
    finally:
        buildah("rm", "--all")
        buildah("rmi", "--all", "--force")
