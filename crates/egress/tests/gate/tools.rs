//! Agents' usual tools in a sandbox without a network: curl, git, npm, pip.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use bytes::Bytes;
use http::{Request, Response};
use muster_protocol::plan::{Injected, Variable};
use muster_shim::{
    args::{Gate, ProgramSpec},
    isolate::{Bubblewrap, Sandbox, isolation},
};

use crate::{
    servers::{Server, authority, body, plainly},
    sources::{self, file, files},
    support::World,
};

/// The shim: an example of this package, built by `cargo nextest run -p muster-egress`.
pub fn shim() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().unwrap().parent().unwrap().join("examples/shim");
    assert!(program.is_file(), "build it first: cargo build -p muster-egress --example shim");
    program
}

/// Runs a script in an agent's sandbox. `None` without working bubblewrap, as in some containers.
async fn sandboxed(world: &World, script: &str) -> Option<Output> {
    if !matches!(isolation().bubblewrap, Bubblewrap::Works(_)) {
        assert!(std::env::var_os("CI").is_none(), "bubblewrap is missing");
        eprintln!("skipped: no bubblewrap");
        return None;
    }
    let home = world.dir.path().join("home");
    fs::create_dir_all(&home).unwrap();
    let ca = home.join("ca.pem");
    fs::write(&ca, &authority().root).unwrap();
    let gate = Gate { socket: world.socket(), port: Gate::PORT };
    let readable = [shim(), world.dir.path().join("gate")].into_iter().chain(python());
    let sandbox = Sandbox { writable: vec![home.clone()], readable: readable.collect(), no_network: true };
    let spec = ProgramSpec {
        sandbox: Some(sandbox),
        gate: Some(gate),
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        ..ProgramSpec::default()
    };
    let mut command = Command::new(shim());
    command.arg("exec").args(spec.to_args()).current_dir(&home).env_clear();
    command.env("HOME", &home).env("PATH", std::env::var_os("PATH").unwrap());
    let proxy = format!("http://127.0.0.1:{}", Gate::PORT);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
        command.env(name, &proxy);
    }
    command.env("NO_PROXY", "127.0.0.1,localhost").env("no_proxy", "127.0.0.1,localhost");
    for name in ["CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "npm_config_cafile", "PIP_CERT"] {
        command.env(name, &ca);
    }
    Some(tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap())
}

/// The folder of a Python with pip outside of the system.
fn python() -> Option<PathBuf> {
    let asked =
        Command::new("python3").args(["-c", "import sys, pip; print(sys.base_prefix)"]).output().ok()?;
    let prefix = PathBuf::from(String::from_utf8(asked.stdout).ok()?.trim());
    (asked.status.success() && !prefix.starts_with("/usr")).then_some(prefix)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[tokio::test]
async fn the_sandbox_has_no_way_out_but_the_gate() {
    let server = Server::secure(plainly(|_| Response::new(body("reached")))).await;
    let plain = Server::start(plainly(|_| Response::new(body("reached")))).await;
    let mut world = World::new();
    world.allow("files.test", server.port).apply();
    world.names.set("other.test", &[&["127.0.0.1"]]);
    let port = server.port;
    let Some(reached) = sandboxed(&world, &format!("curl -sS https://files.test:{port}/")).await else {
        return;
    };
    assert_eq!(text(&reached), "reached");
    let attempts = [
        // Around the proxy: no network and no name service.
        format!("curl -sS --max-time 5 --noproxy '*' http://127.0.0.1:{}/", plain.port),
        format!(
            "curl -sS --max-time 5 --noproxy '*' --resolve files.test:{port}:127.0.0.1 -k https://files.test:{port}/"
        ),
        "curl -sS --max-time 5 --noproxy '*' http://[::1]:1/".to_owned(),
        "curl -sS --max-time 5 --noproxy '*' http://1.1.1.1/".to_owned(),
        "curl -sS --max-time 5 --noproxy '*' http://[2606:4700:4700::1111]/".to_owned(),
        "curl -sS --max-time 5 --noproxy '*' http://169.254.169.254/".to_owned(),
        "getent hosts files.test".to_owned(),
        // Through the proxy: an unlisted host.
        format!("curl -sSf https://other.test:{port}/"),
        format!("curl -sSf -k https://127.0.0.1:{port}/ --noproxy ''"),
        "curl -sSf http://169.254.169.254/latest/meta-data/".to_owned(),
        // Different names for tunnel and server.
        format!("curl -sSf -k --connect-to other.test:{port}:files.test:{port} https://other.test:{port}/"),
        // Another proxy protocol.
        format!("curl -sSf --proxy socks5h://127.0.0.1:3128 https://files.test:{port}/"),
    ];
    for attempt in attempts {
        let output = sandboxed(&world, &attempt).await.unwrap();
        assert!(
            !output.status.success() && !text(&output).contains("reached"),
            "{attempt}: {}",
            text(&output)
        );
    }
    let refused = sandboxed(&world, &format!("curl -sv https://other.test:{port}/")).await.unwrap();
    assert!(text(&refused).contains("is not on the organization's list"), "{}", text(&refused));
    assert_eq!((server.seen().len(), plain.seen().len()), (1, 0));
    // Loopback only.
    let links = sandboxed(&world, "cat /proc/net/dev | tail -n +3 | cut -d: -f1; cat /proc/net/if_inet6")
        .await
        .unwrap();
    assert!(!text(&links).contains("eth"), "{}", text(&links));
}

#[tokio::test]
async fn git_clones_from_a_listed_host_and_with_a_hidden_credential() {
    let dir = tempfile::tempdir().unwrap();
    sources::repository(dir.path());
    let folder = dir.path().to_owned();
    let server = Server::secure(plainly(move |request| {
        let is_open = request.uri().path().starts_with("/repo.git");
        let knows = request.headers().get("authorization").is_some_and(|value| value == "Bearer canary");
        match request.uri().path().strip_prefix("/private") {
            Some(rest) if knows => {
                let uri = rest.parse().unwrap();
                let mut inner = Request::new(Bytes::new());
                *inner.uri_mut() = uri;
                file(&folder, &inner)
            }
            None if is_open => file(&folder, &request),
            _ => Response::builder().status(401).body(body("")).unwrap(),
        }
    }))
    .await;
    let mut world = World::new();
    world.allow("git.test", server.port);
    world.plan.injected = vec![Injected {
        credential_id: 7,
        name: "forge".to_owned(),
        url: format!("https://git.test:{}/private", server.port),
        headers: vec![Variable {
            name: "authorization".to_owned(),
            value: "Bearer canary".to_owned().into(),
        }],
    }];
    world.apply();
    let port = server.port;
    let script = format!(
        "set -e; git clone -q https://git.test:{port}/repo.git open; cat open/file; \
         git config --global url.http://127.0.0.1:3128/c/forge/.insteadOf https://git.test:{port}/private/; \
         git clone -q https://git.test:{port}/private/repo.git kept; cat kept/file; grep -rc canary . | grep -v ':0$' || true"
    );
    let Some(output) = sandboxed(&world, &script).await else { return };
    assert_eq!(text(&output), "hello\nhello\n");
    let refused =
        sandboxed(&world, &format!("git clone -q https://other.test:{port}/repo.git")).await.unwrap();
    assert!(!refused.status.success());
}

#[tokio::test]
async fn npm_and_pip_install_from_listed_hosts() {
    let dir = tempfile::tempdir().unwrap();
    let npm_server = Server::secure(files(&dir.path().join("npm"))).await;
    let pypi_server = Server::secure(files(&dir.path().join("pypi"))).await;
    sources::packages(dir.path(), &format!("https://npm.test:{}", npm_server.port));
    let mut world = World::new();
    world.allow("npm.test", npm_server.port).allow("pypi.test", pypi_server.port).apply();
    let install = |registry: &str| {
        format!(
            "npm install --no-audit --no-fund --silent --prefix . --fetch-retries 0 --registry {registry} demo && cat node_modules/demo/package.json"
        )
    };
    let script = install(&format!("https://npm.test:{}/", npm_server.port));
    let Some(output) = sandboxed(&world, &script).await else { return };
    assert!(text(&output).contains("1.0.0"), "{}", text(&output));
    let refused =
        sandboxed(&world, &install(&format!("https://other.test:{}/", npm_server.port))).await.unwrap();
    assert!(!refused.status.success());
    let has_pip = Command::new("python3")
        .args(["-m", "pip", "--version"])
        .output()
        .is_ok_and(|pip| pip.status.success());
    if !has_pip {
        eprintln!("skipped: no pip");
        return;
    }
    let python =
        python().map_or("python3".to_owned(), |prefix| prefix.join("bin/python3").display().to_string());
    let install = |index: &str| {
        format!(
            "{python} -m pip install --quiet --disable-pip-version-check --retries 0 --no-cache-dir --target there --index-url {index} demo && cat there/demo/__init__.py"
        )
    };
    let output = sandboxed(&world, &install(&format!("https://pypi.test:{}/simple/", pypi_server.port)))
        .await
        .unwrap();
    assert!(text(&output).contains("x = 1"), "{}", text(&output));
    let refused = sandboxed(&world, &install(&format!("https://other.test:{}/simple/", pypi_server.port)))
        .await
        .unwrap();
    assert!(!refused.status.success(), "{}", text(&refused));
}
