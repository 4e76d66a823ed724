//! The host's page for Prometheus.

use muster_protocol::Command;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Host, Plane};

/// What the host answers at this path.
async fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Where the host says that it shows its metrics.
async fn address_of(plane: &Plane, host: &Host) -> String {
    let found = || {
        let log = host.log();
        let line = log.lines().rev().find(|line| line.contains("the metrics are shown"))?;
        let (_, rest) = line.split_once("127.0.0.1:")?;
        let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Some(format!("127.0.0.1:{port}"))
    };
    plane.wait("the host shows its metrics", |_| found()).await
}

fn value(page: &str, name: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_shows_what_it_does() {
    let plane = Plane::start().await;
    let host = Host::start(&plane, &["--metrics", "127.0.0.1:0"]);
    plane.launch(7, 1).await;
    plane.say(7, 1, 70, "Hello").await;
    let address = address_of(&plane, &host).await;
    let page = get(&address, "/metrics").await;
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("text/plain; version=0.0.4"), "{page}");
    for (name, expected) in [
        ("muster_host_connected", 1.0),
        ("muster_host_agents", 1.0),
        ("muster_host_launches_total", 1.0),
        ("muster_host_disconnects_total", 0.0),
        ("muster_host_ends_total{reason=\"EXITED\"}", 0.0),
        ("muster_host_gate_calls_total{kind=\"model\",outcome=\"ok\"}", 0.0),
    ] {
        assert!((value(&page, name) - expected).abs() < 0.5, "{name}: {page}");
    }
    for name in ["muster_host_journal_bytes", "muster_host_disk_bytes", "muster_host_disk_free_bytes"] {
        assert!(value(&page, name) > 0.0, "{name}: {page}");
    }
    assert!(page.contains("# TYPE muster_host_spool_bytes gauge\n"), "{page}");
    assert!(get(&address, "/").await.starts_with("HTTP/1.1 404 "));
    plane.order(7, 1, Command::Stop);
    plane.wait("it has ended", |state| state.ended(7, 1)).await;
    let page = get(&address, "/metrics").await;
    assert!(value(&page, "muster_host_ends_total{reason=\"STOPPED\"}") > 0.5, "{page}");
    let log = host.log();
    for line in ["an agent is launched", "an agent runs", "an agent has ended"] {
        assert_eq!(log.matches(line).count(), 1, "{line}: {log}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_option_a_host_shows_nothing() {
    let plane = Plane::start().await;
    let host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    assert!(!host.log().contains("the metrics are shown"), "{}", host.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_in_use_is_refused_with_advice() {
    let plane = Plane::start().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let host = Host::start(&plane, &["--metrics", &taken.local_addr().unwrap().to_string()]);
    let advice = "Choose another address with --metrics.";
    plane.wait("the host refuses", |_| host.log().contains(advice).then_some(())).await;
}
