"""Makes the wheel oaimend-server, which carries the program.

usage: make_wheel.py PROGRAM LICENCES FOLDER

PROGRAM is the stripped program, LICENCES the file with the licences of its crates. Writes the wheel into FOLDER and prints
its path. Two runs give the same bytes for the same SOURCE_DATE_EPOCH. Needs the package `wheel` and objdump (binutils).
"""

import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from wheel.wheelfile import WheelFile

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
METADATA = """\
Metadata-Version: 2.4
Name: oaimend-server
Version: {version}
Summary: A transparent repair proxy, cache, mirror and gateway for OAI-PMH
License-Expression: Apache-2.0 OR MIT
License-File: LICENSE-APACHE
License-File: LICENSE-MIT
License-File: third-party-licences.txt
Keywords: oai-pmh,metadata,harvesting,proxy
Requires-Python: >=3.9
Description-Content-Type: text/markdown

{readme}"""
WHEEL = """\
Wheel-Version: 1.0
Generator: oaimend
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""


def platform_tag(program):
    """The tag of the oldest system on which the program runs: by the newest symbol of glibc that it needs (PEP 600)."""
    if sys.platform != "linux":
        return re.sub(r"[-.]", "_", sysconfig.get_platform())
    symbols = subprocess.run(["objdump", "-T", program], check=True, capture_output=True, text=True).stdout
    versions = [tuple(map(int, version)) for version in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols)]
    major, minor = max(versions, default=(2, 17))
    return f"manylinux_{major}_{minor}_{platform.machine()}"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    program, licences, folder = map(Path, sys.argv[1:])
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    tag = platform_tag(program)
    with tempfile.TemporaryDirectory() as temporary:
        tree = Path(temporary)
        shutil.copytree(HERE / "oaimend_server", tree / "oaimend_server", ignore=shutil.ignore_patterns("__pycache__"))
        about = tree / f"oaimend_server-{version}.dist-info"
        (about / "licenses").mkdir(parents=True)
        for licence in [ROOT / "LICENSE-APACHE", ROOT / "LICENSE-MIT", licences]:
            shutil.copy(licence, about / "licenses" / licence.name)
        (about / "METADATA").write_text(METADATA.format(version=version, readme=(HERE / "README.md").read_text()))
        (about / "WHEEL").write_text(WHEEL.format(platform=tag))
        scripts = tree / f"oaimend_server-{version}.data" / "scripts"
        scripts.mkdir(parents=True)
        shutil.copy(program, scripts / "oaimend")
        (scripts / "oaimend").chmod(0o755)
        path = folder / f"oaimend_server-{version}-py3-none-{tag}.whl"
        with WheelFile(path, "w") as wheel:
            wheel.write_files(tree)
    print(path)


main()
