#!/usr/bin/env python3
"""Prints the licenses of everything linked into the program: `.ci/licenses.py TARGET > THIRD-PARTY.txt`.

Crates with the same license text share an entry. Fails if a crate has neither a license file nor a license name.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

FILE = re.compile(r"^(licen[sc]e|copying|copyright|notice|unlicense)", re.I)


def linked(metadata):
    """Returns the packages linked into the program, sorted by name, without those used only by tests, build scripts and macros."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    found, todo = set(), [metadata["resolve"]["root"]]
    while todo:
        one = todo.pop()
        is_macro = any("proc-macro" in target["kind"] for target in packages[one]["targets"])
        if one in found or is_macro:
            continue
        found.add(one)
        for dependency in nodes[one]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                todo.append(dependency["pkg"])
    outside = (packages[one] for one in found if packages[one]["source"])
    return sorted(outside, key=lambda package: (package["name"], package["version"]))


def texts(package):
    """Returns the contents of a package's license files."""
    folder = Path(package["manifest_path"]).parent
    files = {file for file in folder.iterdir() if file.is_file() and FILE.match(file.name)}
    named = package.get("license_file")
    if named and (folder / named).is_file():
        files.add(folder / named)
    return [file.read_text(encoding="utf-8", errors="replace").strip() for file in sorted(files)]


def main(target):
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    packages = linked(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
    owners = {}
    nameless = []
    print("sweepline contains the following crates.\n")
    for package in packages:
        name = f"{package['name']} {package['version']}"
        found = texts(package)
        if not found and not package["license"]:
            nameless.append(name)
        note = "" if found else " (its package contains no license text)"
        print(f"{name}: {package['license'] or 'see the text'}{note}")
        for text in found:
            owners.setdefault(text, []).append(name)
    for text, names in owners.items():
        print(f"\n{'=' * 100}\n{', '.join(names)}\n\n{text}")
    if nameless:
        sys.exit(f"licenses: crates without a license text or name: {', '.join(nameless)}")
    print(f"{len(packages)} crates, {len(owners)} texts", file=sys.stderr)


main(sys.argv[1])
