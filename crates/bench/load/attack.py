"""Malicious callers without a credential, and their effect on a legitimate caller.

Started by `crates/bench/load/run --attack`. Each attack runs in a separate process at nice 19, on 127.0.0.1, for a limited time:

    introspection   batches of introspection, 60 in flight
    slow-readers    300 connections that request a lot and read a byte every five seconds
    sockets         10,000 WebSockets that send no credential, and reconnect when they are closed
"""

import asyncio, base64, http.client, json, os, pathlib, resource, statistics, subprocess, sys, threading, time

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

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0, until - time.monotonic()) + 1)


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


ATTACKS = {
    "introspection": lambda port, until: introspection(port, until),
    "slow-readers": lambda port, until: asyncio.run(many(slow_reader, 300, port, until)),
    "sockets": lambda port, until: asyncio.run(many(socket, 10_000, port, until)),
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


def measure(start, port, path, token, seconds):
    """The effect on a legitimate caller: of nothing, then of each attack. Each runs against a freshly started service."""
    print("| attack | requests of a legitimate caller | p50 ms | p99 ms | longest ms | failed | service, MB |\n|---|---|---|---|---|---|---|")
    for name in ("none", *ATTACKS):
        service = start()
        attacker = None
        try:
            if name != "none":
                attacker = subprocess.Popen(["nice", "-n", "19", sys.executable, pathlib.Path(__file__), name, str(port), str(seconds + 5)])
                time.sleep(5)
            took, failed = known_caller(port, path, token, seconds)
            report(name, took, failed, service)
        finally:
            if attacker:
                attacker.kill()
                attacker.wait()
            service.stop()


if __name__ == "__main__":
    which, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    ATTACKS[which](port, time.monotonic() + seconds)
