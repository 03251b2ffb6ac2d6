"""Runs the program: `python -m oaimend_server ARGUMENTS` is `oaimend ARGUMENTS`."""

import os
import sys

from oaimend_server import find_oaimend

program = str(find_oaimend())
os.execv(program, [program, *sys.argv[1:]])
