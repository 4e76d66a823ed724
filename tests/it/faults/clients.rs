//! Clients that mean harm or go away: silent connections, one byte at a time, documents made to be expensive;
//! and a service that is asked to stop while it works.

use std::{io::ErrorKind, time::Duration};

use futures::future::join_all;
use muster::{
    base::ids::OrgId,
    core::{Options, access::Scope},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::harness::{
    PATIENCE, Program, Serving, Tenant, TestApp, config, empty_database, is_postgres, until,
};

/// A service with little patience, and a caller who may use it.
fn impatient(more: &[(&str, &str)]) -> (Program, Tenant, Serving) {
    let mut variables = vec![
        ("MUSTER_LIMITS_HEADER_TIMEOUT_SECONDS", "3"),
        ("MUSTER_LIMITS_REQUEST_TIMEOUT_SECONDS", "3"),
        ("MUSTER_LOG", "off"),
    ];
    variables.extend_from_slice(more);
    let program = Program::new(&variables);
    let tenant = program.tenant();
    let serving = program.serve();
    (program, tenant, serving)
}

/// Everything the other end sends until it closes.
async fn rest(stream: &mut TcpStream) -> Option<String> {
    let mut heard = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut heard)).await.ok()?;
    // A reset counts as the end too.
    let _ = read;
    Some(String::from_utf8_lossy(&heard).into_owned())
}

/// Whether the other end has neither closed nor said anything.
fn is_open(stream: &TcpStream) -> bool {
    stream.try_read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[tokio::test(flavor = "multi_thread")]
async fn once_ten_thousand_silent_connections_keep_no_one_out() {
    let (_program, tenant, serving) = impatient(&[("MUSTER_LIMITS_HEADER_TIMEOUT_SECONDS", "20")]);
    let (actor, path) = (serving.actor(&tenant), format!("/v1/org/{}", tenant.org));
    let mut silent = Vec::new();
    for _ in 0..10_000 {
        let connection = timeout(PATIENCE, TcpStream::connect(serving.address())).await;
        silent.push(
            connection.expect("it is accepted").expect("a descriptor: ulimit -n is too low for this test"),
        );
    }
    actor.get(&path).await.expect(200);
    let last = silent.last_mut().unwrap();
    assert!(is_open(last), "answered only once the silent were cut off");
    for _ in 0..20 {
        actor.get(&path).await.expect(200);
    }
    assert!(rest(last).await.is_some(), "the silent are cut off");
}

#[tokio::test(flavor = "multi_thread")]
async fn once_connections_are_limited_by_the_settings() {
    let (_program, tenant, serving) = impatient(&[("MUSTER_LIMITS_CONNECTIONS", "4")]);
    let path = format!("/v1/org/{}", tenant.org);
    let mut silent: Vec<TcpStream> = Vec::new();
    until("the next client learns it at once", async || {
        silent.clear();
        for _ in 0..4 {
            silent.push(TcpStream::connect(serving.address()).await.unwrap());
        }
        let answer = serving.actor(&tenant).get(&path).await;
        // On a slow machine it may come too late, when the silent are cut off already.
        assert!(answer.status == 200 || answer.problem() == (503, "UNAVAILABLE"), "{answer:#?}");
        answer.status == 503
    })
    .await;
    // The new client is served once the silent ones are cut off.
    for stream in &mut silent {
        assert!(rest(stream).await.is_some(), "the silent are cut off");
    }
    let actor = serving.actor(&tenant);
    until("there is room", async || actor.get(&path).await.status == 200).await;
}

/// With fewer descriptors than allowed connections, the service accepts fewer and stays alive.
#[tokio::test(flavor = "multi_thread")]
async fn once_connections_never_take_the_last_descriptors() {
    let (program, tenant, _) = impatient(&[("MUSTER_LIMITS_HEADER_TIMEOUT_SECONDS", "20")]);
    let serving = program.serve_within("--nofile=400");
    let mut silent = Vec::new();
    for _ in 0..250 {
        silent.push(TcpStream::connect(serving.address()).await.unwrap());
    }
    let actor = serving.actor(&tenant);
    assert_eq!(actor.get("/health").await.status, 200);
    assert_eq!(actor.get(&format!("/v1/org/{}", tenant.org)).await.problem(), (503, "UNAVAILABLE"));
    // An operator's command works meanwhile.
    program.json(&["org", "list"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn once_dripping_clients_are_cut_off_and_others_are_answered() {
    let (_program, tenant, serving) = impatient(&[]);
    let mut heads = TcpStream::connect(serving.address()).await.unwrap();
    heads.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n").await.unwrap();
    let mut bodies = TcpStream::connect(serving.address()).await.unwrap();
    let head = format!(
        "POST /v1/org/{}/server HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: 1000\r\n\r\n{{",
        tenant.org, tenant.token
    );
    bodies.write_all(head.as_bytes()).await.unwrap();
    let actor = serving.actor(&tenant);
    for n in 0..30 {
        actor.get(&format!("/v1/org/{}", tenant.org)).await.expect(200);
        // They may already be cut off, which is what the test is about.
        let _ = heads.write_all(format!("x-{n}: y\r\n").as_bytes()).await;
        let _ = bodies.write_all(b" ").await;
        sleep(Duration::from_millis(150)).await;
    }
    rest(&mut heads).await.expect("a head that never ends is cut off");
    let heard = rest(&mut bodies).await.expect("a body that never ends is cut off");
    assert!(heard.is_empty() || heard.contains("503") || heard.contains("408"), "{heard}");
}

async fn until_no_transaction_is_open(app: &TestApp) {
    let open =
        "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'";
    until("every transaction is ended", async || app.one::<i64>(open, vec![]).await == 0).await;
}

/// A client that leaves while PostgreSQL answers `BEGIN` must not leave a transaction behind: the next write on
/// that connection would be acknowledged and lost.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_leave_mid_change_leave_no_transaction_open() {
    let app = TestApp::start().await;
    let create = "mutation($o: Id!, $i: CreateSkillInput!) { createSkill(orgId: $o, input: $i) { id } }";
    let new = json!({ "o": app.org, "i": { "name": "manners", "content": "Say please." } });
    let skill = app.owner.gql(create, new).await.data()["createSkill"]["id"].as_i64().unwrap();
    let path = format!("/v1/org/{}/skill/{skill}", app.org);
    for burst in 0..25_u64 {
        let leaving = (0..16_u64).map(|n| {
            let patience = Duration::from_micros((burst * 16 + n) * 97 % 39_000);
            timeout(patience, app.owner.patch(&path, json!({ "description": format!("{burst} {n}") })))
        });
        join_all(leaving).await;
        if is_postgres() {
            until_no_transaction_is_open(&app).await;
        }
    }
    app.owner.patch(&path, json!({ "description": "the last" })).await.expect(200);
    // Checked through another connection: acknowledged changes are there, each with its entry.
    let stored = "SELECT description FROM skills WHERE id = $1";
    assert_eq!(app.one::<String>(stored, vec![skill.into()]).await, "the last");
    let line = "SELECT changes FROM audit_lines WHERE operation = 'updateSkill' ORDER BY id DESC LIMIT 1";
    assert_eq!(app.one::<Value>(line, vec![]).await["description"]["after"], "the last");
}

/// A refused command ends like this: its transaction was dropped without a rollback.
#[test]
fn a_transaction_dropped_at_the_very_end_closes_its_connection() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let app = runtime.block_on(async {
        let url = empty_database(folder.path()).await;
        let app = muster::service::open(config(folder.path(), &url), Options::default()).await.unwrap();
        app.db.migrate().await.unwrap();
        drop(Scope::system(&app, OrgId(1)).begin().await.unwrap());
        app
    });
    drop(runtime);
    drop(app);
}

#[tokio::test(flavor = "multi_thread")]
async fn once_a_stopping_service_finishes_what_it_began() {
    let (program, tenant, mut serving) = impatient(&[("MUSTER_LIMITS_REQUEST_TIMEOUT_SECONDS", "60")]);
    let body = r#"{"name":"begun before"}"#;
    let mut client = TcpStream::connect(serving.address()).await.unwrap();
    let head = format!(
        "POST /v1/org/{}/server HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nexpect: 100-continue\r\n\r\n",
        tenant.org,
        tenant.token,
        body.len()
    );
    client.write_all(head.as_bytes()).await.unwrap();
    // The service asks for the body, so the request has begun.
    let mut begun = [0; 25];
    timeout(PATIENCE, client.read_exact(&mut begun)).await.expect("it begins").unwrap();
    assert_eq!(&begun, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(&body.as_bytes()[..5]).await.unwrap();
    serving.terminate();
    until("no new connections are accepted", async || TcpStream::connect(serving.address()).await.is_err())
        .await;
    client.write_all(&body.as_bytes()[5..]).await.unwrap();
    let heard = rest(&mut client).await.unwrap();
    assert!(heard.starts_with("HTTP/1.1 201"), "{heard}");
    assert_eq!(serving.ended().await, Some(0));
    // Another process that opens the database finds it, with its entry.
    let again = program.serve();
    let list =
        again.actor(&tenant).get(&format!("/v1/org/{}/server?page=1&limit=5", tenant.org)).await.expect(200);
    assert_eq!(list["data"][0]["name"], "begun before");
}

/// A proxy has sent these requests, so it does not send them to another replica.
#[tokio::test(flavor = "multi_thread")]
async fn once_a_stopping_service_answers_what_was_sent_before() {
    let (_program, tenant, mut serving) = impatient(&[]);
    let body = r#"{"name":"sent before"}"#;
    let request = format!(
        "POST /v1/org/{}/server HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        tenant.org,
        tenant.token,
        body.len()
    );
    serving.pause(true);
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = TcpStream::connect(serving.address()).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        clients.push(client);
    }
    serving.terminate();
    serving.pause(false);
    for client in &mut clients {
        let heard = rest(client).await.unwrap();
        assert!(heard.starts_with("HTTP/1.1 "), "{heard}");
    }
    assert_eq!(serving.ended().await, Some(0));
}

#[tokio::test]
async fn documents_made_to_be_expensive_are_refused_fast() {
    let app = TestApp::start().await;
    app.agent().await;
    let o = app.org;
    let list =
        |inner: &str| format!("{{ agents(orgId: {o}, page: 1, limit: 200) {{ data {{ {inner} }} }} }}");
    let deep = (0..40).fold("id".to_owned(), |inner, _| format!("channels {{ agent {{ {inner} }} }}"));
    let aliases: String = (0..3_000).map(|n| format!("a{n}: id ")).collect();
    let roots: String =
        (0..500).map(|n| format!("r{n}: agents(orgId: {o}, page: 1, limit: 200) {{ total }} ")).collect();
    let circle = format!("{} fragment A on Agent {{ ...B }} fragment B on Agent {{ ...A }}", list("...A"));
    let doubling: String = (0..40)
        .map(|n| format!("fragment F{n} on Agent {{ ...F{m} ...F{m} }} ", m = n + 1))
        .chain(["fragment F40 on Agent { id }".to_owned()])
        .collect();
    // Each is as deep as the parser lets fragments nest, so that only their number is wrong.
    let doubled = |ty: &str, leaf: &str| -> String {
        (0..30)
            .map(|n| format!("fragment D{n} on {ty} {{ ...D{m} ...D{m} }} ", m = n + 1))
            .chain([format!("fragment D30 on {ty} {{ {leaf} }}")])
            .collect()
    };
    let hidden: String = (0..90).map(|n| format!("h{n}: viewer {{ __typename }} ")).collect();
    let introspection: String = (0..30)
        .map(|n| format!("s{n}: __schema {{ types {{ description fields {{ description type {{ description }} }} }} }} "))
        .collect();
    let documents = [
        list(&deep),
        list(&aliases),
        format!("{{ {roots} }}"),
        circle,
        format!("{} {doubling}", list("...F0")),
        format!("{} {}", list("...D0"), doubled("Agent", "id")),
        format!("{{ ...D0 }} {}", doubled("Query", "__typename")),
        format!("{{ __schema {{ ...D0 }} }} {}", doubled("__Schema", "__typename")),
        format!("{{ ... on Query {{ {hidden} }} }}"),
        format!("{{ {} }} fragment H on Query {{ {hidden} }}", "...H ".repeat(29)),
        format!("{{ {introspection} }}"),
        list(&"id ".repeat(40_000)),
        "{".repeat(60_000),
        format!("query({}) {{ __typename }}", (0..5_000).map(|n| format!("$v{n}: Int ")).collect::<String>()),
        list(&format!("id {}", "@skip(if: false) ".repeat(2_000))),
    ];
    for (n, document) in documents.iter().enumerate() {
        // Executed, they would take hours, and this would not be answered.
        let answer = app.owner.gql(document, json!({})).await;
        let shown: String = document.chars().take(80).collect();
        assert!(answer.body["errors"][0].is_object(), "{n} was answered: {shown}");
        assert!(answer.body["data"].is_null(), "{n} was run: {shown}");
    }
    let many: Vec<Value> = (0..200).map(|_| json!({ "query": "{ __typename }" })).collect();
    assert_eq!(app.owner.post("/graphql", json!(many)).await.code(), "QUERY_TOO_COMPLEX");
    let huge = json!({ "query": "query($v: Int) { __typename }", "variables": { "v": "x".repeat(2 << 20) } });
    assert_eq!(app.owner.post("/graphql", huge).await.status, 413);
    let nested = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let answer =
        app.owner.gql("query($v: [Int]) { __typename @skip(if: false) }", json!({ "v": nested })).await;
    assert!(answer.status < 500);
}

/// A service that has time for large answers, as long as the client waits for them.
async fn patient() -> TestApp {
    TestApp::start_with(|config| config.limits.request_timeout_seconds = PATIENCE.as_secs()).await
}

/// Twenty agents on one server with descriptions of this many bytes, which a query for each other's
/// descriptions multiplies. Answers with one of them.
async fn multiplying(app: &TestApp, bytes: usize) -> i64 {
    let agent = app.agent().await;
    let more = "INSERT INTO agents (organization_id, server_id, image_id, name, name_folded, created_at, updated_at) \
                SELECT organization_id, server_id, image_id, name || $2, name_folded || $2, created_at, updated_at FROM agents WHERE id = $1";
    for n in 1..20 {
        app.execute(more, vec![agent.into(), format!(" {n}").into()]).await;
    }
    app.execute("UPDATE agents SET description = $1", vec!["x".repeat(bytes).into()]).await;
    agent
}

#[tokio::test]
async fn multiplying_relations_are_bounded_across_root_fields() {
    let app = patient().await;
    // 20 × 20 × 64 KiB.
    multiplying(&app, 64 << 10).await;
    let multiplied = "server { agents { description } }";
    let root = |alias: &str| {
        format!("{alias}: agents(orgId: {}, page: 1, limit: 200) {{ data {{ {multiplied} }} }}", app.org)
    };
    let alone = app.viewer.gql(&format!("{{ {} }}", root("a")), json!({})).await;
    assert!(alone.text.len() > 20 << 20 && alone.body["errors"].is_null(), "{}", alone.text.len());
    let together: String = ["a", "b", "c", "d"].map(root).concat();
    let together = app.viewer.gql(&format!("{{ {together} }}"), json!({})).await;
    assert_eq!(together.code(), "QUERY_TOO_COMPLEX");
    assert!(together.text.len() < 70 << 20, "{}", together.text.len());
    // A fragment at the root, or a duplicate key, takes no extra room.
    for document in [format!("{{ ... on Query {{ {} }} }}", root("a")), format!("{{ {0} {0} }}", root("a"))] {
        assert_eq!(app.viewer.gql(&document, json!({})).await.text, alone.text);
    }
}

#[tokio::test]
async fn a_batch_shares_the_budget_of_one_request() {
    let app = patient().await;
    let agent = multiplying(&app, 64 << 10).await;
    let large = format!(
        "{{ agents(orgId: {}, page: 1, limit: 200) {{ data {{ server {{ agents {{ description }} }} }} }} }}",
        app.org
    );
    let start = format!("mutation {{ startAgent(orgId: {}, id: {agent}) {{ status }} }}", app.org);
    let mut batch = vec![json!({ "query": large }); 9];
    batch.push(json!({ "query": start }));
    let answer = app.operator.post("/graphql", json!(batch)).await;
    let answers = answer.body.as_array().unwrap();
    let whole = answers.iter().filter(|answer| answer.to_string().len() > 20 << 20).count();
    let codes: Vec<&Value> = answers
        .iter()
        .map(|answer| &answer["errors"][0]["extensions"]["code"])
        .filter(|code| !code.is_null())
        .collect();
    assert_eq!((whole, codes), (2, vec![&json!("QUERY_TOO_COMPLEX"); 7]));
    assert!(answer.text.len() < 65 << 20, "{}", answer.text.len());
    let refused = answers.iter().find(|answer| !answer["errors"].is_null()).unwrap();
    let told = refused["errors"][0]["message"].as_str().unwrap();
    assert!(told.contains("one batch") && told.contains("Ask for less at once"), "{told}");
    // The result of a change is always reported.
    assert_eq!(answers[9]["data"]["startAgent"]["status"], "SPAWNING");
    let theirs =
        app.stranger.post("/graphql", json!([{ "query": large }, { "query": "{ __typename }" }])).await;
    assert_eq!(theirs.body[0]["errors"][0]["extensions"]["code"], "NOT_A_MEMBER");
    assert_eq!(theirs.body[1]["data"]["__typename"], "Query");
}
