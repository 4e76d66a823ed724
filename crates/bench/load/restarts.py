"""What restarts cost clients behind a proxy: a replica restarts, both do, one is killed, PostgreSQL restarts.

Started by `crates/bench/load/run --restarts nginx` (or caddy), with --seconds of load after each event. Two replicas share
a PostgreSQL that syncs, and a key file. Eight writers start conversations, each change with an Idempotency-Key, which
they repeat until it is acknowledged; eight readers list agents. All keep their connections to the proxy open.

The proxy has its file from release/proxy, with these differences. Both listen on two free ports of 127.0.0.1, with a
certificate of their own. nginx: the second replica's lines are active. Caddy: its own variable names the replicas, and
the API that changes settings is off.

A key is refused for 5 s longer than limits.request_timeout_seconds if its replica was killed before the change was made.
That setting is 5 instead of 30, and the next event waits for such changes.

Fails if a change that was acknowledged is missing, or if one was made twice.
"""

import collections, http.client, json, os, pathlib, signal, socket, ssl, subprocess, sys, threading, time, uuid

import channels

ROOT = pathlib.Path(__file__).resolve().parents[3]
NAME = "muster.example.com"
PATIENCE = 60
PAUSE = 0.05
START = "mutation($org: Id!, $input: StartConversationInput!) { startConversation(orgId: $org, input: $input) { id } }"


def edited(text, *changes):
    for old, new in changes:
        if old not in text:
            raise SystemExit(f"the proxy's file no longer has: {old}")
        text = text.replace(old, new)
    return text


class Proxy:
    """The proxy of that kind, before these replicas."""

    def __init__(self, kind, folder, upstreams, free_port):
        self.port, self.folder, self.upstreams = free_port(), folder, upstreams
        folder.mkdir()
        self.certificate, self.key = folder / "fullchain.pem", folder / "privkey.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={NAME}",
                        "-addext", f"subjectAltName=DNS:{NAME}", "-keyout", self.key, "-out", self.certificate], check=True, stderr=subprocess.DEVNULL)
        command, env = {"nginx": self.nginx, "caddy": self.caddy}[kind](free_port())
        with open(folder / "log", "w") as log:
            self.process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        self.stop()
        raise SystemExit((folder / "log").read_text())

    def nginx(self, plain):
        text = (ROOT / "release/proxy/nginx.conf").read_text()
        text = edited(text, (f"/etc/letsencrypt/live/{NAME}", str(self.folder)), ("    listen [::]:80;\n", ""), ("    listen [::]:443 ssl http2;\n", ""),
                      ("listen 80;", f"listen 127.0.0.1:{plain};"), ("listen 443 ", f"listen 127.0.0.1:{self.port} "),
                      ("server 127.0.0.1:8080 ", f"server {self.upstreams[0]} "), ("# server 10.0.0.12:8080 ", f"server {self.upstreams[1]} "))
        (self.folder / "muster.conf").write_text(text)
        kinds = "".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (self.folder / "nginx.conf").write_text(
            f"daemon off; pid {self.folder}/pid; error_log stderr; events {{}} http {{ access_log off; {kinds} include {self.folder}/muster.conf; }}")
        return ["nginx", "-p", self.folder, "-c", self.folder / "nginx.conf"], {"PATH": os.environ["PATH"] + ":/usr/sbin"}

    def caddy(self, plain):
        text = (ROOT / "release/proxy/Caddyfile").read_text()
        text = edited(text, ("{\n\t# Streams", f"{{\n\tadmin off\n\tdefault_bind 127.0.0.1\n\thttp_port {plain}\n\thttps_port {self.port}\n\t# Streams"),
                      ("\theader Strict", f"\ttls {self.certificate} {self.key}\n\theader Strict"))
        (self.folder / "Caddyfile").write_text(text)
        env = {"PATH": os.environ["PATH"], "XDG_DATA_HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder), "MUSTER_UPSTREAMS": " ".join(self.upstreams)}
        return ["caddy", "run", "--adapter", "caddyfile", "--config", self.folder / "Caddyfile"], env

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Connection(http.client.HTTPConnection):
    """To the proxy, under the name in its file."""

    def __init__(self, proxy):
        super().__init__(NAME, proxy.port, timeout=90)
        self.tls = ssl.create_default_context(cafile=proxy.certificate)

    def connect(self):
        plain = socket.create_connection(("127.0.0.1", self.port), self.timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = self.tls.wrap_socket(plain, server_hostname=NAME)


def outcome(status, text):
    """200, or the status of a failure: Muster's own with its code, which GraphQL sends with status 200."""
    try:
        answer = json.loads(text)
    except ValueError:
        return str(status)
    if errors := answer.get("errors"):
        answer = errors[0].get("extensions", {})
    code = answer.get("code")
    return f"{answer.get('status', status)} {code}" if code else str(status)


class Clients:
    """Writers and readers, until they are told to stop."""

    def __init__(self, place, proxy, count=8):
        self.place, self.proxy, self.stopping = place, proxy, threading.Event()
        self.answers, self.changes, self.open = [], [], {}
        work = [self.write] * count + [self.read] * count
        self.threads = [threading.Thread(target=self.run, args=(one,), daemon=True) for one in work]
        for thread in self.threads:
            thread.start()

    def run(self, work):
        connection = Connection(self.proxy)
        while not self.stopping.wait(PAUSE):
            work(connection)
        connection.close()

    def ask(self, connection, method, path, body=None, **headers):
        headers |= {"Authorization": f"Bearer {self.place.token}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            said = outcome(answer.status, answer.read())
        except (OSError, http.client.HTTPException):
            connection.close()
            said = "broken"
        self.answers.append((time.monotonic(), method, said))
        return said

    def read(self, connection):
        self.ask(connection, "GET", f"/v1/org/{self.place.org}/agent?page=1&limit=50")

    def write(self, connection):
        title, began, wait = str(uuid.uuid4()), time.monotonic(), 0.1
        self.open[threading.get_ident()] = began
        variables = {"org": self.place.org, "input": {"agentId": self.place.agent, "title": title}}
        body, is_made = json.dumps({"query": START, "variables": variables}), False
        while not is_made and time.monotonic() < began + PATIENCE:
            said = self.ask(connection, "POST", "/graphql", body, **{"Idempotency-Key": title})
            # In doubt: the change was made, and its answer was lost.
            is_made = said in ("200", "409 IDEMPOTENCY_IN_DOUBT")
            if not is_made:
                time.sleep(wait)
                wait = min(1, wait * 2)
        self.changes.append((title, began, time.monotonic(), is_made))
        del self.open[threading.get_ident()]

    def settle(self):
        """Waits for the changes that were begun before."""
        now = time.monotonic()
        while any(began < now for began in list(self.open.values())):
            time.sleep(PAUSE)

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(PATIENCE + 90)


class Replicas:
    def __init__(self, musters):
        self.musters, self.services = musters, {}

    def start(self, at):
        self.services[at] = self.musters[at].serve()
        self.musters[at].run("health")

    def restart(self, at):
        self.services[at].stop()
        self.start(at)

    def restart_all(self):
        self.stop()
        for at in (0, 1):
            self.start(at)

    def kill(self, at):
        self.services[at].process.kill()
        self.services[at].process.wait()
        self.start(at)

    def stop(self):
        for service in self.services.values():
            service.stop()


class Place(channels.House):
    """An organization with an agent that does not run."""

    def __init__(self, muster):
        self.create_organization(muster)


def longest_gap(times, began, ended):
    edges = [began, *sorted(times), ended]
    return max(later - earlier for earlier, later in zip(edges, edges[1:]))


def counted(answers):
    found = collections.Counter(said for _, said in answers)
    return ", ".join(f"{count:,} × {said}" for said, count in sorted(found.items()))


def table(kind, clients, marks, ended):
    """A row for each event, with the answers between it and the next."""
    print(f"| Behind {kind} | took | answers to changes | to reads | longest without a success: change, read | slowest change |\n|---|---|---|---|---|---|")
    starts = [began for _, began, _ in marks] + [ended]
    for (name, began, done), until in zip(marks, starts[1:]):
        of = lambda method: [(when, said) for when, kind, said in clients.answers if kind == method and began <= when < until]
        gap = lambda method: longest_gap((when for when, said in of(method) if said == "200"), began, until)
        slowest = max((end - start for _, start, end, _ in clients.changes if began <= end < until), default=0)
        print(f"| {name} | {done - began:.1f} s | {counted(of('POST'))} | {counted(of('GET'))} | {gap('POST'):.2f} s, {gap('GET'):.2f} s | {slowest:.2f} s |")


def judge(clients, found):
    """Compares what was acknowledged with the titles that the database has."""
    stored = collections.Counter(found)
    acknowledged = [title for title, *_, is_made in clients.changes if is_made]
    lost = [title for title in acknowledged if title not in stored]
    doubled = [title for title, count in stored.items() if count > 1]
    given_up = len(clients.changes) - len(acknowledged)
    print(f"\n{len(acknowledged):,} changes were acknowledged; {len(lost)} of them are missing, {len(doubled)} were made twice. "
          f"{given_up} were given up after {PATIENCE} s.")
    return 1 if lost or doubled else 0


def events(replicas, postgres):
    return {
        "nothing": lambda: None,
        "a replica restarts": lambda: replicas.restart(0),
        "the other restarts": lambda: replicas.restart(1),
        "both restart, the second as soon as the first is ready": lambda: [replicas.restart(at) for at in (0, 1)],
        "both restart at once, as an only one would": replicas.restart_all,
        "a replica is killed": lambda: replicas.kill(0),
        "PostgreSQL restarts": postgres.restart,
    }


def measure(kind, musters, postgres, folder, free_port, seconds):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for muster in musters:
        # The first two as the proxy's file asks.
        muster.env |= {"MUSTER_PUBLIC_URL": f"https://{NAME}", "MUSTER_TRUSTED_PROXIES": "127.0.0.1", "MUSTER_LIMITS_REQUEST_TIMEOUT_SECONDS": "5"}
    place = Place(musters[0])
    replicas, proxy, clients = Replicas(musters), None, None
    try:
        replicas.start(0)
        replicas.start(1)
        place.agent = place.agent_at_rest()
        proxy = Proxy(kind, folder / kind, [f"127.0.0.1:{muster.port}" for muster in musters], free_port)
        clients, marks = Clients(place, proxy), []
        time.sleep(1)
        for name, action in events(replicas, postgres).items():
            began = time.monotonic()
            action()
            marks.append((name, began, time.monotonic()))
            time.sleep(seconds)
            clients.settle()
        ended = time.monotonic()
        clients.stop()
        table(kind, clients, marks, ended)
        return judge(clients, postgres.values("SELECT title FROM conversations"))
    finally:
        if clients:
            clients.stopping.set()
        if proxy:
            proxy.stop()
        replicas.stop()
