"""Installs, uses and removes the Debian package in an overlay of this system.

usage: debian_package.py PACKAGE

All changes go into memory and vanish with the mount namespace of this program: the system stays unchanged. Prints one line
for each check. Exits 1 if a check fails. It is skipped with a line if this user may not mount an overlay.
"""

import grp
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from servers import STOP_SECONDS_MAX, Process, free_port, program

COMMAND_SECONDS_MAX = 60
SECONDS_MAX = 20
PACKAGE = "/root/oaimend.deb"
PROGRAM = "/usr/bin/oaimend"
CONFIGURATION = Path("/etc/oaimend/oaimend.toml")
MAPPING = Path("/etc/oaimend/mappings/x.toml")
UNIT = "/usr/lib/systemd/system/oaimend.service"
DATA = Path("/var/lib/oaimend")
DOC = "/usr/share/doc/oaimend"
# The expected mode of each file and folder, which all belong to root.
FILES = {
    PROGRAM: 0o755,
    CONFIGURATION: 0o644,
    MAPPING.parent: 0o755,
    UNIT: 0o644,
    "/usr/lib/sysusers.d/oaimend.conf": 0o644,
    "/usr/lib/tmpfiles.d/oaimend.conf": 0o644,
    "/usr/share/bash-completion/completions/oaimend": 0o644,
    "/usr/share/oaimend/mapping.schema.json": 0o644,
    "/usr/share/oaimend/oaimend.schema.json": 0o644,
    "/usr/share/oaimend/view.schema.json": 0o644,
    "/usr/share/fish/vendor_completions.d/oaimend.fish": 0o644,
    "/usr/share/zsh/vendor-completions/_oaimend": 0o644,
    f"{DOC}/copyright": 0o644,
    f"{DOC}/changelog.Debian.gz": 0o644,
    f"{DOC}/examples/mappings/zenodo.toml": 0o644,
    f"{DOC}/examples/monitoring/alerts.yml": 0o644,
    f"{DOC}/examples/reverse-proxy/nginx.conf": 0o644,
    f"{DOC}/examples/views/maps.toml": 0o644,
}
LOCAL_CHANGE = '\nadmin_email = "oai@example.org"\n'


class Failed(Exception):
    """A check that fails, with the reason."""


def expect(is_right, message):
    if not is_right:
        raise Failed(message)


def run(*command, **options):
    """Runs a command and returns its output. Fails if the command fails."""
    ran = subprocess.run(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
        timeout=COMMAND_SECONDS_MAX, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, **options,
    )
    expect(ran.returncode == 0, f"{' '.join(map(str, command))}: exit code {ran.returncode}\n{ran.stdout}")
    return ran.stdout.strip()


def installs():
    run("dpkg", "-i", PACKAGE)
    return run("dpkg-query", "-W", "-f", "${Package} ${Version} ${Status}", "oaimend")


def files_have_their_modes():
    for path, mode in FILES.items():
        found = os.stat(path)
        expect(stat.S_IMODE(found.st_mode) == mode and found.st_uid == 0, f"{path}: {found}")
    conffiles = run("dpkg-query", "-W", "-f", "${Conffiles}", "oaimend").split()[::2]
    expect(conffiles == [str(CONFIGURATION)], f"configuration files: {conffiles}")
    return f"{len(FILES)} files and folders"


def user_and_folder_exist():
    user = pwd.getpwnam("oaimend")
    expect(user.pw_uid < 1000 and user.pw_shell.endswith("nologin") and user.pw_dir == str(DATA), f"{user}")
    expect(grp.getgrgid(user.pw_gid).gr_name == "oaimend", f"group {user.pw_gid}")
    found = DATA.stat()
    expect((stat.S_IMODE(found.st_mode), found.st_uid) == (0o700, user.pw_uid), f"{DATA}: {found}")
    return f"user {user.pw_uid}, {DATA} with mode 0700"


def configuration_is_valid():
    MAPPING.write_text('base_url = "http://repository.example/oai"\n')
    said = run("runuser", "-u", "oaimend", "--", PROGRAM, "validate", "--config", CONFIGURATION)
    expect("1 repository" in said, said)
    return said


def completions_load():
    script = f". {[path for path in FILES if 'bash-completion' in str(path)][0]} && complete -p oaimend"
    return run("bash", "-c", script)


def unit_is_valid():
    if program("systemd-analyze") is None:
        return "not checked: systemd-analyze is missing"
    said = run("systemd-analyze", "verify", UNIT)
    # It also reports faults of other units of this system.
    expect("oaimend" not in said, said)
    enabled = list(Path("/etc/systemd/system").rglob("oaimend.service"))
    expect(not enabled, f"the operator has not enabled it, but there is {enabled}")
    return "systemd-analyze verify"


def serves():
    port = free_port()
    command = [PROGRAM, "serve", "--config", str(CONFIGURATION), "--listen", f"127.0.0.1:{port}", "--admin", "off"]
    with Process(command, Path("/root"), port, user="oaimend", group="oaimend", extra_groups=[]) as started:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/readyz", timeout=SECONDS_MAX) as got:
            expect(got.status == 200, f"status {got.status}")
        started.process.terminate()
        code = started.process.wait(STOP_SECONDS_MAX)
    expect(code == 0, f"exit code {code} after SIGTERM")
    owner = (DATA / "data").stat().st_uid
    expect(owner == pwd.getpwnam("oaimend").pw_uid, f"{DATA}/data belongs to user {owner}")
    return f"ready, stops by SIGTERM, data in {DATA}/data"


def upgrade_keeps_changes():
    text = CONFIGURATION.read_text() + LOCAL_CHANGE
    CONFIGURATION.write_text(text)
    run("dpkg", "-i", PACKAGE)
    expect(CONFIGURATION.read_text() == text, f"{CONFIGURATION} was replaced")
    return f"{CONFIGURATION} is unchanged"


def removal_keeps_configuration_and_data():
    run("dpkg", "--remove", "oaimend")
    kept = [path for path in (CONFIGURATION, MAPPING, DATA / "data") if path.exists()]
    expect(len(kept) == 3 and not Path(PROGRAM).exists() and not Path(UNIT).exists(), f"only {kept} are there")
    return "the program is gone, configuration and data stay"


def purge_keeps_mappings_only():
    run("dpkg", "--purge", "oaimend")
    expect(not CONFIGURATION.exists() and not DATA.exists(), "configuration or data are still there")
    expect(MAPPING.exists(), "the mapping of the operator is gone")
    return f"{MAPPING} stays, data are gone"


INSIDE = {
    "install": installs,
    "files": files_have_their_modes,
    "user": user_and_folder_exist,
    "configuration": configuration_is_valid,
    "completions": completions_load,
    "unit": unit_is_valid,
    "serve": serves,
    "upgrade": upgrade_keeps_changes,
    "remove": removal_keeps_configuration_and_data,
    "purge": purge_keeps_mappings_only,
}


def lintian(package):
    if program("lintian") is None:
        return "not checked: lintian is missing"
    said = run("lintian", "--allow-root", "--fail-on", "error", package)
    tags = [line for line in said.splitlines() if line[:3] in ("E: ", "W: ")]
    return ", ".join(["no errors", *tags])


def report(checks):
    """Runs the checks in order and returns the number of failed ones."""
    failed = 0
    for name, check in checks.items():
        start = time.monotonic()
        try:
            print(f"ok     {name:14} {check()}, {time.monotonic() - start:.1f} s", flush=True)
        except (Failed, OSError, KeyError, subprocess.TimeoutExpired) as error:
            print(f"FAILED {name:14} {error}", flush=True)
            failed += 1
    return failed


def enter_overlay(package, folder):
    """Makes this process see a copy of the system that it can change. It has a mount namespace of its own."""
    run("mount", "-t", "tmpfs", "tmpfs", folder)
    upper, work, root = (folder / name for name in ("upper", "work", "root"))
    for path in (upper, work, root):
        path.mkdir()
    run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={upper},workdir={work}", root)
    for path in ("proc", "dev"):
        run("mount", "--rbind", f"/{path}", root / path)
    shutil.copy(package, root / PACKAGE.lstrip("/"))
    os.chroot(root)
    os.chdir("/")
    policy = Path("/usr/sbin/policy-rc.d")
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)


def inside(package, folder):
    enter_overlay(package, folder)
    if shutil.which("oaimend") or Path(UNIT).exists():
        print("skipped: oaimend is installed on this system")
        return 0
    failed = report(INSIDE)
    print(f"{failed} failed")
    return 1 if failed else 0


def main(package):
    failed = report({"lintian": lambda: lintian(package)})
    with tempfile.TemporaryDirectory() as folder:
        probe = f"mount -t tmpfs tmpfs {folder} && cd {folder} && mkdir u w r && mount -t overlay o -o lowerdir=/,upperdir=u,workdir=w r"
        new = ["unshare", "--mount", "--pid", "--fork", "--mount-proc"]
        if subprocess.run([*new, "sh", "-c", probe], capture_output=True).returncode != 0:
            print("skipped: only root can install the package in an overlay of this system")
            return 1 if failed else 0
        ran = subprocess.run([*new, sys.executable, __file__, "--inside", package, folder])
    return 1 if failed or ran.returncode else 0


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        sys.exit(inside(sys.argv[2], Path(sys.argv[3])))
    sys.exit(main(str(Path(sys.argv[1]).resolve())))
