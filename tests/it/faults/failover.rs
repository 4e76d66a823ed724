//! The primary of two PostgreSQL servers dies or hangs, and its standby takes over: every acknowledged change is there,
//! and the service continues without a restart.

use std::{sync::atomic::Ordering, time::Instant};

use super::database::{nothing_is_lost_or_halved, start};
use crate::harness::{Crew, Postgres, Program, Socket, reaches, until};

/// The URL that lists both.
fn listed(servers: [&Postgres; 2]) -> String {
    let folder = |server: &Postgres| server.socket().parent().unwrap().display().to_string();
    let [one, two] = servers.map(|server| folder(server).replace('/', "%2F"));
    format!("postgres://postgres@{one}:5432,{two}:5432/postgres")
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
    let said = program.run(&["org", "list", "--json"]).refused(1, "UNAVAILABLE");
    assert!(said.contains("no PostgreSQL server can be written") && said.contains("a standby"), "{said}");
    // Otherwise one server may be a standby, from which commands can read.
    let program = Program::new(&[("MUSTER_DATABASE_URL", &standby.url()), ("MUSTER_LOG", "off")]);
    let said = program.run(&["org", "list", "--json"]).refused(1, "NOT_FOUND");
    assert!(said.contains("no Muster tables"), "{said}");
}
