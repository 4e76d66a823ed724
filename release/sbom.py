"""Writes what is in a release as a CycloneDX document: crates, packages of the panel, glibc and the CA roots.

cargo-cyclonedx would be another program to install and to trust, knows nothing of the panel's packages, and writes a
new serial number each time. What it does for the crates is in `crates` below. Packages that only tests need are left
out.
"""

import argparse
import base64
import json
import os
import re
import tomllib
import uuid
from datetime import datetime, timezone
from urllib.parse import quote


def expression(licence):
    """A licence as SPDX writes it; crates.io also has the older `MIT/Apache-2.0`."""
    return [{"expression": re.sub(r" */ *", " OR ", licence)}] if licence else []


def component(purl, name, version, licence=None, algorithm=None, checksum=None):
    found = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if licence:
        found["licenses"] = expression(licence)
    if checksum:
        found["hashes"] = [{"alg": algorithm, "content": checksum}]
    return found


def crate_purl(package):
    return f"pkg:cargo/{package['name']}@{quote(package['version'])}"


def is_shipped(dependency):
    """Whether it gets into the program: macros do, by what they write, and build scripts by what they compile."""
    return any(kind["kind"] != "dev" for kind in dependency["dep_kinds"])


def crates(metadata, lock):
    """The components of the program, its own purl, and what needs what, from `cargo metadata`."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    sums = {(entry["name"], entry["version"]): entry.get("checksum") for entry in lock["package"]}
    root = next(package for package in metadata["packages"] if package["name"] == "muster")
    found, edges, open_ids = {}, {}, [root["id"]]
    while open_ids:
        package = packages[open_ids.pop()]
        purl = crate_purl(package)
        if purl in edges:
            continue
        needed = [entry["pkg"] for entry in nodes[package["id"]]["deps"] if is_shipped(entry)]
        edges[purl] = {crate_purl(packages[entry]) for entry in needed}
        open_ids.extend(needed)
        checksum = sums.get((package["name"], package["version"]))
        found[purl] = component(purl, package["name"], package["version"], package["license"], "SHA-256", checksum)
    own = crate_purl(root)
    del found[own]
    return found, own, edges


def npm(lock):
    """The panel's packages, which are compiled into its files."""
    found = {}
    for path, entry in lock["packages"].items():
        if not path or entry.get("dev") or entry.get("link") or entry.get("optional"):
            continue
        name = entry.get("name") or path.rpartition("node_modules/")[2]
        purl = f"pkg:npm/{quote(name)}@{entry['version']}"
        algorithm, _, checksum = entry.get("integrity", "").partition("-")
        content = base64.b64decode(checksum).hex() if algorithm == "sha512" else None
        found[purl] = component(purl, name, entry["version"], entry.get("license"), "SHA-512", content)
    return found


def debian(lines):
    """glibc, which is in the program, and the CA roots, which are in the image: `package=version` each."""
    found = {}
    for line in lines:
        package, _, version = line.strip().partition("=")
        if version:
            purl = f"pkg:deb/debian/{package}@{quote(version)}"
            found[purl] = component(purl, package, version)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("crates", "lock", "npm", "debian", "version", "commit", "out"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    with open(given.crates) as metadata, open(given.lock, "rb") as lock:
        shipped, own, edges = crates(json.load(metadata), tomllib.load(lock))
    with open(given.npm) as lock:
        of_panel = npm(json.load(lock))
    with open(given.debian) as lines:
        of_debian = debian(lines)
    edges[own] |= of_panel.keys() | of_debian.keys()
    all_found = shipped | of_panel | of_debian
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_OID, f"muster {given.version} {given.commit}").urn,
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "muster",
                "version": given.version,
                "licenses": expression("Apache-2.0"),
                "purl": own,
                "properties": [{"name": "muster:commit", "value": given.commit}],
            },
        },
        "components": [all_found[purl] for purl in sorted(all_found)],
        "dependencies": [{"ref": purl, "dependsOn": sorted(edges.get(purl, ()))} for purl in [own, *sorted(all_found)]],
    }
    with open(given.out, "w") as out:
        json.dump(document, out, indent=1, sort_keys=True)
        out.write("\n")


if __name__ == "__main__":
    main()
