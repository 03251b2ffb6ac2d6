"""Uses the archives of a release.

usage: release.py FOLDER

Compares the checksums, unpacks the program, installs the wheel in a new environment, and repairs a page with both. Prints
one line for each check. Exits 1 if a check fails.
"""

import json
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "corpus/demo/records-1.xml"
COMMAND_SECONDS_MAX = 120


class Failed(Exception):
    """A check that fails, with the reason."""


def expect(is_right, message):
    if not is_right:
        raise Failed(message)


def run(*command, cwd=None, codes=(0,)):
    """Runs a command and returns its output. Fails if it exits with another code."""
    ran = subprocess.run(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        timeout=COMMAND_SECONDS_MAX, cwd=cwd, check=False,
    )
    output = ran.stdout.decode(errors="replace")
    expect(ran.returncode in codes, f"{' '.join(map(str, command))}: exit code {ran.returncode}\n{output}")
    return output


def only(folder, pattern):
    """The one archive whose name has this form."""
    found = sorted(folder.glob(pattern))
    expect(len(found) == 1, f"{pattern}: {found}")
    return found[0]


def checksums(folder):
    lines = run("sha256sum", "--check", "SHA256SUMS", cwd=folder, codes=(0, 1)).splitlines()
    archives = [path for path in folder.iterdir() if path.name != "SHA256SUMS"]
    expect(len(lines) == len(archives) == 6 and all(line.endswith(": OK") for line in lines), "\n".join(lines))
    return f"{len(lines)} archives"


def repairs(*command):
    """Whether the program repairs a page."""
    # The page has records beyond repair.
    repaired = run(*command, "repair", PAGE, codes=(0, 1))
    expect("<ListRecords>" in repaired and "</OAI-PMH>" in repaired, repaired[:500])


def program(folder):
    """The archive of the program has what a package has, and no owner of the machine that packed it."""
    with tempfile.TemporaryDirectory() as temporary, tarfile.open(only(folder, "oaimend-*-linux-gnu.tar.gz")) as archive:
        members = archive.getmembers()
        expect(all((member.uid, member.gid) == (0, 0) for member in members), "an owner")
        expect(len({member.mtime for member in members}) == 1, "several times")
        archive.extractall(temporary, filter="data")
        unpacked = only(Path(temporary), "oaimend-*")
        for name in ["README.md", "LICENSE-MIT", "third-party-licences.txt", "man/oaimend.1.gz", "oaimend.bash"]:
            expect((unpacked / name).is_file(), f"{name} is missing")
        repairs(unpacked / "oaimend")
        return run(unpacked / "oaimend", "--version").strip()


def image(folder):
    """The program of the image is there, and its user can write into its data folder only."""
    with tarfile.open(only(folder, "oaimend-*-image-root.tar.gz")) as archive:
        data = archive.getmember("image/var/lib/oaimend")
        expect(data.mode == 0o700, oct(data.mode))
        return f"{archive.getmember('image/usr/bin/oaimend').size >> 20} MiB"


def wheel(folder):
    """pip installs the wheel without the network, and both names of the program work."""
    with tempfile.TemporaryDirectory() as temporary:
        venv.create(temporary, with_pip=True)
        python = Path(temporary) / "bin/python"
        archive = only(folder, "oaimend_server-*.whl")
        run(python, "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", archive)
        repairs(Path(temporary) / "bin/oaimend")
        repairs(python, "-m", "oaimend_server")
        return archive.name


def sbom(folder):
    """The SBOM names all crates of the program, and no path of this machine."""
    text = only(folder, "oaimend-*.cdx.json").read_text()
    expect(str(ROOT) not in text, "a path of this machine")
    names = {component["name"] for component in json.loads(text)["components"]}
    expect({"pingora-core", "quick-xml", "redb", "oaimend-repair"} <= names, f"{sorted(names)}")
    return f"{len(names)} crates"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    failed = 0
    for check in [checksums, program, image, wheel, sbom]:
        try:
            print(f"ok      {check.__name__}: {check(folder)}")
        except Failed as problem:
            failed += 1
            print(f"FAILED  {check.__name__}: {problem}")
    sys.exit(failed > 0)


main()
