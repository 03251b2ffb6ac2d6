"""Tests the root file system of the container image without a container engine.

usage: container.py ROOT ID

The program runs in ROOT as user and group ID, in mount and PID namespaces of its own. As in a container with
`--read-only`, it can write in /var/lib/oaimend only, and it is process 1. Prints one line for each check. Exits 1 if a
check fails. It is skipped with a line if this user may not make namespaces.
"""

import os
import signal
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import provider
from servers import PROJECT, STOP_SECONDS_MAX, Process, free_port

MEGABYTES_MAX = 64
SECONDS_MAX = 20
SOURCE_NAME = "source.test"

# The mounts that an engine makes. The configuration and /etc/hosts are there already.
ENTER = """
set -eu
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount -t tmpfs -o "uid=$2,gid=$2,mode=700" tmpfs "$1/var/lib/oaimend"
mount -o remount,bind,ro "$1"
root=$1 id=$2
shift 2
exec chroot --userspec="$id:$id" --groups= "$root" /usr/bin/oaimend "$@"
"""

CONFIGURATION = """
listen = "127.0.0.1:{listen}"
public_url = "https://oai.example.org"
data = "/var/lib/oaimend/data"
[admin]
listen = "127.0.0.1:{admin}"
"""


class Failed(Exception):
    """A check that fails, with the reason."""


def expect(is_right, message):
    if not is_right:
        raise Failed(message)


def command(root, user, *arguments):
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "sh", str(root), str(user), *arguments]


def size_is_small(root):
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    expect(megabytes < MEGABYTES_MAX, f"{megabytes:.1f} MB, {MEGABYTES_MAX} are allowed")
    return f"{megabytes:.1f} MB in {len(files)} files"


def files_are_safe(root, user):
    paths = list(root.rglob("*"))
    data = root / "var/lib/oaimend"
    for path in paths:
        mode, owner = path.lstat().st_mode, path.lstat().st_uid
        expect(not mode & (stat.S_ISUID | stat.S_ISGID), f"{path} has a set-user-ID bit")
        expect(not mode & stat.S_IWOTH or path.is_symlink(), f"{path} is writable for everyone")
        expect(owner == (user if path == data else 0), f"{path} belongs to user {owner}")
    expect(not [path for path in paths if path.name in ("sh", "bash", "busybox")], "there is a shell")
    return f"{len(paths)} paths, no shell, only /var/lib/oaimend belongs to user {user}"


def containerfile_fits(user):
    """The image has the same user as this test."""
    text = (PROJECT / "packaging" / "Containerfile").read_text()
    expect(f"\nUSER {user}:{user}\n" in text and f"--chown={user}:{user} " in text, f"its user is not {user}")
    return f"user {user}"


def get(port, target):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{target}", timeout=SECONDS_MAX) as got:
            return got.status, got.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def health(port):
    answers = [get(port, f"/-/{name}") for name in ("livez", "readyz")]
    expect(all(status == 200 and text.strip() == "ok" for status, text in answers), f"{answers}")
    return "/-/livez and /-/readyz answer ok"


def serves_by_name(port):
    """The host of the source is a name, so this needs the name service of the C library."""
    status, page = get(port, "/list?verb=ListRecords&metadataPrefix=oai_dc")
    records = page.count("<record>")
    expect((status, records) == (200, provider.RECORDS_PER_PAGE), f"status {status}, {records} records: {page[-300:]}")
    return f"{records} records of http://{SOURCE_NAME}"


def metrics(port):
    _, text = get(port, "/-/metrics")
    expect("\noaimend_requests_total{" in text, "no metrics of requests")
    return f"{text.count('# TYPE')} metrics"


def process_of(parent):
    """The process in the namespaces: the child of `unshare`."""
    return int(Path(f"/proc/{parent}/task/{parent}/children").read_text().split()[0])


def user_is(pid, user):
    fields = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    found = {name: set(fields[name].split()) for name in ("Uid", "Gid", "Groups")}
    expect(found["Uid"] == found["Gid"] == {str(user)} and not found["Groups"] - {str(user)}, f"{found}")
    expect(fields["NSpid"].split()[-1] == "1", f"process {fields['NSpid']} in its namespace")
    expect(int(fields["CapEff"], 16) == 0, f"capabilities {fields['CapEff']}")
    return f"user {user}, no capabilities, process 1"


def stops(process, pid):
    start = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    try:
        code = process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"it still runs {STOP_SECONDS_MAX} s after SIGTERM") from error
    expect(code == 0, f"exit code {code}")
    return f"exit code 0 after {time.monotonic() - start:.1f} s"


class Report:
    def __init__(self):
        self.failed = 0

    def run(self, name, check, *arguments):
        try:
            print(f"ok     {name:14} {check(*arguments)}", flush=True)
        except (Failed, OSError) as error:
            print(f"FAILED {name:14} {error}", flush=True)
            self.failed += 1


def validates(root, user):
    ran = subprocess.run(
        command(root, user, "validate", "--config", "/etc/oaimend/oaimend.toml"), capture_output=True, text=True,
        timeout=SECONDS_MAX,
    )
    expect(ran.returncode == 0, ran.stdout + ran.stderr)
    return ran.stdout.strip().splitlines()[-1]


def main(root, user):
    can_enter = os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"]).returncode == 0
    if not can_enter:
        print("skipped: only root with namespaces can run the image without a container engine")
        return 0
    report = Report()
    report.run("size", size_is_small, root)
    report.run("files", files_are_safe, root, user)
    report.run("Containerfile", containerfile_fits, user)
    source, listen, admin = provider.start(), free_port(), free_port()
    (root / "etc/hosts").write_text(f"127.0.0.1 localhost {SOURCE_NAME}\n")
    (root / "etc/oaimend/oaimend.toml").write_text(CONFIGURATION.format(listen=listen, admin=admin))
    (root / "etc/oaimend/mappings").mkdir()
    (root / "etc/oaimend/mappings/list.toml").write_text(f'base_url = "http://{SOURCE_NAME}:{source.server_port}/list"\n')
    report.run("validate", validates, root, user)
    serve = command(root, user, "serve", "--config", "/etc/oaimend/oaimend.toml")
    with Process(serve, root.parent, listen) as started:
        pid = process_of(started.process.pid)
        report.run("user", user_is, pid, user)
        report.run("health", health, listen)
        report.run("serve", serves_by_name, listen)
        report.run("metrics", metrics, admin)
        report.run("stop", stops, started.process, pid)
    if report.failed:
        print(started.log.read_text(errors="replace")[-3000:])
    print(f"{report.failed} failed")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), int(sys.argv[2])))
