//! Restrictions on connections: names, addresses, SNI, plain HTTP, credentials.

use std::{path::Path, sync::atomic::Ordering, time::Duration};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use muster_egress::CrossingDecision;
use muster_protocol::plan::{Injected, Variable};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::{sleep, timeout},
};

use crate::{
    servers::{Handler, Server, body, plainly},
    support::{World, roots, send},
};

fn hello() -> Handler {
    plainly(|_| Response::new(body("hello")))
}

fn connect(to: &str) -> Request<Full<Bytes>> {
    Request::connect(to).header("host", to).body(Full::default()).unwrap()
}

/// A connection for several requests.
async fn open(socket: &Path) -> SendRequest<Full<Bytes>> {
    let stream = UnixStream::connect(socket).await.unwrap();
    let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

/// Sends a request on an open connection. Fails if the connection ends before the response.
async fn get(connection: &mut SendRequest<Full<Bytes>>, url: &str) -> hyper::Result<StatusCode> {
    connection.ready().await?;
    let answer = connection.send_request(Request::get(url).body(Full::default()).unwrap()).await?;
    let status = answer.status();
    answer.into_body().collect().await?;
    Ok(status)
}

/// The response to a TLS client in a tunnel. `None` if it can't connect.
async fn through(world: &World, to: &str, sni: &str) -> Option<String> {
    let answer = send(&world.socket(), connect(to)).await;
    if answer.status() != StatusCode::OK {
        return None;
    }
    let tunnel = hyper::upgrade::on(answer).await.unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots()).with_no_client_auth();
    let name = ServerName::try_from(sni.to_owned()).unwrap();
    let mut tls = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config))
        .connect(name, TokioIo::new(tunnel))
        .await
        .ok()?;
    tls.write_all(format!("GET / HTTP/1.1\r\nhost: {sni}\r\nconnection: close\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut read = Vec::new();
    let _ = tls.read_to_end(&mut read).await;
    Some(String::from_utf8_lossy(&read).into_owned())
}

#[tokio::test]
async fn a_tunnel_leads_only_to_a_listed_host_and_port() {
    let server = Server::secure(hello()).await;
    let mut world = World::new();
    world.allow("files.test", server.port).apply();
    world.names.set("other.test", &[&["127.0.0.1"]]);
    let (listed, port) = (format!("files.test:{}", server.port), server.port);
    assert!(through(&world, &listed, "files.test").await.unwrap().ends_with("hello"));
    let before = server.connections();
    for refused in [
        format!("other.test:{port}"),
        "files.test:1".to_owned(),
        format!("127.0.0.1:{port}"),
        format!("2130706433:{port}"),
        format!("0x7f.1:{port}"),
        format!("[::1]:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("localhost:{port}"),
    ] {
        let (status, words) = world.ask(connect(&refused)).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{refused}");
        assert!(words.starts_with("Muster: "), "{words}");
    }
    assert_eq!(server.connections(), before, "nothing left the gate");
    let counted = world.host.unreached();
    assert!(counted.contains(&("other.test".to_owned(), port)), "{counted:?}");
    let judged = world.host.judged.lock().unwrap();
    let first = &judged[0].crossing;
    assert_eq!((first.tool.as_str(), first.tool_kind.as_str()), ("network", "fetch"));
    assert_eq!(first.input, serde_json::json!({ "host": "other.test", "port": port }));
    assert!(
        judged.iter().all(|asking| !asking.crossing.input["host"].as_str().unwrap().contains("127")),
        "digits are never asked about"
    );
}

#[tokio::test]
async fn the_name_in_the_tls_is_the_name_of_the_tunnel() {
    let server = Server::secure(hello()).await;
    let mut world = World::new();
    world.allow("files.test", server.port).apply();
    let listed = format!("files.test:{}", server.port);
    assert_eq!(through(&world, &listed, "other.test").await, None, "domain fronting");
    assert_eq!(server.seen().len(), 0);
    // TLS without a name.
    assert_eq!(through(&world, &listed, "127.0.0.1").await, None);
    assert!(world.host.unreached().contains(&("files.test".to_owned(), server.port)));
    assert!(through(&world, &listed, "files.test").await.is_some());
}

#[tokio::test]
async fn names_that_lead_inwards_are_refused() {
    let server = Server::secure(hello()).await;
    let mut world = World::new();
    let port = server.port;
    world.allow("files.test", port).allow("other.test", port).apply();
    for inward in [
        &["127.0.0.2"][..],
        &["169.254.169.254"],
        &["10.0.0.1"],
        &["::1"],
        &["::ffff:169.254.169.254"],
        &["fd00::1"],
        // One valid address doesn't help.
        &["127.0.0.1", "169.254.169.254"],
    ] {
        world.names.set("files.test", &[inward]);
        let (status, words) = world.ask(connect(&format!("files.test:{port}"))).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{inward:?}");
        assert!(words.contains("not public") && words.contains("--allow-net"), "{words}");
    }
    // A second lookup never happens: the checked address is used.
    world.names.set("other.test", &[&["127.0.0.1"], &["169.254.169.254"]]);
    let before = world.names.asked.load(Ordering::Relaxed);
    assert!(through(&world, &format!("other.test:{port}"), "other.test").await.unwrap().ends_with("hello"));
    assert_eq!(world.names.asked.load(Ordering::Relaxed), before + 1);
    assert_eq!(through(&world, &format!("other.test:{port}"), "other.test").await, None);
}

#[tokio::test]
async fn a_person_can_allow_a_host_and_take_it_away() {
    let server = Server::secure(hello()).await;
    let mut world = World::new();
    world.apply();
    world.names.set("files.test", &[&["127.0.0.1"]]);
    let to = format!("files.test:{}", server.port);
    let verdict = |verdict| _ = world.host.verdicts.lock().unwrap().insert("network".to_owned(), verdict);
    verdict(CrossingDecision::Asked);
    let (status, words) = world.ask(connect(&to)).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(words.contains("End your turn"), "{words}");
    // The rules by themselves don't open an unlisted host.
    verdict(CrossingDecision::Allowed);
    assert_eq!(through(&world, &to, "files.test").await, None);
    verdict(CrossingDecision::Approved);
    assert!(through(&world, &to, "files.test").await.is_some());
    verdict(CrossingDecision::Refused { reason: String::new() });
    assert!(through(&world, &to, "files.test").await.is_some(), "tools connect many times");
    world.plan.disabled_tool_groups = vec!["Fetch".to_owned()];
    world.apply();
    assert_eq!(through(&world, &to, "files.test").await, None);
}

#[tokio::test]
async fn a_tunnel_ends_when_its_host_is_no_longer_allowed() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut world = World::new();
    world.allow("db.test", port).apply();
    let answer = send(&world.socket(), connect(&format!("db.test:{port}"))).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let mut tunnel = TokioIo::new(hyper::upgrade::on(answer).await.unwrap());
    let (mut there, _) = listener.accept().await.unwrap();
    // Other ports allow protocols without TLS, and the server may speak first.
    there.write_all(b"hi").await.unwrap();
    let mut two = [0; 2];
    tunnel.read_exact(&mut two).await.unwrap();
    tunnel.write_all(b"yo").await.unwrap();
    there.read_exact(&mut two).await.unwrap();
    assert_eq!(&two, b"yo");
    world.plan.network.allowed.clear();
    world.apply();
    assert_eq!(tunnel.read(&mut two).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn a_stop_ends_everything_and_says_so() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, model) = (listener.local_addr().unwrap().port(), Server::start(hello()).await);
    let slow = Server::start(std::sync::Arc::new(|_| Box::pin(std::future::pending()))).await;
    let mut world = World::new();
    world.allow("db.test", port).allow("slow.test", slow.port).model("openai", model.port, "canary").apply();
    let answer = send(&world.socket(), connect(&format!("db.test:{port}"))).await;
    let mut tunnel = TokioIo::new(hyper::upgrade::on(answer).await.unwrap());
    let (mut there, _) = listener.accept().await.unwrap();
    there.write_all(b"hi").await.unwrap();
    let mut two = [0; 2];
    tunnel.read_exact(&mut two).await.unwrap();
    let slow_url = format!("http://slow.test:{}/", slow.port);
    let (mut waiting, url) = (open(&world.socket()).await, slow_url.clone());
    let waits = tokio::spawn(async move { get(&mut waiting, &url).await });
    while slow.seen().is_empty() {
        sleep(Duration::from_millis(10)).await;
    }
    world.plan.stopped = true;
    world.apply();
    assert_eq!(tunnel.read(&mut two).await.unwrap_or(0), 0);
    assert!(waits.await.unwrap().is_err(), "an open request ends, too");
    let before = model.seen().len();
    for path in ["/model/v1/models", "/mcp/x", "/c/x/", "/"] {
        let (status, words) = world.get(path).await;
        assert_eq!((status, words.contains("was stopped")), (StatusCode::FORBIDDEN, true), "{path}: {words}");
    }
    assert_eq!(world.ask(connect(&format!("db.test:{port}"))).await.0, StatusCode::FORBIDDEN);
    assert_eq!(model.seen().len(), before);
    let mut kept = open(&world.socket()).await;
    assert_eq!(get(&mut kept, "/").await.unwrap(), StatusCode::FORBIDDEN);
    world.plan.stopped = false;
    world.apply();
    assert_eq!(world.get("/model/v1/models").await.0, StatusCode::OK, "and goes on");
    let waits = tokio::spawn(async move { get(&mut kept, &slow_url).await });
    while slow.seen().len() < 2 {
        sleep(Duration::from_millis(10)).await;
    }
    world.plan.stopped = true;
    world.apply();
    let answer = timeout(Duration::from_secs(30), waits).await.unwrap().unwrap();
    assert!(answer.is_err(), "a connection opened during a stop ends with the next");
}

#[tokio::test]
async fn plain_http_is_judged_alike_and_redirects_are_the_agents_own() {
    let server = Server::start(plainly(|request| match request.uri().path() {
        "/away" => Response::builder()
            .status(302)
            .header("location", "http://169.254.169.254/")
            .body(body(""))
            .unwrap(),
        _ => Response::builder()
            .header("set-cookie", "a=b")
            .header("connection", "x-hop")
            .header("x-hop", "1")
            .body(body("hello"))
            .unwrap(),
    }))
    .await;
    let mut world = World::new();
    world.allow("files.test", server.port).apply();
    let at = |path: &str| format!("http://files.test:{}{path}", server.port);
    let request = Request::get(at("/"))
        .header("connection", "x-own")
        .header("x-own", "1")
        .header("proxy-authorization", "x");
    let answer = send(&world.socket(), request.body(Full::default()).unwrap()).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["set-cookie"], "a=b");
    assert!(!answer.headers().contains_key("x-hop"));
    let seen = server.seen();
    assert_eq!(seen[0].headers()["host"], format!("files.test:{}", server.port));
    assert!(
        !seen[0].headers().contains_key("x-own") && !seen[0].headers().contains_key("proxy-authorization")
    );
    assert_eq!(world.get(&at("/away")).await.0, StatusCode::FOUND);
    assert_eq!(world.get("http://169.254.169.254/").await.0, StatusCode::FORBIDDEN);
    assert_eq!(world.get(&format!("http://127.0.0.1:{}/", server.port)).await.0, StatusCode::FORBIDDEN);
    assert_eq!(world.get("http://unlisted.test/").await.0, StatusCode::FORBIDDEN);
    assert_eq!(
        world.get(&format!("http://u:p@files.test:{}/", server.port)).await.0,
        StatusCode::BAD_REQUEST
    );
}

#[tokio::test]
async fn a_credential_goes_to_its_address_and_nowhere_else() {
    let server = Server::secure(plainly(|request| match request.uri().path() {
        "/org/away" => {
            Response::builder().status(302).header("location", "https://other.test/").body(body("")).unwrap()
        }
        "/org/near" => Response::builder().status(301).header("location", "/org/new").body(body("")).unwrap(),
        _ => Response::new(body("hello")),
    }))
    .await;
    let mut world = World::new();
    world.names.set("git.test", &[&["127.0.0.1"]]);
    world.plan.injected = vec![Injected {
        credential_id: 7,
        name: "forge".to_owned(),
        url: format!("https://git.test:{}/org", server.port),
        headers: vec![Variable {
            name: "Authorization".to_owned(),
            value: "Bearer canary".to_owned().into(),
        }],
    }];
    world.apply();
    assert_eq!(world.get("/c/other/repo").await.0, StatusCode::NOT_FOUND);
    assert!(world.host.used().is_empty());
    let request = Request::get("/c/forge/repo?x=1").header("authorization", "Bearer placeholder");
    let (status, text) = world.ask(request.body(Full::default()).unwrap()).await;
    assert_eq!((status, text.as_str()), (StatusCode::OK, "hello"));
    let seen = server.seen();
    assert_eq!(seen[0].uri().to_string(), "/org/repo?x=1");
    assert_eq!(seen[0].headers().get_all("authorization").iter().collect::<Vec<_>>(), ["Bearer canary"]);
    for path in ["/c/forge/../x", "/c/forge/%2e%2e/x", "/c/forge/a/..%2f..%2fx", "/c/forge/%252e%252e/x"] {
        assert_eq!(world.get(path).await.0, StatusCode::BAD_REQUEST, "{path}");
    }
    let location = async |path: &str| {
        let answer = send(&world.socket(), Request::get(path).body(Full::default()).unwrap()).await;
        answer.headers()["location"].to_str().unwrap().to_owned()
    };
    assert_eq!(location("/c/forge/away").await, "https://other.test/");
    assert_eq!(location("/c/forge/near").await, "/c/forge/new");
    assert_eq!(server.seen().len(), 3, "nothing was followed");
    assert_eq!(world.host.used(), [7], "once an hour");
    world.plan.disabled_tool_groups = vec!["fetch".to_owned()];
    world.apply();
    let (status, words) = world.get("/c/forge/repo").await;
    assert_eq!((status, words.contains("`fetch` is switched off")), (StatusCode::FORBIDDEN, true), "{words}");
    assert_eq!(server.seen().len(), 3, "nor does it connect this way");
    world.plan.disabled_tool_groups.clear();
    // A removed credential is unavailable at once.
    world.plan.injected.clear();
    world.apply();
    assert_eq!(world.get("/c/forge/repo").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn requests_wait_for_the_rules() {
    let world = World::new();
    let (answer, ()) = tokio::join!(world.get("/c/none/"), async {
        sleep(Duration::from_millis(50)).await;
        world.apply();
    });
    assert_eq!(answer.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_credentials_address_keeps_what_it_says() {
    let server = Server::start(hello()).await;
    let mut world = World::new();
    world.plan.injected = vec![Injected {
        credential_id: 7,
        name: "shop".to_owned(),
        url: format!("http://127.0.0.1:{}/x?mode=ro", server.port),
        headers: vec![Variable { name: "X-Key".to_owned(), value: "canary".to_owned().into() }],
    }];
    world.apply();
    for path in [
        "/c/shop/y?mode=rw",
        "/c/shop/y?a=1;MODE[]=rw",
        "/c/shop/y?%6dode=rw",
        "/c/shop/y?mo%00de=rw",
        "/c/shop/y;mode=rw",
        "/c/shop/y%3fmode=rw",
    ] {
        let (status, words) = world.get(path).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}");
        assert!(words.contains("sets itself"), "{words}");
    }
    for path in ["..%3fx", "..%23x", "..%20/x", "..%ef%bc%8fx", "y%23"] {
        let (status, words) = world.get(&format!("/c/shop/{path}")).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}");
        assert!(words.contains("leads out of the address"), "{words}");
    }
    for method in ["TRACE", "TRACK", "trace", "DEBUG"] {
        let request = Request::builder().method(method).uri("/c/shop/y").header("max-forwards", "0");
        let (status, words) = world.ask(request.body(Full::default()).unwrap()).await;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{method}: {words}");
    }
    for head in ["CONNECT /c/shop/y HTTP/1.1\r\n", "GET /c/shop/y HTTP/1.1\r\nx-a: 1\r\n x-key: own\r\n"] {
        let mut stream = UnixStream::connect(world.socket()).await.unwrap();
        stream.write_all(format!("{head}host: x\r\nconnection: close\r\n\r\n").as_bytes()).await.unwrap();
        let mut read = Vec::new();
        let _ = stream.read_to_end(&mut read).await;
        assert!(read.is_empty() || read.starts_with(b"HTTP/1.1 400"), "{}", String::from_utf8_lossy(&read));
    }
    assert!(server.seen().is_empty(), "nothing has left");
    let request = Request::builder()
        .method("PROPFIND")
        .uri("/c/shop/y?page=2")
        .header("depth", "1")
        .header("max-forwards", "0")
        .header("x_key", "own")
        .header("x-http-method-override", "DELETE")
        .header("x-forwarded-host", "other.test");
    assert_eq!(world.ask(request.body(Full::default()).unwrap()).await.0, StatusCode::OK);
    let seen = server.seen().remove(0);
    assert_eq!(
        (seen.method().as_str(), seen.uri().to_string().as_str()),
        ("PROPFIND", "/x/y?mode=ro&page=2")
    );
    let headers = seen.headers();
    assert_eq!((&headers["depth"], &headers["x-key"]), (&"1".parse().unwrap(), &"canary".parse().unwrap()));
    for dropped in ["max-forwards", "x_key", "x-http-method-override", "x-forwarded-host"] {
        assert!(!headers.contains_key(dropped), "{dropped}");
    }
}

#[tokio::test]
async fn an_mcp_server_has_egress_without_its_agents_credentials() {
    let server = Server::start(hello()).await;
    let mut world = World::new();
    world.allow("files.test", server.port).model("openai", server.port, "a key");
    world.plan.injected = vec![Injected {
        credential_id: 7,
        name: "shop".to_owned(),
        url: format!("http://files.test:{}/", server.port),
        headers: vec![Variable { name: "authorization".to_owned(), value: "a secret".to_owned().into() }],
    }];
    world.apply();
    let socket = world.dir.path().join("servers");
    world.gate.serve_servers(tokio::net::UnixListener::bind(&socket).unwrap());
    let get = |path: &str| send(&socket, Request::get(path).body(Full::default()).unwrap());
    assert_eq!(get(&format!("http://files.test:{}/", server.port)).await.status(), StatusCode::OK);
    assert_eq!(get("http://other.test/").await.status(), StatusCode::FORBIDDEN);
    let before = server.connections();
    for path in ["/c/shop/", "/model/models", "/mcp/shop"] {
        assert_eq!(get(path).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(server.connections(), before, "nothing left the gate");
    assert_ne!(world.get("/c/shop/").await.0, StatusCode::NOT_FOUND, "the agent has them");
}
