//! Agents' requests, judged by the rules first: which need no decision, which a person decides, and which are refused.

use std::time::Duration;

use muster::{core::audit, domain::approvals};
use muster_protocol::{DEEPEST, event::Asked};
use serde_json::{Value, json};

use crate::{
    approvals::asked::{question, run, working},
    harness::{TestApp, is_postgres},
};

#[tokio::test]
async fn harmless_actions_pass_and_dangerous_ones_are_refused() {
    let app = TestApp::start().await;
    let work = working(&app).await;
    let read = Asked::Action {
        tool: None,
        tool_kind: "read".to_owned(),
        title: "Read a file".to_owned(),
        input: json!({ "path": "a" }),
    };
    work.asks("1.1", read).await;
    work.asks("1.2", run("reboot")).await;
    let verdict =
        |request: &str, allowed| json!({ "kind": "VERDICT", "request": request, "allowed": allowed });
    assert_eq!(work.verdicts().await, [verdict("1.1", true), verdict("1.2", false)]);
    let approvals: i64 = app.one("SELECT COUNT(*) FROM approvals", vec![]).await;
    assert_eq!((approvals, work.turn_is().await.as_str()), (0, "RUNNING"));
    let said = work.messages().await.remove(1);
    assert_eq!((said.0.as_str(), said.1.as_str()), ("SYSTEM", "ERROR"));
    assert_eq!(said.3, "The action was not allowed, because its risk is 95: Run reboot");
    audit::write_refusals(&app.core, false).await.unwrap();
    let traces: Vec<String> = app
        .column("SELECT CAST(changes AS TEXT) FROM audit_lines WHERE operation = 'judgeAction' ORDER BY id")
        .await;
    let traces: Vec<Value> = traces.iter().map(|trace| serde_json::from_str(trace).unwrap()).collect();
    assert_eq!(
        (&traces[0]["allowed"], &traces[0]["risk"], &traces[0]["rule"]),
        (&json!(true), &json!(10), &json!("read"))
    );
    assert_eq!(
        (&traces[1]["allowed"], &traces[1]["risk"], &traces[1]["rule"]),
        (&json!(false), &json!(95), &json!("power"))
    );
    assert!(!traces[1].to_string().contains("canary") && traces[1]["digest"].as_str().unwrap().len() == 64);
}

#[tokio::test]
async fn refused_actions_do_not_flood_the_audit_log() {
    let app = TestApp::start().await;
    let (one, other) = (working(&app).await, working(&app).await);
    for n in 0..40 {
        one.asks(&format!("1.{n}"), run(&format!("reboot {n}"))).await;
    }
    other.asks("1.1", run("reboot")).await;
    app.sets_agent(other.host.agent, json!({ "disabledToolGroups": ["execute"] })).await;
    other.asks("1.2", run("reboot")).await;
    audit::write_refusals(&app.core, false).await.unwrap();
    let counted = "SELECT count FROM audit_lines WHERE operation = 'judgeAction' ORDER BY count";
    assert_eq!(app.column::<i64>(counted).await, [1, 1, 40], "of each agent, and for each reason");
    one.asks("2.1", run("reboot")).await;
    one.asks("2.2", run("reboot")).await;
    audit::write_refusals(&app.core, false).await.unwrap();
    assert_eq!(app.column::<i64>(counted).await.len(), 3, "the next ones are counted for a minute");
    app.clock.advance(Duration::from_mins(1));
    audit::write_refusals(&app.core, false).await.unwrap();
    assert_eq!(app.column::<i64>(counted).await, [1, 1, 2, 40]);
}

#[tokio::test]
async fn categories_are_asked_by_a_rule_or_by_the_agent() {
    let app = TestApp::start().await;
    approvals::store_categories(&app.core).await.unwrap();
    approvals::store_categories(&app.core).await.unwrap();
    let work = working(&app).await;
    let query = "mutation($o: Id!, $a: Id!) { updateAgent(orgId: $o, id: $a, input: { \
        approvalCategories: [\"Changing  files\", \"being rude\"] }) { notEnforced } }";
    let edited = app.operator.gql(query, json!({ "o": app.org, "a": work.host.agent })).await.data();
    assert_eq!(edited["updateAgent"]["notEnforced"], json!(["being rude"]));
    let edit = Asked::Action {
        tool: None,
        tool_kind: "edit".to_owned(),
        title: "Edit".to_owned(),
        input: json!({}),
    };
    let id = work.raises("1.1", edit).await;
    let shown = work.approval(id).await;
    assert_eq!(
        (&shown["risk"], &shown["severity"], &shown["request"]["tool"]),
        (&json!(35), &json!("LOW"), &json!("Edit"))
    );
}

#[tokio::test]
async fn the_agents_own_thresholds_count() {
    let app = TestApp::start().await;
    let work = working(&app).await;
    let sql = "UPDATE agents SET approval_ask_threshold = 60, approval_block_threshold = 70 WHERE id = $1";
    app.execute(sql, vec![work.host.agent.into()]).await;
    work.asks("1.1", run("make")).await;
    work.asks("1.2", run("git push")).await;
    work.asks("1.3", run("rm -rf build")).await;
    let verdicts: Vec<_> = work.verdicts().await.iter().map(|verdict| verdict["allowed"].clone()).collect();
    assert_eq!(verdicts, [json!(true), json!(false)]);
    assert_eq!(app.column::<String>("SELECT request_key FROM approvals").await, ["1.2"]);
}

#[tokio::test]
async fn an_input_too_large_to_show_is_refused() {
    let app = TestApp::start().await;
    let work = working(&app).await;
    let make_with = |more: Value| Asked::Action {
        tool: Some("shell".to_owned()),
        tool_kind: "execute".to_owned(),
        title: "Run make".to_owned(),
        input: json!({ "command": "make", "more": more }),
    };
    let make = |kib: usize| make_with(json!("x".repeat(kib * 1024)));
    work.asks("1.1", make(256)).await;
    assert_eq!(work.verdicts().await, [json!({ "kind": "VERDICT", "request": "1.1", "allowed": false })]);
    let said = work.messages().await.remove(1).3;
    assert_eq!(
        said,
        "The action was not allowed, because a person would have to decide, and its input is longer than the 256 KiB, or nested \
         deeper than the 64 levels, that people are shown: Run make"
    );
    let nested = (0..DEEPEST).fold(Value::Null, |inner, _| json!([inner]));
    work.asks("1.0", make_with(nested)).await;
    assert_eq!(work.verdicts().await.len(), 2, "it can't be shown either");
    assert_eq!(
        (app.one::<i64>("SELECT COUNT(*) FROM approvals", vec![]).await, work.turn_is().await.as_str()),
        (0, "RUNNING")
    );
    let id = work.raises("1.2", make(255)).await;
    let input = work.approval(id).await["request"]["input"].clone();
    assert_eq!(input["more"].as_str().map(str::len), Some(255 * 1024), "all of it is shown");
}

#[tokio::test]
async fn an_agent_cannot_flood_people_with_requests() {
    let app = TestApp::start().await;
    let working = working(&app).await;
    for n in 0..49 {
        working.asks(&format!("r{n}"), run(&format!("rm {n}"))).await;
    }
    working.asks("last", question()).await;
    let waiting = "SELECT COUNT(*) FROM approvals WHERE status = 'PENDING'";
    assert_eq!(app.one::<i64>(waiting, vec![]).await, 50);
    working.asks("more", run("rm everything")).await;
    working.asks("why", question()).await;
    assert_eq!(app.one::<i64>(waiting, vec![]).await, 50);
    let verdicts = working.verdicts().await;
    assert_eq!(verdicts.len(), 2, "{verdicts:?}");
    assert!(verdicts.iter().all(|verdict| verdict["allowed"] == false), "{verdicts:?}");
    let told = "SELECT COUNT(*) FROM messages WHERE kind = 'ERROR' AND content LIKE '%TOO_MANY_REQUESTS%'";
    let told = if is_postgres() { told.replace("content LIKE", "content::text LIKE") } else { told.into() };
    assert_eq!(app.one::<i64>(&told, vec![]).await, 2);
}
