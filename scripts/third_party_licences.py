#!/usr/bin/env python3
"""Writes the licences of all crates in the program, for packages that contain the binary.

    scripts/third_party_licences.py FILE

The file has one section for each text: the crates that it applies to, their licences, and the text.
A crate without a licence file is listed with its licence and its authors. Needs cargo.
"""

import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The beginnings of names of licence files.
NAMES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")
RULE = "=" * 80


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def crates():
    """The crates that the binary is built from, as name and version."""
    tree = cargo("tree", "--package", "oaimend", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}")
    lines = (line.split() for line in tree.splitlines() if line.strip())
    foreign = (words for words in lines if words[0] != "oaimend" and not words[0].startswith("oaimend-"))
    return {(words[0], words[1].removeprefix("v")) for words in foreign}


def licence_files(package):
    folder = pathlib.Path(package["manifest_path"]).parent
    files = [file for file in folder.iterdir() if file.is_file() and file.name.upper().startswith(NAMES)]
    return sorted(files)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    used = crates()
    packages = json.loads(cargo("metadata", "--locked", "--format-version", "1"))["packages"]
    by_text = collections.defaultdict(list)
    without = []
    for package in packages:
        if (package["name"], package["version"]) not in used:
            continue
        label = f"{package['name']} {package['version']} ({package['license'] or 'licence in its file'})"
        files = licence_files(package)
        if not files:
            without.append(f"{label}, by {', '.join(package['authors']) or 'its contributors'}")
        for file in files:
            by_text[file.read_text(errors="replace").strip()].append(label)
    if not by_text:
        sys.exit("no licence was found; run cargo fetch first")
    parts = ["oaimend contains the following third-party crates.\n"]
    for text, labels in sorted(by_text.items(), key=lambda item: item[1]):
        parts.append(f"{RULE}\n" + "\n".join(sorted(labels)) + f"\n\n{text}\n")
    if without:
        parts.append(f"{RULE}\nCrates without a licence file of their own:\n\n" + "\n".join(sorted(without)) + "\n")
    pathlib.Path(sys.argv[1]).write_text("\n".join(parts))
    print(f"{len(used)} crates, {len(by_text)} texts, {len(without)} crates without a file")


main()
