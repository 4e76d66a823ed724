//! The primary of two PostgreSQL servers dies or hangs, and its standby takes over: every acknowledged change is there,
//! and the service continues without a restart.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::time::timeout;

use super::database::{nothing_is_lost_or_halved, start};
use crate::harness::{Actor, Crew, PATIENCE, Postgres, Program, Socket, until};

/// The URL that lists both.
fn listed(servers: [&Postgres; 2]) -> String {
    let folder = |server: &Postgres| server.socket().parent().unwrap().display().to_string();
    let [one, two] = servers.map(|server| folder(server).replace('/', "%2F"));
    format!("postgres://postgres@{one}:5432,{two}:5432/postgres")
}

/// Waits until changes that `actor` makes reach a subscriber on this socket, to another replica. While the database is
/// away a subscription ends with UNAVAILABLE, and clients subscribe again.
pub async fn reaches(client: &mut Socket, actor: &Actor, org: i64, round: &str) {
    let changes = "subscription($o: Id!) { changes(orgId: $o, kinds: [SKILL]) { kind id op } }";
    let create = "mutation($o: Id!, $n: String!) { createSkill(orgId: $o, input: { name: $n, content: \"c\" }) { id } }";
    let begun = Instant::now();
    for n in 0.. {
        assert!(begun.elapsed() < PATIENCE, "no change arrives {round}");
        let name = format!("{round} {n}");
        client.subscribe(&name, changes, json!({ "o": org })).await;
        let made = actor.gql(create, json!({ "o": org, "n": name })).await.data();
        let arrives = async {
            loop {
                let next = client.next().await;
                assert!(next["closed"].is_null(), "{next}");
                if next["payload"]["data"]["changes"]["id"] == made["createSkill"]["id"] {
                    break;
                }
            }
        };
        // The other replica may only just have started listening.
        if timeout(Duration::from_secs(1), arrives).await.is_ok() {
            return;
        }
    }
}

async fn is_replaced(take_away: impl FnOnce(&Postgres)) {
    let primary = Postgres::start();
    let standby = primary.standby().await;
    let program = Program::new(&[
        ("MUSTER_DATABASE_URL", &listed([&primary, &standby])),
        ("MUSTER_LIMITS_REQUEST_TIMEOUT_SECONDS", "4"),
        ("MUSTER_LOG", "off"),
    ]);
    let tenant = program.tenant();
    let (first, second) = (program.serve(), program.serve());
    let actor = first.actor(&tenant);
    let session = program.json(&["session", "create", "--email", "a@example.org"]);
    let owner = actor.with_bearer(session["access_token"].as_str().unwrap());
    let crew = Crew::hired(&owner, tenant.org, "rack", None, &[]).await;
    let mut client = Socket::of(&second.actor(&tenant)).await;
    reaches(&mut client, &actor, tenant.org, "before").await;
    let (heard, writers) = start(&actor, &tenant, 8, usize::MAX);
    until("work", async || heard.made() > 100).await;

    take_away(&primary);
    let gone = Instant::now();
    standby.promote();
    let before = heard.made();
    until("work again", async || heard.made() > before).await;
    eprintln!("after the end of the primary: the first change in {:?}", gone.elapsed());
    reaches(&mut client, &actor, tenant.org, "after").await;
    eprintln!("after the end of the primary: a change reaches the other replica in {:?}", gone.elapsed());
    until("more work", async || heard.made() > before + 100).await;
    // Its host is connected.
    crew.started(&owner, tenant.org).await;
    heard.stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    assert!(heard.refused.load(Ordering::Relaxed) > 0);
    nothing_is_lost_or_halved(&standby.url(), &heard).await;
    let verified = program.json(&["audit", "verify"]);
    assert_eq!(verified["ok"], true, "{verified:#}");
    let doctor = program.run(&["doctor"]).text;
    let primaries: Vec<&str> = doctor.lines().filter(|line| line.ends_with(" is the primary")).collect();
    let expected = format!("ok   database server: {} is the primary", standby.socket().display());
    assert_eq!(primaries, [expected], "{doctor}");
}

#[tokio::test(flavor = "multi_thread")]
async fn once_a_standby_replaces_a_killed_primary() {
    is_replaced(Postgres::kill).await;
}

/// Its connections stay open, and new ones are accepted and get no answer.
#[tokio::test(flavor = "multi_thread")]
async fn once_a_standby_replaces_a_hanging_primary() {
    is_replaced(|primary| primary.pause(true)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn once_a_url_that_asks_for_the_primary_gets_no_standby() {
    let primary = Postgres::start();
    let standby = primary.standby().await;
    drop(primary);
    let url = format!("{}&target_session_attrs=read-write", standby.url());
    let program = Program::new(&[("MUSTER_DATABASE_URL", &url), ("MUSTER_LOG", "off")]);
    let said = program.run(&["org", "list", "--json"]).refused(1, "FAILED");
    assert!(said.contains("no PostgreSQL server can be written") && said.contains("a standby"), "{said}");
    // Otherwise one server may be a standby, from which commands can read.
    let program = Program::new(&[("MUSTER_DATABASE_URL", &standby.url()), ("MUSTER_LOG", "off")]);
    let said = program.run(&["org", "list", "--json"]).refused(1, "FAILED");
    assert!(said.contains("no Muster tables"), "{said}");
}
