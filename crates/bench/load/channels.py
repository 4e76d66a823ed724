"""Messages through WEBHOOK channels: how many come in, how soon the agent has them, and what a receiver that hangs costs others.

Started by `crates/bench/load/run --channels`. A real host runs the reference agent. Everything is on 127.0.0.1.
"""

import collections, hashlib, hmac, http.server, json, pathlib, re, statistics, subprocess, threading, time, urllib.error, urllib.request

SECRET = "the-secret-of-the-bench"
HEADER = "X-Signature"
PEOPLE = 200
# The signatures are over the bodies alone, so that wrk can send them; the key makes each request a new message.
LOAD = """
local n = 0
local said = {%s}
local thread = 0
function setup(t) t:set("id", thread) thread = thread + 1 end
function request()
    n = n + 1
    local one = said[n %% #said + 1]
    local headers = {["Content-Type"] = "application/json", ["%s"] = one[2], ["Idempotency-Key"] = "%s-" .. id .. "-" .. n}
    return wrk.format("POST", nil, headers, one[1])
end
"""


def signature(body):
    return "sha256=" + hmac.new(SECRET.encode(), body.encode(), hashlib.sha256).hexdigest()


def by_many():
    """Messages of many people, signed, as a Lua table's content."""
    bodies = [json.dumps({"text": "Where is my order?", "origin_id": f"person-{n}", "origin_name": f"Person {n}"}) for n in range(PEOPLE)]
    return ", ".join(f"{{'{body}', '{signature(body)}'}}" for body in bodies)


class Receiver(http.server.ThreadingHTTPServer):
    """Takes answers and notes when; or takes nothing and lets its callers wait."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, hangs=False):
        self.hangs, self.came = hangs, collections.deque()
        super().__init__(("127.0.0.1", 0), Answer)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/"


class Answer(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.hangs:
            time.sleep(60)
        self.send_response(204)
        self.end_headers()
        self.server.came.append((time.monotonic(), body["data"]["conversation"]["thread"]))

    def log_message(self, *_):
        pass


class House:
    """A service with one running agent."""

    def __init__(self, muster, folder):
        muster.env["MUSTER_CHANNELS_NETWORKS"] = "127.0.0.1/32"
        self.create_organization(muster)
        self.service, self.home = muster.serve(), folder / "desk"
        try:
            self.agent = self.hire()
        except BaseException:
            self.service.stop()
            raise

    def create_organization(self, muster):
        """An organization with a token, in an empty database."""
        self.muster, self.base = muster, f"http://127.0.0.1:{muster.port}"
        muster.run("user", "create", "--email", "load@example.org", "--name", "Load", "--confirmed", "--password-stdin", said="correct horse battery\n")
        org = muster.run("org", "create", "--name", "Load", "--owner-email", "load@example.org", "--plan", "ENTERPRISE")
        self.org = org["id"]
        self.token = muster.run("token", "create", "--org", self.org, "--name", "load", "--all")["token"]

    def v1(self, path, body=None, method="POST"):
        return self.ask(f"/v1/org/{self.org}/{path}", body, method)

    def ask(self, path, body=None, method="POST"):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.loads(answer.read() or "null")
        except urllib.error.HTTPError as refused:
            raise SystemExit(f"{method} {path}: {refused.read().decode()}")

    def agent_at_rest(self):
        server = self.v1("server", {"name": "desk"})
        return self.v1("agent", {"name": "Juniper", "role": "Support", "server_id": server["id"]})["id"]

    def hire(self):
        """A machine, a running agent on it, and one that does not run."""
        server = self.v1("server", {"name": "desk"})
        self.asleep = self.v1("agent", {"name": "Juniper", "role": "Support", "server_id": server["id"]})["id"]
        host = [str(self.muster.binary), "host"]
        join = [*host, "join", "--url", self.base, "--token-stdin", "--dir", str(self.home)]
        subprocess.run(join, input=server["provisioning_token"], text=True, check=True, stdout=subprocess.DEVNULL)
        run = [*host, "run", "--dir", str(self.home), "--runtime", "process"]
        self.host = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        agent = self.v1("agent", {"name": "Marlow", "role": "Support", "server_id": server["id"]})["id"]
        self.v1(f"agent/{agent}/start")
        for _ in range(300):
            if any(found["id"] == agent and found["status"] == "RUNNING" for found in self.v1("agent?page=1&limit=50", method="GET")["data"]):
                return agent
            time.sleep(0.1)
        raise SystemExit("the agent does not start")

    def channel(self, name, agent=None, **webhook):
        """A channel's address for requests, and its id."""
        direction = "BIDIRECTIONAL" if "outbound_url" in webhook else "INBOUND"
        webhook |= {"inbound_secret": SECRET, "signature_header": HEADER}
        made = {"name": name, "transport": "WEBHOOK", "agent_id": agent or self.agent, "direction": direction, "webhook": webhook}
        channel = self.v1("channel", made)
        return self.base + channel["inbound_path"], channel["id"]

    def close(self):
        stop = "mutation($org: Id!, $agent: Id!) { stopAgent(orgId: $org, id: $agent) { id } }"
        self.ask("/graphql", {"query": stop, "variables": {"org": self.org, "agent": self.agent}})
        time.sleep(2)
        self.host.terminate()
        self.host.wait(10)
        self.service.stop()


def post(url, body, key):
    request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json", HEADER: signature(body), "Idempotency-Key": key})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.status, json.loads(answer.read())


def flood(house, url, name, options, folder):
    """Requests with wrk. Returns requests a second, p50 and p99 in ms, CPU in µs a request, and how many were answered with 2xx."""
    script = folder / f"{name}.lua"
    script.write_text(LOAD % (by_many(), HEADER, name))
    before = house.service.cpu()
    command = ["wrk", "-t2", f"-c{options.connections}", f"-d{options.seconds}s", "--latency", "-s", str(script), url]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    spent = house.service.cpu() - before
    number = lambda pattern: re.search(pattern, said)
    milliseconds = lambda text: float(text[:-2]) / 1000 if text.endswith("us") else float(text[:-2]) if text.endswith("ms") else float(text[:-1]) * 1000
    done = int(number(r"(\d+) requests in")[1])
    failed = number(r"Non-2xx or 3xx responses: (\d+)")
    return {
        "rate": float(number(r"Requests/sec:\s+([\d.]+)")[1]),
        "p50": milliseconds(number(r"50%\s+([\d.]+\w+)")[1]),
        "p99": milliseconds(number(r"\b99%\s+([\d.]+\w+)\n")[1]),
        "cpu": spent / done * 1e6,
        "good": done - (int(failed[1]) if failed else 0),
    }


def turns(house, receiver, url, count, name):
    """Messages one after the other, each in the same conversation. Returns the milliseconds from sending to the answer's arrival."""
    took = []
    for n in range(count):
        receiver.came.clear()
        began = time.monotonic()
        post(url, json.dumps({"text": f"Good morning {n}", "thread": name}), f"{name}-{n}")
        while not receiver.came and time.monotonic() - began < 20:
            time.sleep(0.0005)
        took.append((receiver.came[0][0] - began) * 1000 if receiver.came else float("inf"))
    return took


def measure(muster, database, count, folder, options):
    """Prints the figures for one database; `count` answers an SQL query of one number."""
    house = House(muster, folder)
    show = lambda what, text: print(f"| {what} | {database} | {text} |", flush=True)
    try:
        # Inbound messages are measured alone, without answers.
        url, channel = house.channel("Load", house.asleep)
        flooded = flood(house, url, "flood", options, folder)
        stored = int(count(f"SELECT COUNT(*) FROM messages WHERE via_channel_id = {channel} AND role = 'USER'"))
        show("taken in a second", f"{flooded['rate']:,.0f} · p50 {flooded['p50']:.1f} ms · p99 {flooded['p99']:.1f} ms · {flooded['cpu']:.0f} µs CPU")
        # At the end wrk leaves what is on its way.
        lost = max(0, flooded["good"] - stored)
        show("answered, stored, lost", f"{flooded['good']:,} · {stored:,} · {lost}")
        closed, channel = house.channel("Closed")
        house.v1(f"channel/{channel}/whitelist", {"origin_id": "bob"})
        rows = "SELECT (SELECT COUNT(*) FROM messages) + (SELECT COUNT(*) FROM audit_lines) + (SELECT COUNT(*) FROM approvals)"
        before = int(count(rows))
        refused = flood(house, closed, "refused", options, folder)
        show("refused in a second", f"{refused['rate']:,.0f} · {refused['cpu']:.0f} µs CPU · rows written: {int(count(rows)) - before}")
        fine, hangs = Receiver(), Receiver(hangs=True)
        url, channel = house.channel("Fine", outbound_url=fine.url)
        turns(house, fine, url, 10, "warm")
        alone = turns(house, fine, url, options.turns, "alone")
        sql = f"SELECT t.started_at - t.created_at FROM turns t JOIN conversations c ON c.id = t.conversation_id WHERE c.channel_id = {channel} AND t.started_at IS NOT NULL"
        begun = sorted(int(value) for value in count(sql, many=True))
        show("stored → the agent has the turn", f"median {statistics.median(begun):.0f} ms · p99 {begun[len(begun) * 99 // 100]} ms")
        show("sent → the answer is delivered", f"median {statistics.median(alone):.0f} ms")
        stuck, _ = house.channel("Stuck", outbound_url=hangs.url)
        for n in range(20):
            post(stuck, json.dumps({"text": "Anybody?", "thread": str(n)}), f"stuck-{n}")
        time.sleep(2)
        beside = turns(house, fine, url, options.turns, "beside")
        show("the same beside a receiver that hangs", f"median {statistics.median(beside):.0f} ms, ×{statistics.median(beside) / statistics.median(alone):.2f}")
    finally:
        house.close()
