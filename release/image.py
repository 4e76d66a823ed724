"""Writes the image as one tar: an OCI layout (index.json, for Podman) that is Docker's format too (manifest.json).

The image has one layer, made from scratch. The same arguments and files give the same bytes. Times are seconds since
1970, sizes are bytes. bash can write neither this nor a tar with owners that it does not have.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import tarfile
from datetime import datetime, timezone

UID = 10001
DATA = "/var/lib/muster"
PASSWD = f"root:x:0:0:root:/:/sbin/nologin\nmuster:x:{UID}:{UID}:Muster:{DATA}:/sbin/nologin\n"
GROUP = f"root:x:0:\nmuster:x:{UID}:\n"
# A static glibc loads modules for any other source, and there are none.
NSSWITCH = "hosts: files dns\n"
SETTINGS = "# Mount your own file here. `muster config defaults` prints every setting; variables override both.\n"
SECOND = 1_000_000_000


class Layer:
    """A tar with fixed times, and owners by number."""

    def __init__(self, epoch):
        self.epoch = epoch
        self.bytes = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.bytes, mode="w", format=tarfile.USTAR_FORMAT)

    def _add(self, name, kind, mode, owner, content=b""):
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode, entry.mtime, entry.size = kind, mode, self.epoch, len(content)
        entry.uid = entry.gid = owner
        self.tar.addfile(entry, io.BytesIO(content))

    def folder(self, name, mode=0o755, owner=0):
        self._add(name, tarfile.DIRTYPE, mode, owner)

    def file(self, name, content, mode=0o644):
        self._add(name, tarfile.REGTYPE, mode, 0, content)

    def close(self):
        self.tar.close()
        return self.bytes.getvalue()


def layer(program, roots, licence, epoch):
    """The only layer, as a tar."""
    made = Layer(epoch)
    made.folder("etc")
    made.file("etc/group", GROUP.encode())
    made.folder("etc/muster")
    made.file("etc/muster/muster.toml", SETTINGS.encode())
    made.file("etc/nsswitch.conf", NSSWITCH.encode())
    made.file("etc/passwd", PASSWD.encode())
    made.folder("etc/ssl")
    made.folder("etc/ssl/certs")
    made.file("etc/ssl/certs/ca-certificates.crt", roots)
    made.file("LICENSE", licence)
    made.file("muster", program, 0o755)
    # In use the root is read-only: a tmpfs can be mounted here.
    made.folder("tmp", 0o1777)
    made.folder("var")
    made.folder("var/lib")
    # A new volume gets this owner and mode.
    made.folder(DATA.lstrip("/"), 0o700, UID)
    return made.close()


def compressed(content):
    out = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=out, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(content)
    return out.getvalue()


def config(given, diff_id, created):
    """The image's configuration. OCI knows no health check: Docker reads it, and Podman has `--health-cmd`."""
    return {
        "architecture": given.architecture,
        "os": "linux",
        "created": created,
        "config": {
            "User": f"{UID}:{UID}",
            "ExposedPorts": {"8080/tcp": {}},
            "Env": [
                "PATH=/",
                "MUSTER_CONFIG=/etc/muster/muster.toml",
                f"MUSTER_DATA_DIR={DATA}",
                # In a container only published ports can be reached.
                "MUSTER_LISTEN=0.0.0.0:8080",
            ],
            "Entrypoint": ["/muster"],
            "Cmd": ["serve"],
            "Volumes": {DATA: {}},
            "WorkingDir": DATA,
            "StopSignal": "SIGTERM",
            "Healthcheck": {
                "Test": ["CMD", "/muster", "health"],
                "Interval": 10 * SECOND,
                "Timeout": 5 * SECOND,
                # Migrations come first.
                "StartPeriod": 60 * SECOND,
                "Retries": 3,
            },
            "Labels": {
                "org.opencontainers.image.title": "Muster",
                "org.opencontainers.image.description":
                    "A self-hosted control plane for the AI agents of organizations",
                "org.opencontainers.image.licenses": "Apache-2.0",
                "org.opencontainers.image.version": given.version,
                "org.opencontainers.image.revision": given.commit,
                "org.opencontainers.image.created": created,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
        "history": [{"created": created, "created_by": "release/build"}],
    }


def digest(content):
    return hashlib.sha256(content).hexdigest()


def text(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def descriptor(kind, content, **more):
    return {"mediaType": kind, "digest": f"sha256:{digest(content)}", "size": len(content), **more}


def files(given, epoch):
    """Everything in the tar, by path."""
    created = datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    contents = (open(path, "rb").read() for path in (given.program, given.roots, given.licence))
    tar = layer(*contents, epoch)
    packed = compressed(tar)
    settings = text(config(given, f"sha256:{digest(tar)}", created))
    manifest = text({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", settings),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", packed)],
    })
    name = f"muster:{given.version}"
    index = text({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [descriptor(
            "application/vnd.oci.image.manifest.v1+json",
            manifest,
            platform={"architecture": given.architecture, "os": "linux"},
            annotations={
                "org.opencontainers.image.ref.name": given.version,
                # The name in containerd, which newer versions of Docker keep images in.
                "io.containerd.image.name": f"docker.io/library/{name}",
            },
        )],
    })
    blobs = {f"blobs/sha256/{digest(content)}": content for content in (settings, manifest, packed)}
    of_docker = text([{
        "Config": f"blobs/sha256/{digest(settings)}",
        "RepoTags": [name],
        "Layers": [f"blobs/sha256/{digest(packed)}"],
    }])
    return blobs | {
        "index.json": index,
        "manifest.json": of_docker,
        "oci-layout": text({"imageLayoutVersion": "1.0.0"}),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("program", "roots", "licence", "version", "commit", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--architecture", required=True, choices=("amd64", "arm64"))
    given = parser.parse_args()
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    all_files = files(given, epoch)
    whole = Layer(epoch)
    whole.folder("blobs")
    whole.folder("blobs/sha256")
    for path in sorted(all_files):
        whole.file(path, all_files[path])
    with open(given.out, "wb") as out:
        out.write(whole.close())


if __name__ == "__main__":
    main()
