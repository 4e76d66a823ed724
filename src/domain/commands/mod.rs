//! Commands for hosts: tasks of an agent's host, written in the transaction of the change that causes them.
//!
//! The gateway ([`hosts`](super::hosts)) sends a server's commands in the order of ids until the host acknowledges
//! them, so an agent's commands arrive in order. A command survives a long absence of its host. One that was not sent
//! by its deadline is dropped; a STOP has none. A row holds ids and never a secret.
//!
//! A commit wakes the [connection](crate::core::hosts::HostConnections) of the host, on any replica.

mod queries;

use std::{sync::Arc, time::Duration};

use muster_protocol::Command;
use serde_json::json;

pub use self::queries::{
    MAY_GO, delete_of_server, drop_unsent, expire_backups_of_agent, expire_backups_of_server,
    expire_of_agent, launches_sent, pending_syncs, unsent, waiting,
};
use crate::{
    base::{
        enums::CommandKind,
        ids::{AgentId, ServerId},
        problem::Result,
        time::Timestamp,
    },
    core::store::Tx,
};

/// The deadline of a command that is never too late.
const NEVER: Timestamp = Timestamp(i64::MAX);

/// The recipient of a command: a server's host, and the agent in question.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    pub server: ServerId,
    pub agent: AgentId,
    /// The launch that the command belongs to.
    pub generation: i64,
}

impl From<&Command> for CommandKind {
    fn from(command: &Command) -> Self {
        match command {
            Command::Launch => Self::Launch,
            Command::Stop => Self::Stop,
            Command::Pause => Self::Pause,
            Command::Resume => Self::Resume,
            Command::Turn { .. } => Self::Turn,
            Command::Cancel { .. } => Self::Cancel,
            Command::Answer { .. } => Self::Answer,
            Command::Verdict { .. } => Self::Verdict,
            Command::Sync => Self::Sync,
            Command::TestMcp { .. } => Self::TestMcp,
            Command::Backup { .. } => Self::Backup,
            Command::Restore { .. } => Self::Restore,
            Command::Forget { .. } => Self::Forget,
        }
    }
}

/// Enqueues a command when the transaction commits.
pub fn enqueue(tx: &Tx, to: Host, command: &Command) {
    queries::insert(tx, to, (command.into(), json!(command)), deadline_of(tx.now, command));
    wake_host(tx, to.server);
}

/// When a command expires. A STOP never does: the agents of an unconnected host keep running, and without the STOP they
/// could not be stopped.
fn deadline_of(now: Timestamp, command: &Command) -> Timestamp {
    match command {
        Command::Stop => NEVER,
        // A person waits for the result.
        Command::TestMcp { .. } => now.plus(Duration::from_mins(1)),
        _ => now.plus(Duration::from_hours(30 * 24)),
    }
}

/// Wakes the connection of a server's host after the commit: there are commands for it, or its epoch has ended.
pub fn wake_host(tx: &Tx, server: ServerId) {
    let core = &tx.scope.core;
    let (hosts, hub) = (core.hosts.clone(), Arc::clone(&core.events));
    tx.connection().after_commit(move || {
        hosts.wake(server);
        hub.wake_host(server);
    });
}

/// After the commit, wakes every host of the organization that has waiting commands.
pub async fn wake_hosts(tx: &Tx) -> Result<()> {
    for server in queries::servers_waiting(tx).await? {
        wake_host(tx, server);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_back_and_its_column_says_the_same_kind() {
        let (turn, cancel) = (Command::Turn { turn_id: 1 }, Command::Cancel { turn_id: 1 });
        let answer = Command::Answer { approval_id: 3 };
        let verdict = Command::Verdict { request: "1.2".to_owned(), allowed: true };
        let lifecycle = [Command::Launch, Command::Stop, Command::Pause, Command::Resume, Command::Sync];
        let [backup, restore, forget] = [
            Command::Backup { backup_id: 1 },
            Command::Restore { backup_id: 1, sha256: "00".to_owned() },
            Command::Forget { backup_id: 1 },
        ];
        let test = Command::TestMcp { server_id: 1 };
        let others = [turn, cancel, answer, verdict, test, backup, restore, forget];
        for command in lifecycle.into_iter().chain(others) {
            let stored = serde_json::to_value(&command).unwrap();
            assert_eq!(stored["kind"], CommandKind::from(&command).as_str());
            assert_eq!(serde_json::from_value::<Command>(stored).unwrap(), command);
        }
    }
}
