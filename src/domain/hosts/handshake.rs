//! The handshake of a host: its connection gets an epoch, and the host learns which agents should run.

use muster_protocol::{
    VERSIONS,
    frame::{self, Hello, RefusedCode, Running, Welcome},
};

use super::{
    Ended, Identity, Link, Refusal, join,
    queries::{self, HelloFacts, ServerState},
    readable,
};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind, Runtime, ServerStatus},
        ids::ServerId,
        problem::Result,
    },
    core::{Event, access::Scope, store::Tx},
    domain::commands,
};

/// How many bytes of events may wait for their acknowledgement, because no host may fill the memory.
pub const WINDOW: u32 = 4 << 20;

/// Accepts a connection. From its commit on, older connections of the host write nothing.
///
/// # Errors
/// VERSION, TOKEN, JOURNAL_LOST, RESTORED.
pub async fn accept_connection(
    scope: &Scope,
    who: &Identity,
    hello: &Hello,
) -> Result<(Link, Welcome), Ended> {
    let version = common_version(hello.versions)?;
    let tx = scope.begin().await?;
    let Some(known) = queries::begin_epoch(&tx, who.server, who.token).await? else {
        let reason = "The host's token is no longer valid. Join again with a new provisioning token.";
        return Err(Refusal::new(RefusedCode::Token, reason).into());
    };
    known.check_host(hello)?;
    let link = Link { scope: scope.clone(), server: who.server, epoch: known.host_epoch, token: who.token };
    store_hello(&tx, &link, hello, version).await?;
    let agents = desired_launches(&tx, who.server).await?;
    if known.status != ServerStatus::Online || known.refused_code.is_some() {
        announce(&tx, who.server);
    }
    // An older connection, here or on another replica, learns that it has ended.
    commands::wake_host(&tx, who.server);
    let time = tx.now.0;
    tx.commit().await?;
    let (epoch, events) = (known.host_epoch, known.event_seq);
    let welcome = Welcome { version, epoch, events, window: WINDOW, time, agents };
    Ok((link, welcome))
}

/// The newest version that both sides speak.
fn common_version([oldest, newest]: [u16; 2]) -> Result<u16, Refusal> {
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

impl ServerState {
    /// Compares the numbers that both sides know. The side with lower ones has lost data.
    fn check_host(&self, hello: &Hello) -> Result<(), Refusal> {
        if self.machine_id.as_deref() != Some(&hello.machine.id) {
            let reason =
                "This token belongs to the host of another folder. Join with a token of this server.";
            return Err(Refusal::new(RefusedCode::Token, reason));
        }
        let acknowledged = self.command_ack;
        let what = if hello.commands < acknowledged {
            format!("ends at command {}, but {acknowledged} were acknowledged", hello.commands)
        } else if hello.events < self.event_seq {
            format!("ends at event {}, but {} were reported", hello.events, self.event_seq)
        } else {
            return self.check_database(hello);
        };
        let reason = format!(
            "The host's journal {what}. Commands could run twice, or reports be lost. Stop the host, run \
             `muster host rejoin`, and start it."
        );
        Err(Refusal::new(RefusedCode::JournalLost, reason))
    }

    /// Requires that the database is not behind the host's journal.
    fn check_database(&self, hello: &Hello) -> Result<(), Refusal> {
        let (sent, events) = (self.command_seq, self.event_seq);
        let what = if hello.commands > sent {
            format!("The host has command {}, but only {sent} are known to have been sent.", hello.commands)
        } else if hello.acknowledged > events {
            format!("Event {} was acknowledged, but only {events} are stored.", hello.acknowledged)
        } else {
            return Ok(());
        };
        let reason = format!(
            "{what} Muster's database was restored from an older backup, and no longer knows what this host did. Stop the \
             host, run `muster host rejoin`, and start it."
        );
        Err(Refusal::new(RefusedCode::Restored, reason))
    }
}

/// Stores the host's facts, and acknowledges the commands in its journal.
async fn store_hello(tx: &Tx, link: &Link, hello: &Hello, version: u16) -> Result<()> {
    let runtime = match hello.runtime {
        frame::Runtime::Docker => Runtime::Docker,
        frame::Runtime::Podman => Runtime::Podman,
        frame::Runtime::Process => Runtime::Process,
    };
    let facts = HelloFacts {
        machine: join::facts(&hello.machine),
        runtime,
        runtime_version: hello.runtime_version.as_deref().and_then(|text| readable(text, 64)),
        protocol: i64::from(version),
        commands: hello.commands,
    };
    queries::store_hello(tx, link, facts).await?;
    queries::acknowledge(tx, link.server, hello.commands).await
}

/// The agents that should be running on the server by now. An agent whose LAUNCH is still on its way is left out,
/// because the host would report it as lost; so is one whose STOP is on its way.
async fn desired_launches(tx: &Tx, server: ServerId) -> Result<Vec<Running>> {
    let found = queries::desired_launches(tx, server).await?.into_iter();
    Ok(found.map(|launch| Running { agent_id: launch.id, generation: launch.launch_generation }).collect())
}

/// Announces a change of the server to subscribers.
pub(super) fn announce(tx: &Tx, server: ServerId) {
    tx.announce(Event::new(tx.scope.org, ChangeOp::Updated, RecordKind::Server, server));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_common_version_is_used_or_a_side_must_upgrade() {
        assert_eq!(common_version([1, 1]).unwrap(), 1);
        assert_eq!(common_version([0, 9]).unwrap(), VERSIONS[1]);
        let newer = common_version([VERSIONS[1] + 1, VERSIONS[1] + 3]).unwrap_err();
        assert!(newer.reason.contains("Upgrade Muster") && newer.retry_after.is_none(), "{newer:?}");
        let older = common_version([0, VERSIONS[0] - 1]).unwrap_err();
        assert!(older.reason.contains("Upgrade the host's program"), "{older:?}");
    }
}
