//! Destinations of agents' usual tools in a container: hosts listed by the organization, through the gate, and nothing
//! else.

use std::{
    fs, io,
    net::{TcpListener, UdpSocket},
    sync::Arc,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use muster_protocol::{
    HostEvent,
    plan::{Destination, SecretFile, Variable},
};
use tempfile::TempDir;

use crate::{
    engine::{Contained, plan},
    servers::{Body, Handler, Server, authority, body},
    sources,
    support::{Plane, State},
};

/// curl, git, npm and pip with the reference agent, as `tests/containers` packs them. The agent's environment is in its
/// home.
const TOOLS: &str = "muster-test/tools";
/// The host's names. The machine keeps its own.
const HOSTS: &str = "127.0.0.1 localhost files.test other.test\n10.0.0.1 inward.test\n\
    169.254.169.254 metadata.test\n::1 six.test\n";
/// The variable of each tool for the tests' authority.
const AUTHORITY: [&str; 4] = ["CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "npm_config_cafile", "PIP_CERT"];
/// The output of curl, git, npm and pip on success.
const GOT: [&str; 4] = ["good day", "hello", r#""version":"1.0.0""#, "x = 1"];
/// Bypasses the gate.
const PAST: &str = "unset HTTP_PROXY HTTPS_PROXY http_proxy https_proxy NODE_USE_ENV_PROXY;";
/// Uses the gate for all destinations.
const THROUGH: &str = "export NO_PROXY= no_proxy=;";

/// Servers outside of the container, each with the content for the tools.
struct Outside {
    folder: TempDir,
    /// The listed one, as `files.test`. Paths below `/away` redirect to the other one.
    listed: Server,
    /// The unlisted one.
    other: Server,
    /// The same without TLS, which needs no name.
    plain: Server,
    /// A listener on IPv6, if the machine has it.
    six: Option<TcpListener>,
    /// The place of a name server.
    names: UdpSocket,
}

impl Outside {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = sources::files(folder.path());
        let other = Server::secure(Arc::clone(&files)).await;
        let plain = Server::start(Arc::clone(&files)).await;
        let listed = Server::secure(moved(files, other.port)).await;
        fs::write(folder.path().join("greeting"), "good day\n").unwrap();
        fs::write(folder.path().join("hosts"), HOSTS).unwrap();
        sources::repository(folder.path());
        sources::packages(folder.path(), &format!("https://files.test:{}/npm", listed.port));
        let six = TcpListener::bind("[::1]:0").ok();
        if let Some(six) = &six {
            six.set_nonblocking(true).unwrap();
        }
        let names = UdpSocket::bind("127.0.0.1:0").unwrap();
        names.set_nonblocking(true).unwrap();
        Self { folder, listed, other, plain, six, names }
    }

    /// The port for IPv6.
    fn six(&self) -> u16 {
        self.six.as_ref().map_or(1, |six| six.local_addr().unwrap().port())
    }

    /// An address of the listed server.
    fn listed(&self, path: &str) -> String {
        format!("https://files.test:{}{path}", self.listed.port)
    }

    /// Whether the listed server got a request with this prefix.
    fn was_asked(&self, path: &str) -> bool {
        self.listed.seen().iter().any(|request| request.uri().path().starts_with(path))
    }

    /// Asserts that nothing reached an unlisted server.
    fn is_unseen(&self) {
        assert_eq!((self.other.connections(), self.plain.connections()), (0, 0));
        if let Some(six) = &self.six {
            assert_eq!(six.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
        assert_eq!(self.names.recv(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}

/// Redirects paths below `/away` to another port and name.
fn moved(files: Handler, port: u16) -> Handler {
    Arc::new(move |request: Request<Bytes>| -> BoxFuture<'static, Response<Body>> {
        let asked = request.uri().to_string();
        match asked.strip_prefix("/away") {
            Some(path) => {
                let to = format!("https://other.test:{port}{path}");
                let answer = Response::builder().status(302).header("location", to).body(body("")).unwrap();
                Box::pin(std::future::ready(answer))
            }
            None => files(request),
        }
    })
}

/// A host with the test's names, and an agent with the tools in its container.
async fn host(plane: &Plane, outside: &Outside) -> Contained {
    let mut host = Contained::start(plane, &["--allow-net", "127.0.0.1/32"]);
    host.kill();
    let hosts = outside.folder.path().join("hosts").display().to_string();
    let script = r#"mount --bind "$0" /etc/hosts && exec "$@""#;
    host.within = ["unshare", "--mount", "sh", "-c", script, &hosts].map(str::to_owned).to_vec();
    host.run();
    let listed = [
        ("files.test", outside.listed.port),
        ("inward.test", outside.listed.port),
        ("metadata.test", 80),
        ("six.test", outside.six()),
    ];
    plan(plane, 7, |plan| {
        plan.network.allowed =
            listed.map(|(host, port)| Destination { host: host.to_owned(), port }).to_vec();
        plan.files = vec![SecretFile { path: "ca.pem".to_owned(), content: authority().root.clone().into() }];
        let path = || "/home/agent/ca.pem".to_owned().into();
        plan.environment = AUTHORITY.map(|name| Variable { name: name.to_owned(), value: path() }).to_vec();
    });
    plane.begin(7, 1, TOOLS);
    plane.wait("it runs", |state| state.started(7, 1).then_some(())).await;
    host
}

/// Runs a script as the agent, with its environment. Returns success and output.
fn runs(host: &Contained, script: &str) -> (bool, String) {
    let script = format!(". /home/agent/environment; cd /home/agent; {script}");
    let ran = host.as_agent(7, 1, &["/busybox", "sh", "-c", &script]);
    (ran.status.success(), String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned())
}

/// Commands of curl, git, npm and pip that fetch and print content, without caches.
fn gets(from: &str) -> [String; 4] {
    let npm = "npm install --no-audit --no-fund --no-update-notifier --loglevel error --fetch-retries 0";
    let pip = "pip install --quiet --disable-pip-version-check --retries 0 --no-cache-dir";
    [
        format!("curl -sSfL {from}/greeting"),
        format!("rm -rf got && git clone -q {from}/repo.git got && cat got/file"),
        format!(
            "rm -rf node .npm && mkdir node && {npm} --prefix node --registry {from}/npm/ demo && \
             cat node/node_modules/demo/package.json"
        ),
        format!(
            "rm -rf there && {pip} --target there --index-url {from}/pypi/simple/ demo && cat there/demo/__init__.py"
        ),
    ]
}

/// Asserts that a script fails, and prints no content from outside.
fn fails(host: &Contained, script: &str) {
    let (is_done, said) = runs(host, script);
    assert!(!is_done && !GOT.iter().any(|got| said.contains(got)), "{script}: {said}");
}

/// Asserts that all four tools fail.
fn none_gets(host: &Contained, first: &str, from: &str) {
    for script in gets(from) {
        fails(host, &format!("{first} {script}"));
    }
}

/// Asserts that network and name service are missing.
fn nothing_is_past_the_gate(host: &Contained, outside: &Outside) {
    assert_eq!(runs(host, "ls /sys/class/net"), (true, "lo\n".to_owned()));
    // A name, IPv4, IPv6.
    none_gets(host, PAST, &outside.listed(""));
    none_gets(host, PAST, &format!("http://127.0.0.1:{}", outside.plain.port));
    none_gets(host, PAST, &format!("https://[::1]:{}", outside.six()));
    for away in ["198.51.100.1", "[2001:db8::1]", "169.254.169.254"] {
        fails(host, &format!("{PAST} curl -sSf http://{away}/"));
    }
    // Name servers.
    for (server, port) in [("127.0.0.1", outside.names.local_addr().unwrap().port()), ("198.51.100.1", 53)] {
        let asks = format!(
            "import socket; it = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); it.settimeout(9); \
             it.connect(('{server}', {port})); it.send(b'who'); it.recv(1)"
        );
        let (is_done, said) = runs(host, &format!("python3 -c \"{asks}\""));
        assert!(!is_done && said.contains("Error: [Errno "), "{server}: {said}");
    }
}

/// Whether the control plane got a report of this refusal with its reason.
fn is_told(state: &State, host: &str, why: &str) -> Option<()> {
    let mut all = state.events_of(7);
    let is_it = |what: &HostEvent| match what {
        HostEvent::Unreached { destination, reason, .. } => destination.host == host && reason.contains(why),
        _ => false,
    };
    all.any(is_it).then_some(())
}

/// Asserts that the gate passes only listed hosts, under any notation, with a reason.
async fn the_gate_refuses(plane: &Plane, host: &Contained, outside: &Outside) {
    let (port, other) = (outside.listed.port, outside.other.port);
    // An unlisted name.
    none_gets(host, "", &format!("https://other.test:{other}"));
    let unlisted = "is not on the organization's list of hosts";
    for asked in
        [format!("https://other.test:{other}/"), format!("http://other.test:{}/", outside.plain.port)]
    {
        let (_, said) = runs(host, &format!("curl -sv {asked}"));
        assert!(said.contains(unlisted), "{asked}: {said}");
    }
    // Digits.
    for digits in [format!("127.0.0.1:{port}"), format!("[::1]:{}", outside.six())] {
        fails(host, &format!("{THROUGH} curl -sSf -k https://{digits}/greeting"));
        let (_, said) = runs(host, &format!("{THROUGH} curl -sv https://{digits}/greeting"));
        assert!(said.contains("IP addresses are not allowed"), "{digits}: {said}");
    }
    // A redirect: every tool sees it, and none can follow.
    none_gets(host, "", &outside.listed("/away"));
    for path in ["/away/greeting", "/away/repo.git/", "/away/npm/", "/away/pypi/"] {
        assert!(outside.was_asked(path), "{path}: {:?}", outside.listed.seen());
    }
    // A listed name with a private address.
    none_gets(host, "", &format!("https://inward.test:{port}"));
    let six = outside.six();
    for inward in [format!("inward.test:{port}"), "metadata.test:80".to_owned(), format!("six.test:{six}")] {
        fails(host, &format!("curl -sSf https://{inward}/"));
        let (_, said) = runs(host, &format!("curl -sv https://{inward}/"));
        assert!(said.contains("has an address that is not public"), "{inward}: {said}");
    }
    // A tunnel to one name, with TLS for another.
    let before = outside.listed.seen().len();
    let fronted =
        format!("--connect-to other.test:{port}:files.test:{port} https://other.test:{port}/greeting");
    fails(host, &format!("curl -sSf -k {fronted}"));
    assert_eq!(outside.listed.seen().len(), before);
    let told = [
        ("other.test", unlisted),
        ("inward.test", "has an address that is not public"),
        ("files.test", "its TLS is for other.test"),
    ];
    for (name, why) in told {
        plane.wait(&format!("{name} is reported"), |state| is_told(state, name, why)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn tools_inside_reach_what_is_listed_and_nothing_else() {
    let (plane, outside) = (Plane::start().await, Outside::start().await);
    let host = host(&plane, &outside).await;
    for (script, got) in gets(&outside.listed("")).iter().zip(GOT) {
        let (is_done, said) = runs(&host, script);
        assert!(is_done && said.contains(got), "{script}: {said}");
    }
    nothing_is_past_the_gate(&host, &outside);
    the_gate_refuses(&plane, &host, &outside).await;
    outside.is_unseen();
    // The way is still open.
    let (is_done, said) = runs(&host, &gets(&outside.listed(""))[0]);
    assert!(is_done && said.contains(GOT[0]), "{said}");
}
