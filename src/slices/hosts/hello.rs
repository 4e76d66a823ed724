//! A host says hello: its connection gets an epoch, and it learns what should run.

use muster_protocol::{
    VERSIONS,
    frame::{self, Hello, RefusedCode, Running, Welcome},
};
use sea_orm::QueryResult;

use super::{Ended, Identity, Link, Refusal, join, readable, rows, write};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind, Runtime, ServerStatus},
        ids::ServerId,
        problem::Result,
    },
    core::{Event, access::Scope, outbox, store::Tx},
};

/// How many bytes of events may wait for their acknowledgement.
pub const WINDOW: u32 = 4 << 20;

/// Accepts a connection, or says why not. From its commit on, older connections of the host write nothing.
///
/// # Errors
/// VERSION, TOKEN, JOURNAL_LOST, RESTORED; the database can't be reached.
pub async fn greet(scope: &Scope, who: &Identity, hello: &Hello) -> Result<(Link, Welcome), Ended> {
    let version = common(hello.versions)?;
    let tx = scope.begin().await?;
    let sql = "UPDATE servers SET host_epoch = host_epoch + 1 WHERE organization_id = $1 AND id = $2 \
               AND host_token_hash = $3 AND archived_at IS NULL \
               RETURNING host_epoch, status, machine_id, command_seq, command_ack, event_seq, refused_code";
    let values = vec![scope.org.into(), who.server.into(), who.token.as_bytes().to_vec().into()];
    let Some(row) = rows(&tx, sql, values).await?.into_iter().next() else {
        let reason = "The host's token is no longer valid. Join again with a new provisioning token.";
        return Err(Refusal::new(RefusedCode::Token, reason).into());
    };
    let known = Known::read(&row)?;
    known.check(hello)?;
    let link = Link { scope: scope.clone(), server: who.server, epoch: known.epoch, token: who.token };
    note(&tx, &link, hello, version).await?;
    let agents = desired(&tx, who.server).await?;
    if known.status != ServerStatus::Online || known.was_refused {
        announce(&tx, who.server);
    }
    // An older connection, here or on another replica, learns that it is over.
    outbox::wake_host(&tx, who.server);
    let time = tx.now.0;
    tx.commit().await?;
    let welcome = Welcome { version, epoch: known.epoch, events: known.events, window: WINDOW, time, agents };
    Ok((link, welcome))
}

/// The newest version that both sides speak.
fn common([oldest, newest]: [u16; 2]) -> Result<u16, Refusal> {
    let version = newest.min(VERSIONS[1]);
    if version >= oldest.max(VERSIONS[0]) {
        return Ok(version);
    }
    let older = if newest < VERSIONS[0] { "the host's program" } else { "Muster" };
    let reason = format!(
        "No common version of the protocol: the host speaks {oldest} to {newest}, Muster {} to {}. Upgrade {older}.",
        VERSIONS[0], VERSIONS[1]
    );
    Err(Refusal::new(RefusedCode::Version, reason))
}

/// What the server's row says.
struct Known {
    epoch: i64,
    status: ServerStatus,
    machine_id: Option<String>,
    /// The last number given to a command, and the last one that the host has acknowledged.
    commands: [i64; 2],
    /// The last event stored.
    events: i64,
    /// Whether people are shown that its host was refused.
    was_refused: bool,
}

impl Known {
    fn read(row: &QueryResult) -> Result<Self> {
        Ok(Self {
            epoch: row.try_get_by("host_epoch")?,
            status: row.try_get_by("status")?,
            machine_id: row.try_get_by("machine_id")?,
            commands: [row.try_get_by("command_seq")?, row.try_get_by("command_ack")?],
            events: row.try_get_by("event_seq")?,
            was_refused: row.try_get_by::<Option<String>, _>("refused_code")?.is_some(),
        })
    }

    /// Compares what both sides know of each other: whoever knows less has lost something.
    fn check(&self, hello: &Hello) -> Result<(), Refusal> {
        if self.machine_id.as_deref() != Some(&hello.machine.id) {
            let reason =
                "This token belongs to the host of another folder. Join with a token of this server.";
            return Err(Refusal::new(RefusedCode::Token, reason));
        }
        let [_, acknowledged] = self.commands;
        let what = if hello.commands < acknowledged {
            format!("ends at command {}, but {acknowledged} were acknowledged", hello.commands)
        } else if hello.events < self.events {
            format!("ends at event {}, but {} were reported", hello.events, self.events)
        } else {
            return self.check_own(hello);
        };
        let reason = format!(
            "The host's journal {what}. Commands could run twice, or reports be lost. Stop the host, run \
             `muster host rejoin`, and start it."
        );
        Err(Refusal::new(RefusedCode::JournalLost, reason))
    }

    /// Whether the database knows what the host's journal knows.
    fn check_own(&self, hello: &Hello) -> Result<(), Refusal> {
        let [given, _] = self.commands;
        let what = if hello.commands > given {
            format!("The host has command {}, but only {given} are known to have been sent.", hello.commands)
        } else if hello.acknowledged > self.events {
            format!("Event {} was acknowledged, but only {} are stored.", hello.acknowledged, self.events)
        } else {
            return Ok(());
        };
        let reason = format!(
            "{what} Muster's database was restored from an older backup, and has forgotten what this host did. Stop the \
             host, run `muster host rejoin`, and start it."
        );
        Err(Refusal::new(RefusedCode::Restored, reason))
    }
}

/// Notes what the host says about itself, and which commands it has.
async fn note(tx: &Tx, link: &Link, hello: &Hello, version: u16) -> Result<()> {
    let runtime = match hello.runtime {
        frame::Runtime::Docker => Runtime::Docker,
        frame::Runtime::Podman => Runtime::Podman,
        frame::Runtime::Process => Runtime::Process,
    };
    let runtime_version = hello.runtime_version.as_deref().and_then(|text| readable(text, 64));
    let sql = "UPDATE servers SET os = $4, arch = $5, cpu_cores = $6, memory_mb = $7, disk_mb = $8, version = $9, \
               runtime = $10, runtime_version = $11, protocol_version = $12, host_replica = $13, last_seen_at = $14, \
               command_ack = $15, status = $16, refused_code = NULL, refused_reason = NULL, refused_at = NULL \
               WHERE organization_id = $1 AND id = $2 AND host_epoch = $3";
    let mut values = link.values(join::machine(&hello.machine));
    values.extend([runtime.into(), runtime_version.into(), i64::from(version).into()]);
    values.extend([tx.scope.core.replicas.own_id().into(), tx.now.into()]);
    values.extend([hello.commands.into(), ServerStatus::Online.into()]);
    write(tx, sql, values).await?;
    acknowledge(tx, link.server, hello.commands).await
}

/// Notes that the commands up to this number are in the host's journal.
pub(super) async fn acknowledge(tx: &Tx, server: ServerId, through: i64) -> Result<()> {
    let sql = "UPDATE outbox SET acknowledged_at = $1 WHERE organization_id = $2 AND server_id = $3 \
               AND acknowledged_at IS NULL AND host_seq <= $4";
    write(tx, sql, vec![tx.now.into(), tx.scope.org.into(), server.into(), through.into()]).await?;
    Ok(())
}

/// The agents that should be running on the server by now. One whose launch is still on its way is not among them: the
/// host would take its absence for a loss. Neither is one that is being stopped: its STOP is on the way, or done.
async fn desired(tx: &Tx, server: ServerId) -> Result<Vec<Running>> {
    let sql = "SELECT a.id, a.launch_generation FROM agents a WHERE a.organization_id = $1 AND a.server_id = $2 \
               AND a.archived_at IS NULL AND a.status IN ('SPAWNING', 'RUNNING', 'PAUSED', 'STOPPING') \
               AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.organization_id = a.organization_id \
               AND o.server_id = a.server_id AND o.agent_id = a.id AND o.generation = a.launch_generation \
               AND o.kind IN ('LAUNCH', 'STOP') AND o.acknowledged_at IS NULL) ORDER BY a.id";
    let found = rows(tx, sql, vec![tx.scope.org.into(), server.into()]).await?;
    let running = |row: &QueryResult| -> Result<Running> {
        Ok(Running { agent_id: row.try_get_by("id")?, generation: row.try_get_by("launch_generation")? })
    };
    found.iter().map(running).collect()
}

/// Tells subscribers that the server has changed.
pub(super) fn announce(tx: &Tx, server: ServerId) {
    tx.announce(Event::new(tx.scope.org, ChangeOp::Updated, RecordKind::Server, server));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_common_version_is_spoken_and_a_refusal_says_whom_to_upgrade() {
        assert_eq!(common([1, 1]).unwrap(), 1);
        assert_eq!(common([0, 9]).unwrap(), VERSIONS[1]);
        let newer = common([VERSIONS[1] + 1, VERSIONS[1] + 3]).unwrap_err();
        assert!(newer.reason.contains("Upgrade Muster") && newer.retry_after.is_none(), "{newer:?}");
        let older = common([0, VERSIONS[0] - 1]).unwrap_err();
        assert!(older.reason.contains("Upgrade the host's program"), "{older:?}");
    }
}
