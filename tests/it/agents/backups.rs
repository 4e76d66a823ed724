//! Backups of agents' homes: who may make them, when they are due, how many are kept; and one that really comes back.

use std::time::Duration;

use muster::{
    base::ids::BackupId,
    domain::backups::{
        self,
        reports::{self, BackedUp},
    },
};
use muster_protocol::event::EndReason;
use serde_json::{Value, json};

use crate::{
    agents::running::House,
    harness::{Actor, Answer, Crew, Host, TestApp, found},
    organizations::emergency_stop::stop,
};

pub const BACK_UP: &str =
    "mutation($o: Id!, $i: Id!) { backupAgent(orgId: $o, id: $i) { id state cause authorName } }";
pub const RESTORE: &str = "mutation($o: Id!, $i: Id!) { restoreBackup(orgId: $o, id: $i) { restoreState restoreError restoredAt } }";
const DELETE: &str = "mutation($o: Id!, $i: Id!) { deleteBackup(orgId: $o, id: $i) { id } }";
const LIST: &str = "query($o: Id!, $a: Id!) { agentBackups(orgId: $o, agentId: $a, page: 1, limit: 50) { total \
    data { id state cause bytes sha256 error endedAt restoreState restoreError } } agent(orgId: $o, id: $a) { lastBackupAt } }";
const HOUR: Duration = Duration::from_hours(1);

fn done() -> BackedUp {
    BackedUp { bytes: Some(5000), sha256: Some("ab".repeat(32)), error: None }
}

impl Host<'_> {
    async fn back_up(&self) -> i64 {
        let made = self.app.operator.gql(BACK_UP, json!({ "o": self.app.org, "i": self.agent })).await.data();
        made["backupAgent"]["id"].as_i64().unwrap()
    }

    async fn sends(&self, actor: &Actor, mutation: &str, id: i64) -> Answer {
        actor.gql(mutation, json!({ "o": self.app.org, "i": id })).await
    }

    async fn backs_up(&self, id: i64, end: BackedUp) {
        let told = self.tell(async |tx, from| reports::backed_up(tx, from, BackupId(id), end).await);
        told.await.unwrap();
    }

    async fn restores(&self, id: i64, error: Option<String>) {
        let told = self.tell(async |tx, from| reports::restored(tx, from, BackupId(id), error).await);
        told.await.unwrap();
    }

    async fn backups(&self) -> Value {
        self.app.viewer.gql(LIST, json!({ "o": self.app.org, "a": self.agent })).await.data()
    }

    async fn states(&self) -> Vec<String> {
        let list = self.backups().await["agentBackups"]["data"].as_array().unwrap().clone();
        list.iter().map(|backup| backup["state"].as_str().unwrap().to_owned()).collect()
    }

    /// The commands of this kind.
    async fn told(&self, kind: &str) -> Vec<Value> {
        self.commands().await.into_iter().filter(|command| command["kind"] == kind).collect()
    }

    /// Begins what is due, as two replicas at once, and completes it.
    async fn round(&self) -> u64 {
        let (one, two) =
            tokio::join!(backups::schedule_due(&self.app.core), backups::schedule_due(&self.app.core));
        let begun = one.unwrap() + two.unwrap();
        let list = self.backups().await["agentBackups"]["data"].as_array().unwrap().clone();
        for backup in list.iter().filter(|backup| backup["state"] == "PENDING") {
            self.backs_up(backup["id"].as_i64().unwrap(), done()).await;
        }
        begun
    }

    async fn rests(&self) {
        self.act("stop").await;
        self.ended(EndReason::Stopped).await;
    }
}

#[tokio::test]
async fn a_backup_is_made_restored_and_deleted() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let never = app.agent().await;
    assert_eq!(host.sends(&app.operator, BACK_UP, never).await.code(), "AGENT_NOT_RUNNING");
    let id = host.back_up().await;
    assert_eq!(host.told("BACKUP").await, [json!({ "kind": "BACKUP", "backup_id": id })]);
    assert_eq!(host.sends(&app.operator, BACK_UP, host.agent).await.code(), "CONFLICT", "one at a time");
    assert_eq!(host.sends(&app.operator, RESTORE, id).await.code(), "AGENT_ALREADY_RUNNING");
    assert_eq!(host.sends(&app.operator, DELETE, id).await.code(), "CONFLICT");
    host.backs_up(id, done()).await;
    // A repeated report changes nothing.
    host.backs_up(id, BackedUp { bytes: None, sha256: None, error: Some("late".to_owned()) }).await;
    let list = host.backups().await;
    let backup = &list["agentBackups"]["data"][0];
    assert_eq!(
        (&backup["state"], &backup["cause"], &backup["bytes"]),
        (&json!("DONE"), &json!("PERSON"), &json!("5000"))
    );
    assert_eq!(list["agent"]["lastBackupAt"], backup["endedAt"]);
    host.rests().await;
    host.sends(&app.operator, RESTORE, id).await.data();
    let told = json!({ "kind": "RESTORE", "backup_id": id, "sha256": "ab".repeat(32) });
    assert_eq!(host.told("RESTORE").await, [told]);
    assert_eq!(host.sends(&app.operator, RESTORE, id).await.code(), "CONFLICT", "it is being restored");
    assert_eq!(host.sends(&app.operator, DELETE, id).await.code(), "CONFLICT");
    host.restores(id, Some("The backup's\nfile was changed.".to_owned())).await;
    let backup = host.backups().await["agentBackups"]["data"][0].clone();
    assert_eq!(backup["restoreState"], "FAILED");
    assert_eq!(backup["restoreError"], "The backup's file was changed.");
    host.sends(&app.operator, RESTORE, id).await.data();
    host.restores(id, None).await;
    assert_eq!(host.backups().await["agentBackups"]["data"][0]["restoreState"], "DONE");
    host.sends(&app.operator, DELETE, id).await.data();
    assert_eq!(host.told("FORGET").await, [json!({ "kind": "FORGET", "backup_id": id })]);
    assert_eq!(host.sends(&app.operator, DELETE, id).await.code(), "NOT_FOUND");
    assert_eq!(host.backups().await["agentBackups"]["total"], 0);
}

#[tokio::test]
async fn a_stop_keeps_its_backup_and_a_late_launch_its_report() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let id = host.back_up().await;
    let old = host;
    host.rests().await;
    let waiting = "SELECT COUNT(*) FROM commands WHERE kind = 'BACKUP' AND expires_at > $1";
    assert_eq!(app.one::<i64>(waiting, vec![app.clock.now().0.into()]).await, 1);
    let host = host.relaunched().await;
    old.backs_up(id, done()).await;
    assert_eq!(host.states().await, ["DONE"], "a backup belongs to no launch");
}

#[tokio::test]
async fn a_failed_backup_says_why_and_is_not_the_last_one() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let id = host.back_up().await;
    host.backs_up(id, BackedUp { bytes: None, sha256: None, error: Some("The disk is full.".to_owned()) })
        .await;
    let list = host.backups().await;
    assert_eq!(list["agentBackups"]["data"][0]["error"], "The disk is full.");
    assert_eq!(list["agent"]["lastBackupAt"], Value::Null);
    // No host is connected here, and that is what is shown.
    let says = async || -> Option<String> {
        app.one("SELECT status_reason FROM agents WHERE id = $1", vec![host.agent.into()]).await
    };
    assert_eq!(says().await.as_deref(), Some("BACKUP_FAILED"));
    assert_eq!(host.told("FORGET").await.len(), 0, "there is no file");
    host.rests().await;
    let host = host.relaunched().await;
    assert_eq!(says().await.as_deref(), Some("BACKUP_FAILED"), "a restart mends no backup");
    // A host that lies about the digest has made nothing that could be restored.
    let id = host.back_up().await;
    host.backs_up(id, BackedUp { bytes: Some(1), sha256: Some("short".to_owned()), error: None }).await;
    assert_eq!(host.states().await, ["FAILED", "FAILED"]);
    let good = host.back_up().await;
    host.backs_up(good, done()).await;
    assert_eq!(says().await, None);
    host.rests().await;
    assert_eq!(host.sends(&app.operator, RESTORE, id).await.code(), "CONFLICT");
}

#[tokio::test]
async fn missed_times_of_a_schedule_make_one_backup() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    assert_eq!(host.round().await, 0, "no one has asked for backups");
    app.sets_agent(host.agent, json!({ "backupSchedule": "DAILY", "timezone": "Europe/Vienna" })).await;
    app.clock.advance(25 * HOUR);
    assert_eq!(host.round().await, 1, "two replicas make one");
    assert_eq!(host.round().await, 0);
    app.clock.advance(25 * 4 * HOUR);
    assert_eq!(host.round().await, 1, "four days were missed");
    assert_eq!(host.round().await, 0);
    assert_eq!(host.backups().await["agentBackups"]["data"][0]["cause"], "SCHEDULE");
    app.sets_agent(host.agent, json!({ "backupSchedule": "OFF" })).await;
    app.clock.advance(50 * HOUR);
    assert_eq!(host.round().await, 0);
    app.sets_agent(host.agent, json!({ "backupSchedule": "WEEKLY" })).await;
    app.clock.advance(7 * 24 * HOUR);
    assert_eq!(host.round().await, 1);
    app.clock.advance(3 * 24 * HOUR);
    let soon = host.round().await;
    app.clock.advance(4 * 24 * HOUR);
    assert_eq!(soon + host.round().await, 1, "once a week");
}

#[tokio::test]
async fn agents_inherit_a_schedule_within_the_plan() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    app.sets(json!({ "backupCron": "0 * * * *" })).await;
    app.clock.advance(HOUR);
    assert_eq!(host.round().await, 1);
    let sql = "UPDATE organizations SET min_cron_interval_minutes_override = 180 WHERE id = $1";
    app.execute(sql, vec![app.org.into()]).await;
    app.clock.advance(2 * HOUR);
    assert_eq!(host.round().await, 0, "the plan wants three hours between two");
    app.clock.advance(2 * HOUR);
    assert_eq!(host.round().await, 1);
    stop(&app, &app.owner, "fire").await.data();
    app.clock.advance(9 * HOUR);
    assert_eq!(host.round().await, 0, "nothing begins while all is stopped");
    assert_eq!(host.sends(&app.operator, BACK_UP, host.agent).await.code(), "ORGANIZATION_STOPPED");
}

#[tokio::test]
async fn as_many_are_kept_as_the_retention_says_unless_all_are() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let make = async |times: usize| {
        let mut last = Vec::new();
        for _ in 0..times {
            let id = host.back_up().await;
            host.backs_up(id, done()).await;
            last.push(id);
        }
        last
    };
    make(9).await;
    assert_eq!(host.states().await.len(), 7, "no number was set");
    app.sets(json!({ "backupRetention": 4 })).await;
    make(1).await;
    assert_eq!(host.states().await.len(), 4);
    app.sets_agent(host.agent, json!({ "backupRetention": 2 })).await;
    let kept = make(2).await;
    let list = host.backups().await["agentBackups"]["data"].as_array().unwrap().clone();
    let ids: Vec<i64> = list.iter().rev().map(|backup| backup["id"].as_i64().unwrap()).collect();
    assert_eq!(ids, kept, "the newest stay");
    assert_eq!(host.told("FORGET").await.len(), 10, "the host removes the files of the others");
    app.sets_agent(host.agent, json!({ "backupFreeze": true })).await;
    make(3).await;
    assert_eq!(host.states().await.len(), 5);
}

#[tokio::test]
async fn a_host_that_never_answers_is_given_up() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    host.back_up().await;
    app.clock.advance(29 * 24 * HOUR);
    assert_eq!(backups::schedule_due(&app.core).await.unwrap(), 0);
    app.clock.advance(2 * 24 * HOUR);
    assert_eq!(backups::schedule_due(&app.core).await.unwrap(), 1);
    let list = host.backups().await;
    assert_eq!(list["agentBackups"]["data"][0]["error"], "The host did not answer within 30 days.");
    host.back_up().await;
}

#[tokio::test]
async fn a_backup_fails_on_the_host_that_its_agent_has_left() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let complete = host.back_up().await;
    host.backs_up(complete, done()).await;
    host.rests().await;
    host.sends(&app.operator, RESTORE, complete).await.data();
    host.back_up().await;
    app.sets_agent(host.agent, json!({ "description": "It stays where it is." })).await;
    assert_eq!(host.states().await, ["PENDING", "DONE"], "another edit ends nothing");
    let other = app.server().await;
    app.sets_agent(host.agent, json!({ "serverId": other })).await;
    let list = host.backups().await["agentBackups"]["data"].clone();
    let why = "The agent was moved to another server before the host finished.";
    assert_eq!((&list[0]["state"], &list[0]["error"]), (&json!("FAILED"), &json!(why)));
    assert_ne!(list[0]["endedAt"], Value::Null);
    assert_eq!((&list[1]["restoreState"], &list[1]["restoreError"]), (&json!("FAILED"), &json!(why)));
    assert_eq!(list[1]["state"], "DONE", "its file is still there");
    let waiting = "SELECT COUNT(*) FROM commands WHERE kind IN ('BACKUP', 'RESTORE') AND expires_at > $1";
    let now = app.clock.now().0;
    assert_eq!(app.one::<i64>(waiting, vec![now.into()]).await, 0, "the old host is not told");
    let forgets =
        "SELECT COUNT(*) FROM commands WHERE kind = 'FORGET' AND server_id <> $1 AND expires_at > $2";
    assert_eq!(app.one::<i64>(forgets, vec![other.into(), now.into()]).await, 1, "it may have begun");
    let next = host.back_up().await;
    let sent = "SELECT COUNT(*) FROM commands WHERE kind = 'BACKUP' AND server_id = $1";
    assert_eq!(app.one::<i64>(sent, vec![other.into()]).await, 1);
    host.backs_up(next, done()).await;
    assert_eq!(host.states().await, ["DONE", "FAILED", "DONE"]);
}

#[tokio::test]
async fn a_deleted_agents_pending_backup_fails_and_its_file_goes() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    host.rests().await;
    let id = host.back_up().await;
    app.delete_agent(host.agent).await;
    let restore = "mutation($o: Id!, $i: Id!) { restoreAgent(orgId: $o, id: $i) { id } }";
    host.sends(&app.admin, restore, host.agent).await.data();
    let list = host.backups().await["agentBackups"]["data"].clone();
    let why = "The agent was deleted before its host finished.";
    assert_eq!((&list[0]["state"], &list[0]["error"]), (&json!("FAILED"), &json!(why)));
    // The host had begun it.
    host.backs_up(id, done()).await;
    assert_eq!(host.told("FORGET").await.len(), 1);
    assert_eq!(host.states().await, ["FAILED"]);
    host.back_up().await;
    assert_eq!(host.states().await, ["PENDING", "FAILED"]);
}

/// Waits until the newest backup has been made or restored: `field` is its state.
pub async fn until(house: &House, crew: &Crew, field: &str) -> Value {
    let ended = async || {
        let backup = house.gql(LIST, json!({ "a": crew.agent })).await["agentBackups"]["data"][0].clone();
        backup[field].as_str().is_some_and(|state| state != "PENDING").then_some(backup)
    };
    found(ended).await.unwrap_or_else(|| panic!("the host does not answer: {}", crew.machine.log()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_survives_the_death_of_its_host() {
    let (house, mut crew) = House::with_crew("saved").await;
    let conversation = house.says(&crew, "remember the blue jacket").await;
    house.rests(conversation).await;
    let notes = crew.machine.folder().join(format!("agents/{}/home/notes", crew.agent));
    std::fs::write(&notes, "first").unwrap();
    house.gql(BACK_UP, json!({ "i": crew.agent })).await;
    crew.machine.kill();
    crew.machine.run();
    let backup = until(&house, &crew, "state").await;
    assert_eq!(backup["state"], "DONE", "{backup}");
    house.adds(conversation, "remember the green hat").await;
    house.rests(conversation).await;
    std::fs::write(&notes, "second").unwrap();
    house.stops(&crew).await;
    house.gql(RESTORE, json!({ "i": backup["id"] })).await;
    crew.machine.kill();
    crew.machine.run();
    let backup = until(&house, &crew, "restoreState").await;
    assert_eq!(backup["restoreState"], "DONE", "{backup}");
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "first");
    house.starts(&crew).await;
    house.adds(conversation, "recall").await;
    let thread = house.hears(&crew, conversation, "I remember: the blue jacket.").await;
    assert!(!thread.iter().any(|(_, _, said)| said.contains("I remember: the blue jacket, the green hat")));
    house.gql(DELETE, json!({ "i": backup["id"] })).await;
    let folder = crew.machine.folder().join(format!("backups/{}", crew.agent));
    let gone = async || (std::fs::read_dir(&folder).unwrap().count() == 0).then_some(());
    assert!(found(gone).await.is_some(), "the file is still there: {}", crew.machine.log());
}

#[tokio::test]
async fn sqlite_what_fails_for_one_agent_keeps_no_other_waiting() {
    let app = TestApp::start().await;
    // On both sides of the agent in question, whichever comes first.
    let before = app.agent().await;
    let host = app.running_agent().await;
    let after = app.agent().await;
    app.execute("UPDATE agents SET backup_schedule = 'DAILY', launch_generation = 1", vec![]).await;
    let broken = format!(
        "CREATE TRIGGER broken BEFORE INSERT ON agent_backups WHEN NEW.agent_id IN ({before}, {after}) \
         BEGIN SELECT RAISE(ABORT, 'broken'); END"
    );
    app.execute(&broken, vec![]).await;
    app.clock.advance(25 * HOUR);
    backups::schedule_due(&app.core).await.unwrap_err();
    assert_eq!(host.states().await, ["PENDING"]);
    let failed = "SELECT COUNT(*) FROM agent_backups WHERE agent_id <> $1";
    assert_eq!(app.one::<i64>(failed, vec![host.agent.into()]).await, 0);
}
