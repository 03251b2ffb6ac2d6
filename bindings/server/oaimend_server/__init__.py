"""The program oaimend in a Python package: `pip install oaimend-server` installs the command `oaimend`."""

import sys
import sysconfig
from pathlib import Path

__all__ = ["find_oaimend"]


def find_oaimend() -> Path:
    """Returns the path of the installed program.

    Looks in the folder of scripts of this environment, of the user, and of a `pip install --target`. Raises
    FileNotFoundError if the package was installed without its program.
    """
    name = "oaimend.exe" if sys.platform == "win32" else "oaimend"
    user_scheme = sysconfig.get_preferred_scheme("user") if sys.version_info >= (3, 10) else "posix_user"
    folders = [
        Path(sysconfig.get_path("scripts")),
        Path(sysconfig.get_path("scripts", scheme=user_scheme)),
        Path(__file__).resolve().parent.parent / "bin",
    ]
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    searched = ", ".join(map(str, folders))
    raise FileNotFoundError(f"the program {name} is in none of {searched}; install oaimend-server again")
