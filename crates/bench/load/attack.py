"""Malicious callers, without a credential or in an organization of their own, and their effect on a legitimate caller.

Started by `crates/bench/load/run --attack`. Each attack runs in a separate process at nice 19, on 127.0.0.1, for a limited time:

    introspection   batches of introspection, 60 in flight
    slow-readers    300 connections that request a lot and read a byte every five seconds
    sockets         10,000 WebSockets that send no credential, and reconnect when they are closed
    schedules       four connections that set cron expressions which never come
    markdown        messages of 200 KB that an agent repeats: `>` 70,000 times, and lines that each belong to all of them
    receivers       300 channels whose receiver accepts and says nothing
"""

import asyncio, base64, http.client, itertools, json, os, pathlib, resource, shutil, statistics, subprocess, sys, tempfile, threading, time, types
import urllib.error, urllib.request

import channels

INNER = "name description type{name description fields{name description args{name description type{name description}}}}"
ROOTS = " ".join(f"a{n}:__schema{{types{{name fields{{{INNER}}}}}}}" for n in range(30))
BATCH = json.dumps([{"query": f"{{{ROOTS}}}"}] * 10).encode()
ONE = json.dumps({"query": "{__schema{types{name description fields{name description args{name description}}}}}"}).encode()


def introspection(port, until):
    """Threads, because there is no asynchronous HTTP client."""

    def ask():
        while time.monotonic() < until:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.request("POST", "/graphql", BATCH, {"Content-Type": "application/json"})
                connection.getresponse().read()
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)

    run(ask, 60, until)


def head(length):
    return f"POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n".encode()


async def slow_reader(port, until):
    while time.monotonic() < until:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
            writer.write(head(len(ONE)) + ONE)
            while time.monotonic() < until and await reader.read(1):
                await asyncio.sleep(5)
            writer.close()
        except OSError:
            pass
        await asyncio.sleep(0.5)


async def socket(port, until):
    key = base64.b64encode(os.urandom(16)).decode()
    asked = (f"GET /graphql HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n").encode()
    payload, mask = b'{"type":"connection_init","payload":{}}', b"\0\0\0\0"
    init = bytes([0x81, 0x80 | len(payload)]) + mask + payload
    while time.monotonic() < until:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(asked)
            if b" 101 " in await asyncio.wait_for(reader.readline(), 20):
                writer.write(init)
                while await asyncio.wait_for(reader.read(4096), max(0.1, until - time.monotonic())):
                    pass
            writer.close()
        except (OSError, asyncio.TimeoutError):
            pass
        await asyncio.sleep(1)


async def many(kind, count, port, until):
    async def later(n):
        await asyncio.sleep(n / count * 5)
        await kind(port, until)

    await asyncio.gather(*(later(n) for n in range(count)))


DEEP = ">" * 70_000 + "a\n" + "a\n" * 70_000
NEVER = ["0 0 30 2 *", "59 23 31 2,4,6,9,11 *", "* * 31 2,4,6,9,11 *", "0 0 31 4,6 *"]


class Tenant(channels.House):
    """An organization of its own, with a token, in a service that runs already."""

    def __init__(self, port):
        place = json.loads(os.environ["ATTACKER"])
        self.base, self.org, self.token = f"http://127.0.0.1:{port}", place["org"], place["token"]
        self.muster, self.home = types.SimpleNamespace(binary=place["binary"]), pathlib.Path(tempfile.mkdtemp(prefix="muster-attack-"))
        self.host = None

    def __enter__(self):
        self.agent = self.hire()
        return self

    def __exit__(self, *_):
        stop = "mutation($org: Id!, $agent: Id!) { stopAgent(orgId: $org, id: $agent) { id } }"
        self.ask("/graphql", {"query": stop, "variables": {"org": self.org, "agent": self.agent}})
        time.sleep(2)
        self.host.terminate()
        self.host.wait(10)
        shutil.rmtree(self.home, ignore_errors=True)


def schedules(port, until):
    tenant = Tenant(port)
    server = tenant.v1("server", {"name": "desk"})
    agent = tenant.v1("agent", {"name": "Juniper", "role": "Support", "server_id": server["id"]})["id"]

    def edit():
        headers = {"Authorization": f"Bearer {tenant.token}", "Content-Type": "application/json"}
        for line in itertools.cycle(NEVER):
            if time.monotonic() > until:
                return
            body = json.dumps({"backup_schedule": "CRON", "backup_cron": line}).encode()
            request = urllib.request.Request(f"{tenant.base}/v1/org/{tenant.org}/agent/{agent}", body, headers, method="PATCH")
            try:
                urllib.request.urlopen(request, timeout=60).read()
            except urllib.error.HTTPError as refused:
                refused.read()
            except OSError:
                time.sleep(0.05)

    run(edit, 4, until)


def markdown(port, until):
    with Tenant(port) as tenant:
        url, _ = tenant.channel("Deep", outbound_url=channels.Receiver().url)
        for n in itertools.count():
            if time.monotonic() > until - 5:
                return
            send(url, {"text": DEEP, "thread": str(n % 20)}, f"deep-{n}")


def receivers(port, until):
    hangs = channels.Receiver(hangs=True)
    with Tenant(port) as tenant:
        urls = [tenant.channel(f"Hangs {n}", outbound_url=hangs.url)[0] for n in range(300)]
        for n, url in enumerate(itertools.cycle(urls)):
            if time.monotonic() > until - 5:
                return
            send(url, {"text": "Anybody?", "thread": str(n)}, f"hangs-{n}")
            time.sleep(0.01)


def send(url, body, key):
    """What the service refuses because of its limits is part of the attack."""
    try:
        channels.post(url, json.dumps(body), key)
    except OSError:
        time.sleep(0.05)


def run(work, count, until):
    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0, until - time.monotonic()) + 1)


ATTACKS = {
    "introspection": lambda port, until: introspection(port, until),
    "slow-readers": lambda port, until: asyncio.run(many(slow_reader, 300, port, until)),
    "sockets": lambda port, until: asyncio.run(many(socket, 10_000, port, until)),
    "schedules": schedules,
    "markdown": markdown,
    "receivers": receivers,
}


def known_caller(port, path, token, seconds):
    """One request after another on one connection, fifty per second: the milliseconds of each, and how many failed."""
    took, failed = [], 0
    until, connection = time.monotonic() + seconds, None
    while time.monotonic() < until:
        began = time.monotonic()
        try:
            connection = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            answer.read()
            failed += answer.status != 200
        except (OSError, http.client.HTTPException):
            failed, connection = failed + 1, None
        took.append((time.monotonic() - began) * 1000)
        time.sleep(max(0, 0.02 - (time.monotonic() - began)))
    return took, failed


def report(name, took, failed, service):
    took.sort()
    print(f"| {name} | {len(took):,} | {statistics.median(took):.1f} | {took[int(len(took) * 0.99)]:.1f} | {took[-1]:.1f} | {failed} | "
          f"{service.rss():.0f} |", flush=True)


def measure(start, port, path, token, seconds, attacker_of):
    """The effect on a legitimate caller: of nothing, then of each attack. Each runs against a freshly started service.
    `attacker_of` says in which organization an attack is, with which token and program."""
    print("| attack | requests of a legitimate caller | p50 ms | p99 ms | longest ms | failed | service, MB |\n|---|---|---|---|---|---|---|")
    for name in ("none", *ATTACKS):
        service = start()
        attacker = None
        try:
            if name != "none":
                command = ["nice", "-n", "19", sys.executable, pathlib.Path(__file__), name, str(port), str(seconds + 5)]
                attacker = subprocess.Popen(command, env={**os.environ, "ATTACKER": json.dumps(attacker_of(name))})
                time.sleep(5)
            took, failed = known_caller(port, path, token, seconds)
            report(name, took, failed, service)
        finally:
            if attacker:
                try:
                    attacker.wait(20)
                except subprocess.TimeoutExpired:
                    attacker.kill()
                    attacker.wait()
            service.stop()


if __name__ == "__main__":
    which, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    ATTACKS[which](port, time.monotonic() + seconds)
