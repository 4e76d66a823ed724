"""Malicious callers, without a credential or in an organization of their own, and their effect on a legitimate caller.

Started by `crates/bench/load/run --attack`. Each attack runs in a separate process at nice 19, on 127.0.0.1, for a limited time:

    introspection   batches of introspection, 60 in flight
    slow-readers    300 connections that request a lot and read a byte every five seconds
    sockets         10,000 WebSockets that send no credential, and reconnect when they are closed
    schedules       four connections that set cron expressions which never come
    markdown        messages of 200 KB that an agent repeats: `>` 70,000 times, and lines that each belong to all of them
    receivers       100 channels whose receiver accepts and says nothing
    mail            20 mailboxes with another mail of a megabyte as soon as one is read: nested parts, a hundred thousand headers
    imap            20 mail servers that talk without end: responses of almost a megabyte, and then one that is nested too deeply
    json            eight connections that post nested, doubled and endless JSON to a webhook, `/graphql` and `/v1`
"""

import asyncio, base64, http.client, itertools, json, os, pathlib, resource, shutil, socketserver, statistics, subprocess, sys, tempfile, threading
import time, types
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
    agent = tenant.agent_at_rest()

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
        urls = [tenant.channel(f"Hangs {n}", outbound_url=hangs.url)[0] for n in range(100)]
        for n, url in enumerate(itertools.cycle(urls)):
            if time.monotonic() > until - 5:
                return
            send(url, {"text": "Anybody?", "thread": str(n)}, f"hangs-{n}")
            time.sleep(0.01)


MEGABYTE = 1 << 20


def repeated(text, size=MEGABYTE - 4096):
    return text * (size // len(text))


def nested(kind):
    return "".join(f"Content-Type: {kind}; boundary=b{n}\r\n\r\n--b{n}\r\n" for n in range(16_000))


MAILS = [mail.encode() for mail in (
    nested("multipart/mixed"),
    repeated("Content-Type: message/rfc822\r\n\r\n"),
    "Content-Type: multipart/mixed; boundary=x\r\n\r\n" + repeated("--x\r\n\r\na\r\n"),
    repeated("X: y\r\n") + "\r\n",
    "Cc: " + repeated("(") + "\r\n\r\n",
    "Cc: " + repeated("=?utf-8?q?a") + "\r\n\r\n",
    "References: " + repeated("<a@evil.test> ") + "\r\n\r\n",
    "Authentication-Results: " + repeated("a;b=(") + "\r\n\r\n",
    "Content-Type: text/html\r\n\r\n" + repeated("<div><b>"),
)]
LINES = [line.encode() + b"\r\n" for line in (
    "* SEARCH" + repeated(" 4294967295"),
    "* 1 FETCH (FLAGS (" + repeated("a ") + "))",
    "* LIST " + repeated("((((((((a))))))))"),
    '* 1 FETCH (X "' + repeated('\\"') + '")',
    "* OK [UIDNEXT " + repeated("1") + "]",
)]
TOO_DEEP = b"* 1 FETCH " + b"(" * 1000 + b"\r\n"


class Mailboxes(socketserver.ThreadingTCPServer):
    """A mail server with a mail for every client, and another one as soon as that is read; or one that talks."""

    daemon_threads, request_queue_size = True, 256

    def __init__(self, talks):
        self.talks = talks
        super().__init__(("127.0.0.1", 0), Session)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """The service may hang up whenever it likes."""


class Session(socketserver.StreamRequestHandler):
    def handle(self):
        self.say("* OK Ready")
        for line in self.rfile:
            tag, command, *words = line.decode(errors="replace").split()
            if command == "CAPABILITY":
                self.say("* CAPABILITY IMAP4rev1 IDLE")
            elif command == "SELECT":
                self.say("* OK [UIDVALIDITY 1] Valid\r\n* OK [UIDNEXT 1] Next")
            elif command == "IDLE":
                self.idle()
            elif command == "UID" and words[0] == "FETCH" and not self.server.talks:
                self.mail(*words[1].split(":"))
            self.say(f"{tag} OK Done")

    def say(self, line):
        self.wfile.write(line.encode() + b"\r\n")

    def idle(self):
        self.say("+ Idle")
        if self.server.talks:
            for line in LINES * 4:
                self.wfile.write(line)
            if time.monotonic() % 10 < 1:
                self.wfile.write(TOO_DEEP)
        self.say("* 1 EXISTS")
        self.rfile.readline()

    def mail(self, uid, *is_list):
        mail = f"From: a@evil.test\r\nMessage-ID: <{uid}@evil.test>\r\nSubject: a\r\n".encode() + MAILS[int(uid) % len(MAILS)]
        if is_list:
            now = time.strftime("%d-%b-%Y %H:%M:%S +0000", time.gmtime())
            self.say(f'* 1 FETCH (UID {uid} RFC822.SIZE {len(mail)} FLAGS () INTERNALDATE "{now}")')
        else:
            self.wfile.write(f"* 1 FETCH (UID {uid} BODY[] {{{len(mail)}}}\r\n".encode() + mail + b")\r\n")


def mailboxes(port, until, talks):
    tenant, server = Tenant(port), Mailboxes(talks)
    agent, (host, at) = tenant.agent_at_rest(), server.server_address
    for n in range(20):
        imap = {"host": host, "port": at, "user": f"box-{n}", "pass": "secret", "tls": False}
        made = {"name": f"Box {n}", "transport": "EMAIL", "agent_id": agent, "direction": "INBOUND", "email": {"imap": imap}}
        try:
            tenant.v1("channel", made)
        except SystemExit:
            # The service is too busy with those before, which is the attack's aim.
            time.sleep(0.5)
    time.sleep(max(0, until - time.monotonic()))


DEEP_LIST = "[" * 100_000 + "]" * 100_000
BODIES = [
    DEEP_LIST,
    f'{{"text": "a", "more": {DEEP_LIST}}}',
    '{"text": "a", "more": ' + '{"a":' * 40_000 + "1" + "}" * 40_000 + "}",
    '{"text": "a"' + ', "text": "a"' * 15_000 + "}",
    '{"text": "' + "\\u0041\\ud83d\\ude00" * 10_000 + '"}',
    '{"text": "a", "more": ' + "1" * 200_000 + "}",
    '{"text": "a", "more": [' + "1e-999999," * 20_000 + "1]}",
]


def bodies(port, until):
    tenant = Tenant(port)
    url, _ = tenant.channel("Bodies", tenant.agent_at_rest())
    numbers = itertools.count()

    def post():
        own = {"Authorization": f"Bearer {tenant.token}", "Content-Type": "application/json"}
        for body in itertools.cycle(BODIES):
            if time.monotonic() > until:
                return
            send(url, body, f"body-{next(numbers)}")
            for path in ("/graphql", f"/v1/org/{tenant.org}/agent"):
                try:
                    urllib.request.urlopen(urllib.request.Request(tenant.base + path, body.encode(), own), timeout=60).read()
                except (OSError, http.client.HTTPException):
                    time.sleep(0.01)

    run(post, 8, until)


def send(url, body, key):
    """What the service refuses because of its limits is part of the attack."""
    try:
        channels.post(url, body if isinstance(body, str) else json.dumps(body), key)
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
    "mail": lambda port, until: mailboxes(port, until, talks=False),
    "imap": lambda port, until: mailboxes(port, until, talks=True),
    "json": bodies,
}
AIM = 50


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


def p99(took):
    return sorted(took)[int(len(took) * 0.99)]


def report(name, alone, took, failed, service):
    ratio = p99(took) / p99(alone)
    print(f"| {name} | {len(took):,} | {statistics.median(took):.1f} | {p99(alone):.1f} | {p99(took):.1f} | ×{ratio:.1f} | {max(took):.1f} | "
          f"{failed} | {service.rss():.0f} |", flush=True)


def measure(start, port, path, token, seconds, only, attacker_of):
    """The effect on a legitimate caller of nothing, and of each attack (or those in `only`). Each runs against a freshly started
    service, on which the caller is alone first. `attacker_of` says in which organization an attack is, with which token and program."""
    print("| attack | requests of a legitimate caller | p50 ms | p99 ms, alone | p99 ms | ratio | longest ms | failed | service, MB |\n"
          "|---|---|---|---|---|---|---|---|---|")
    late = []
    for name in ("none", *(name for name in ATTACKS if not only or name in only)):
        service = start()
        attacker = None
        try:
            alone, _ = known_caller(port, path, token, max(2, seconds / 4))
            if name != "none":
                command = ["nice", "-n", "19", sys.executable, pathlib.Path(__file__), name, str(port), str(seconds + 5)]
                attacker = subprocess.Popen(command, env={**os.environ, "ATTACKER": json.dumps(attacker_of(name))})
                time.sleep(5)
            took, failed = known_caller(port, path, token, seconds)
            report(name, alone, took, failed, service)
            late += [name] if p99(took) > AIM or failed else []
            if attacker and attacker.poll() not in (None, 0):
                raise SystemExit(f"{name}: the attack itself has failed")
        finally:
            if attacker:
                try:
                    attacker.wait(20)
                except subprocess.TimeoutExpired:
                    attacker.kill()
                    attacker.wait()
            service.stop()
    print(f"Above {AIM} ms, or with failures: {', '.join(late) or 'none'}.")


if __name__ == "__main__":
    which, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    ATTACKS[which](port, time.monotonic() + seconds)
