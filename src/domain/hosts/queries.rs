//! SQL of hosts. Every write on behalf of a connection names its epoch.

use muster_protocol::frame::Load;
use sea_orm::Value;

use super::Link;
use crate::{
    base::{
        enums::{HostRefusal, Runtime, ServerStatus},
        ids::{AgentId, ApprovalId, ConversationId, OrgId, ServerId},
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        access::token::TokenHash,
        store::{
            Tx,
            sql::{RunSql as _, RunWritingSql as _, every_org_sql, row, sql},
        },
    },
    domain::commands::MAY_GO,
};

/// The server of a connection that is the current one. `$2` is the server, `$3` the epoch.
const OF_LINK: &str = " WHERE organization_id = $org AND id = $2 AND host_epoch = $3";

fn bytes(token: TokenHash) -> Value {
    token.as_bytes().to_vec().into()
}

row! {
    /// A server of any organization.
    pub(super) struct FoundServer { organization_id: OrgId, id: ServerId }
}

/// The server whose host has this token.
pub(super) async fn server_of_host(core: &Core, token: TokenHash) -> Result<Option<FoundServer>> {
    let sql = every_org_sql!(
        "SELECT organization_id, id FROM servers WHERE host_token_hash = $1 AND archived_at IS NULL"
    );
    core.db.every_org().one(sql, [bytes(token)]).await
}

/// The server that has this provisioning token.
pub(super) async fn server_of_provisioning(core: &Core, token: TokenHash) -> Result<Option<FoundServer>> {
    let sql = every_org_sql!(
        "SELECT organization_id, id FROM servers WHERE provisioning_token_hash = $1 AND archived_at IS NULL"
    );
    core.db.every_org().one(sql, [bytes(token)]).await
}

row! {
    /// The current connection of a server.
    pub(super) struct Connection { host_epoch: i64, host_token_hash: Option<Vec<u8>> }
}

/// The current connection of the link's server.
pub(super) async fn connection(link: &Link) -> Result<Option<Connection>> {
    let sql =
        sql!("SELECT host_epoch, host_token_hash FROM servers WHERE organization_id = $org AND id = $2");
    link.scope.one(sql, [link.server.into()]).await
}

row! {
    /// Whether the host may hold secrets.
    pub(super) struct Trust { host_confirmed_at: Option<Timestamp> }
}

/// How far the host is trusted. `None`: the connection is not the current one, or the agent not on its server.
pub(super) async fn trust(link: &Link, agent: AgentId) -> Result<Option<Trust>> {
    let sql = sql!(
        "SELECT s.host_confirmed_at FROM servers s JOIN agents a \
         ON a.organization_id = s.organization_id AND a.server_id = s.id AND a.archived_at IS NULL \
         WHERE s.organization_id = $org AND s.id = $2 AND s.host_epoch = $3 AND a.id = $4"
    );
    link.scope.one(sql, [link.server.into(), link.epoch.into(), agent.into()]).await
}

/// The conversation, if the connection is the current one, and the conversation that of an agent in its current launch
/// there.
pub(super) async fn conversation_of(
    link: &Link,
    (agent, generation): (AgentId, i64),
    conversation: ConversationId,
) -> Result<Option<ConversationId>> {
    let sql = sql!(
        "SELECT c.id FROM servers s \
         JOIN agents a ON a.organization_id = s.organization_id AND a.server_id = s.id \
         JOIN conversations c ON c.organization_id = a.organization_id AND c.agent_id = a.id \
         WHERE s.organization_id = $org AND s.id = $2 AND s.host_epoch = $3 AND a.id = $4 \
         AND a.launch_generation = $5 AND c.id = $6"
    );
    let values =
        [link.server.into(), link.epoch.into(), agent.into(), generation.into(), conversation.into()];
    link.scope.scalar(sql, values).await
}

/// Those of these agents that are on the server, if the connection is the current one.
pub(super) async fn agents_of(link: &Link, agents: &[AgentId]) -> Result<Vec<AgentId>> {
    let sql = sql!(
        "SELECT a.id FROM servers s JOIN agents a ON a.organization_id = s.organization_id AND a.server_id = s.id \
         WHERE s.organization_id = $org AND s.id = $2 AND s.host_epoch = $3 AND a.archived_at IS NULL \
         AND a.id = ANY($4)"
    );
    let ids: Vec<i64> = agents.iter().map(|agent| agent.0).collect();
    let values = [link.server.into(), link.epoch.into(), link.scope.core.db.keys(&ids)];
    link.scope.column(sql, values).await
}

/// Stores that the host has the commands up to this number. False: the connection is not the current one.
pub(super) async fn store_received(tx: &Tx, link: &Link, through: i64) -> Result<bool> {
    let sql = sql!("UPDATE servers SET command_ack = $4", OF_LINK);
    Ok(tx.execute(sql, [link.server.into(), link.epoch.into(), through.into()]).await? == 1)
}

/// Acknowledges the server's commands up to this number.
pub(super) async fn acknowledge(tx: &Tx, server: ServerId, through: i64) -> Result<()> {
    let sql = sql!(
        "UPDATE commands SET acknowledged_at = $2 WHERE organization_id = $org AND server_id = $3 \
         AND acknowledged_at IS NULL AND host_seq <= $4"
    );
    tx.execute(sql, [tx.now.into(), server.into(), through.into()]).await?;
    Ok(())
}

row! {
    /// A command that the host does not have.
    pub(super) struct WaitingCommand {
        id: i64,
        /// Its number, if it has one.
        host_seq: Option<i64>,
        agent_id: i64,
        generation: i64,
        payload: serde_json::Value,
        expires_at: Timestamp,
    }
}

/// At most `room` of the commands that can be sent after the number `sent`, in their order.
pub(super) async fn waiting(link: &Link, sent: i64, room: i64) -> Result<Vec<WaitingCommand>> {
    let sql = sql!(
        "SELECT c.id, c.host_seq, c.agent_id, c.generation, c.payload, c.expires_at FROM commands c \
         WHERE c.organization_id = $org AND c.server_id = $2 AND c.acknowledged_at IS NULL \
         AND (c.host_seq > $3 OR (c.host_seq IS NULL AND c.expires_at > $4 AND ",
        MAY_GO,
        ")) ORDER BY CASE WHEN c.host_seq IS NULL THEN 1 ELSE 0 END, c.host_seq, c.id LIMIT $5"
    );
    let now = link.scope.core.clock.now();
    link.scope.all(sql, [link.server.into(), sent.into(), now.into(), room.into()]).await
}

/// Reserves `count` numbers for commands, and returns the last one. `None`: the connection is not the current one.
pub(super) async fn reserve_numbers(tx: &Tx, link: &Link, count: i64) -> Result<Option<i64>> {
    let sql = sql!("UPDATE servers SET command_seq = command_seq + $4", OF_LINK, " RETURNING command_seq");
    tx.scalar(sql, [link.server.into(), link.epoch.into(), count.into()]).await
}

/// Numbers a command. False: it is gone, or has a number.
pub(super) async fn number_command(tx: &Tx, command: i64, seq: i64) -> Result<bool> {
    let sql = sql!(
        "UPDATE commands SET host_seq = $2 WHERE organization_id = $org AND id = $3 AND host_seq IS NULL \
         AND acknowledged_at IS NULL"
    );
    Ok(tx.execute(sql, [seq.into(), command.into()]).await? == 1)
}

/// Advances the number of the last event from `before` to `last`. False: the connection is not the current one, or
/// `before` is not the last event.
pub(super) async fn move_events(tx: &Tx, link: &Link, (before, last): (i64, i64)) -> Result<bool> {
    let sql = sql!("UPDATE servers SET event_seq = $4", OF_LINK, " AND event_seq = $5");
    let values = [link.server.into(), link.epoch.into(), last.into(), before.into()];
    Ok(tx.execute(sql, values).await? == 1)
}

/// Those of the agents `$2` that are on the server `$3`.
const ON_SERVER: &str = " FROM agents WHERE organization_id = $org AND id = ANY($2) AND server_id = $3";

/// Those of these agents that are on the server.
pub(super) async fn agents_on(tx: &Tx, server: ServerId, ids: &[i64]) -> Result<Vec<i64>> {
    tx.column(sql!("SELECT id", ON_SERVER), [tx.scope.core.db.keys(ids), server.into()]).await
}

row! {
    /// An agent's launch.
    pub(super) struct Launch { id: i64, launch_generation: i64 }
}

row! {
    /// An agent's launch, and whether its server's host is confirmed.
    pub(super) struct TrustedLaunch { id: i64, launch_generation: i64, host_confirmed_at: Option<Timestamp> }
}

/// The current launches of these agents, as far as they are on the server.
pub(super) async fn launches_on(tx: &Tx, server: ServerId, ids: &[i64]) -> Result<Vec<TrustedLaunch>> {
    let sql = sql!(
        "SELECT id, launch_generation, (SELECT s.host_confirmed_at FROM servers s \
         WHERE s.organization_id = agents.organization_id AND s.id = agents.server_id) AS host_confirmed_at",
        ON_SERVER
    );
    tx.all(sql, [tx.scope.core.db.keys(ids), server.into()]).await
}

/// [`launches_on`], without ended launches.
pub(super) async fn open_launches_on(tx: &Tx, server: ServerId, ids: &[i64]) -> Result<Vec<Launch>> {
    let sql = sql!("SELECT id, launch_generation", ON_SERVER, " AND status NOT IN ('STOPPED', 'ERROR')");
    tx.all(sql, [tx.scope.core.db.keys(ids), server.into()]).await
}

/// The launches that should be running on the server, apart from those whose LAUNCH or STOP the host does not have.
pub(super) async fn desired_launches(tx: &Tx, server: ServerId) -> Result<Vec<Launch>> {
    let sql = sql!(
        "SELECT a.id, a.launch_generation FROM agents a WHERE a.organization_id = $org AND a.server_id = $2 \
         AND a.archived_at IS NULL AND a.status IN ('SPAWNING', 'RUNNING', 'PAUSED', 'STOPPING') \
         AND NOT EXISTS (SELECT 1 FROM commands o WHERE o.organization_id = a.organization_id \
         AND o.server_id = a.server_id AND o.agent_id = a.id AND o.generation = a.launch_generation \
         AND o.kind IN ('LAUNCH', 'STOP') AND o.acknowledged_at IS NULL) ORDER BY a.id"
    );
    tx.all(sql, [server.into()]).await
}

row! {
    /// The server's row at the beginning of an epoch.
    pub(super) struct ServerState {
        host_epoch: i64,
        status: ServerStatus,
        machine_id: Option<String>,
        /// The last number given to a command.
        command_seq: i64,
        /// The last command that the host has acknowledged.
        command_ack: i64,
        /// The last event stored.
        event_seq: i64,
        /// Set if its host was refused.
        refused_code: Option<String>,
    }
}

/// Begins a new epoch of the server's connections. `None`: the token is no longer its host's.
pub(super) async fn begin_epoch(tx: &Tx, server: ServerId, token: TokenHash) -> Result<Option<ServerState>> {
    let sql = sql!(
        "UPDATE servers SET host_epoch = host_epoch + 1 WHERE organization_id = $org AND id = $2 \
         AND host_token_hash = $3 AND archived_at IS NULL \
         RETURNING host_epoch, status, machine_id, command_seq, command_ack, event_seq, refused_code"
    );
    tx.one(sql, [server.into(), bytes(token)]).await
}

/// A host's facts about its machine, as they are stored.
pub(super) struct MachineFacts {
    pub os: Option<String>,
    pub arch: Option<String>,
    pub cpu_cores: Option<i64>,
    pub memory_mb: Option<i64>,
    pub disk_mb: Option<i64>,
    pub version: Option<String>,
}

impl MachineFacts {
    fn values(self) -> [Value; 6] {
        [
            self.os.into(),
            self.arch.into(),
            self.cpu_cores.into(),
            self.memory_mb.into(),
            self.disk_mb.into(),
            self.version.into(),
        ]
    }
}

/// A host's HELLO, as it is stored.
pub(super) struct HelloFacts {
    pub machine: MachineFacts,
    pub runtime: Runtime,
    pub runtime_version: Option<String>,
    /// The version of the protocol in use.
    pub protocol: i64,
    /// The last command in its journal.
    pub commands: i64,
}

/// Stores a host's HELLO. Its server is ONLINE, and no longer refused.
pub(super) async fn store_hello(tx: &Tx, link: &Link, facts: HelloFacts) -> Result<()> {
    let sql = sql!(
        "UPDATE servers SET os = $4, arch = $5, cpu_cores = $6, memory_mb = $7, disk_mb = $8, version = $9, \
         runtime = $10, runtime_version = $11, protocol_version = $12, host_replica = $13, last_seen_at = $14, \
         command_ack = $15, status = $16, refused_code = NULL, refused_reason = NULL, refused_at = NULL",
        OF_LINK
    );
    let mut values: Vec<Value> = vec![link.server.into(), link.epoch.into()];
    values.extend(facts.machine.values());
    values.extend([facts.runtime.into(), facts.runtime_version.into(), facts.protocol.into()]);
    values.extend([tx.scope.core.replicas.own_id().into(), tx.now.into()]);
    values.extend([facts.commands.into(), ServerStatus::Online.into()]);
    tx.execute(sql, values).await?;
    Ok(())
}

row! {
    /// The server's row before a host joined.
    pub(super) struct ServerBeforeJoin {
        name: String,
        provisioning_token_expires_at: Option<Timestamp>,
        host_token_hash: Option<Vec<u8>>,
        machine_id: Option<String>,
        hostname: Option<String>,
        /// Whether the provisioning token confirms the host.
        provisioning_confirms: bool,
    }
}

/// Locks the server's row. `None`: its provisioning token is another one.
pub(super) async fn lock_server(
    tx: &Tx,
    server: ServerId,
    token: TokenHash,
) -> Result<Option<ServerBeforeJoin>> {
    let sql = sql!(
        "UPDATE servers SET host_epoch = host_epoch WHERE organization_id = $org AND id = $2 \
         AND provisioning_token_hash = $3 RETURNING name, provisioning_token_expires_at, host_token_hash, \
         machine_id, hostname, provisioning_confirms"
    );
    tx.one(sql, [server.into(), bytes(token)]).await
}

/// Stores the host's token and its machine.
pub(super) async fn store_host(
    tx: &Tx,
    server: ServerId,
    token: TokenHash,
    (machine_id, hostname): (&str, Option<String>),
    facts: MachineFacts,
) -> Result<()> {
    let sql = sql!(
        "UPDATE servers SET host_token_hash = $3, machine_id = $4, hostname = $5, os = $6, arch = $7, \
         cpu_cores = $8, memory_mb = $9, disk_mb = $10, version = $11, provisioned_at = $12, updated_at = $12 \
         WHERE organization_id = $org AND id = $2"
    );
    let mut values: Vec<Value> = vec![server.into(), bytes(token), machine_id.into(), hostname.into()];
    values.extend(facts.values());
    values.push(tx.now.into());
    tx.execute(sql, values).await?;
    Ok(())
}

/// Stores the address from which a host joins, and when it was confirmed, unless the server has its token already.
pub(super) async fn store_joining(
    tx: &Tx,
    server: ServerId,
    token: TokenHash,
    (from, confirmed_at): (Option<String>, Option<Timestamp>),
) -> Result<()> {
    let sql = sql!(
        "UPDATE servers SET joins = joins + 1, joined_from = $3, host_confirmed_at = $4 \
         WHERE organization_id = $org AND id = $2 AND (host_token_hash IS NULL OR host_token_hash <> $5)"
    );
    tx.execute(sql, [server.into(), from.into(), confirmed_at.into(), bytes(token)]).await?;
    Ok(())
}

/// Ends the connection of a host that rejoins, and clears its refusal. Returns the server's name. `None`: the token or
/// the machine is no longer the server's.
pub(super) async fn end_connection(
    tx: &Tx,
    server: ServerId,
    token: TokenHash,
    machine_id: &str,
) -> Result<Option<String>> {
    let sql = sql!(
        "UPDATE servers SET host_epoch = host_epoch + 1, host_replica = NULL, refused_code = NULL, \
         refused_reason = NULL, refused_at = NULL WHERE organization_id = $org AND id = $2 AND host_token_hash = $3 \
         AND machine_id = $4 AND archived_at IS NULL RETURNING name"
    );
    tx.scalar(sql, [server.into(), bytes(token), machine_id.into()]).await
}

row! {
    /// The last numbers of a server's commands and events.
    pub(super) struct LastNumbers { command_seq: i64, event_seq: i64 }
}

/// The last numbers of the server's commands and events.
pub(super) async fn numbers(tx: &Tx, server: ServerId) -> Result<Option<LastNumbers>> {
    let sql = sql!("SELECT command_seq, event_seq FROM servers WHERE organization_id = $org AND id = $2");
    tx.one(sql, [server.into()]).await
}

row! {
    /// An agent that the organization has or had.
    pub(super) struct KnownAgent {
        id: i64,
        created_at: i64,
        /// Its name, if it is on the server.
        name: Option<String>,
        launch_generation: i64,
    }
}

/// Those of these agents that the organization has or had.
pub(super) async fn known_agents(tx: &Tx, server: ServerId, ids: &[i64]) -> Result<Vec<KnownAgent>> {
    let sql = sql!(
        "SELECT id, created_at, CASE WHEN server_id = $3 THEN name END AS name, launch_generation FROM agents \
         WHERE organization_id = $org AND id = ANY($2) ORDER BY id"
    );
    tx.all(sql, [tx.scope.core.db.keys(ids), server.into()]).await
}

/// Counts the server's commands and events from one again. Commands that were not received yet are sent once more.
pub(super) async fn reset_numbers(tx: &Tx, server: ServerId) -> Result<()> {
    let numbers = sql!(
        "UPDATE servers SET command_seq = 0, command_ack = 0, event_seq = 0 WHERE organization_id = $org AND id = $2"
    );
    tx.execute(numbers, [server.into()]).await?;
    let commands = sql!(
        "UPDATE commands SET host_seq = NULL WHERE organization_id = $org AND server_id = $2 AND acknowledged_at IS NULL"
    );
    tx.execute(commands, [server.into()]).await?;
    Ok(())
}

/// Stores why the server's host was refused. False: it has none.
pub(super) async fn store_refusal(
    tx: &Tx,
    server: ServerId,
    code: HostRefusal,
    reason: &str,
) -> Result<bool> {
    let sql = sql!(
        "UPDATE servers SET refused_code = $3, refused_reason = $4, refused_at = $5 \
         WHERE organization_id = $org AND id = $2 AND host_token_hash IS NOT NULL AND archived_at IS NULL"
    );
    Ok(tx.execute(sql, [server.into(), code.into(), reason.into(), tx.now.into()]).await? == 1)
}

row! {
    /// A server whose load is stored.
    pub(super) struct LoadedServer { name: String, status: ServerStatus, cpu_cores: Option<i64> }
}

/// Stores the load of the server's machine. `None`: the connection is not the current one.
pub(super) async fn store_load(tx: &Tx, link: &Link, load: &Load) -> Result<Option<LoadedServer>> {
    let sql = sql!(
        "UPDATE servers SET cpu_pct = $4, ram_pct = $5, load_1 = $6, load_5 = $7, load_15 = $8, \
         uptime_seconds = $9, last_seen_at = $10",
        OF_LINK,
        " RETURNING name, status, cpu_cores"
    );
    let [one, five, fifteen] = load.load.map_or([None; 3], |loads| loads.map(Some));
    let mut values: Vec<Value> = vec![link.server.into(), link.epoch.into()];
    values.extend([load.cpu_pct.into(), load.ram_pct.into(), one.into(), five.into(), fifteen.into()]);
    values.extend([load.uptime_seconds.into(), tx.now.into()]);
    tx.one(sql, values).await
}

/// Stores the status of the link's server.
pub(super) async fn store_status(tx: &Tx, link: &Link, status: ServerStatus) -> Result<()> {
    let sql = sql!("UPDATE servers SET status = $4", OF_LINK);
    tx.execute(sql, [link.server.into(), link.epoch.into(), status.into()]).await?;
    Ok(())
}

/// A pending alert of the server, of this category.
pub(super) async fn pending_alert(tx: &Tx, server: ServerId, category: &str) -> Result<Option<ApprovalId>> {
    let sql = sql!(
        "SELECT id FROM approvals WHERE organization_id = $org AND server_id = $2 AND kind = 'SERVER_ALERT' \
         AND category = $3 AND status = 'PENDING' LIMIT 1"
    );
    tx.scalar(sql, [server.into(), category.into()]).await
}

row! {
    /// The epoch of a server, and whether commands wait.
    pub(super) struct WatchedServer {
        id: ServerId,
        host_epoch: i64,
        /// Whether there are new commands that can be sent.
        has_commands: bool,
    }
}

/// The epochs and waiting commands of these servers, of any organization.
pub(super) async fn watched(core: &Core, servers: &[i64]) -> Result<Vec<WatchedServer>> {
    let sql = every_org_sql!(
        "SELECT s.id, s.host_epoch, EXISTS (SELECT 1 FROM commands c WHERE c.organization_id = s.organization_id \
         AND c.server_id = s.id AND c.acknowledged_at IS NULL AND c.host_seq IS NULL AND c.expires_at > $1 AND ",
        MAY_GO,
        ") AS has_commands FROM servers s WHERE s.id = ANY($2)"
    );
    core.db.every_org().all(sql, [core.clock.now().into(), core.db.keys(servers)]).await
}

/// Updates `last_seen_at` of these servers, as far as their hosts are connected to this replica.
pub(super) async fn update_last_seen(core: &Core, servers: &[i64]) -> Result<()> {
    let sql = every_org_sql!("UPDATE servers SET last_seen_at = $1 WHERE id = ANY($2) AND host_replica = $3");
    let values = [core.clock.now().into(), core.db.keys(servers), core.replicas.own_id().into()];
    core.db.every_org().execute(sql, values).await?;
    Ok(())
}

row! {
    /// A server that is OFFLINE.
    pub(super) struct OfflineServer { organization_id: OrgId, id: ServerId, host_epoch: i64 }
}

/// Those of these servers that are OFFLINE.
pub(super) async fn offline(core: &Core, servers: &[i64]) -> Result<Vec<OfflineServer>> {
    let sql = every_org_sql!(
        "SELECT organization_id, id, host_epoch FROM servers WHERE status = $1 AND id = ANY($2)"
    );
    core.db.every_org().all(sql, [ServerStatus::Offline.into(), core.db.keys(servers)]).await
}

/// Marks an OFFLINE server ONLINE, with its host connected to this replica. False: it is not OFFLINE, or the connection
/// not the current one.
pub(super) async fn mark_online(tx: &Tx, server: ServerId, epoch: i64) -> Result<bool> {
    let sql = sql!(
        "UPDATE servers SET status = 'ONLINE', host_replica = $4, last_seen_at = $5",
        OF_LINK,
        " AND status = 'OFFLINE'"
    );
    let own = tx.scope.core.replicas.own_id();
    Ok(tx.execute(sql, [server.into(), epoch.into(), own.into(), tx.now.into()]).await? == 1)
}

/// Stores that a connection has ended, unless there is a newer one.
pub(super) async fn store_end(link: &Link) -> Result<()> {
    let sql = every_org_sql!(
        "UPDATE servers SET host_replica = NULL, last_seen_at = $4 WHERE organization_id = $1 AND id = $2 \
         AND host_epoch = $3"
    );
    let core = &link.scope.core;
    let values = [link.scope.org.into(), link.server.into(), link.epoch.into(), core.clock.now().into()];
    core.db.every_org().execute(sql, values).await?;
    Ok(())
}

/// SQL condition: the server's host has been connected. Servers that never had a host keep the status they were given.
const WAS_CONNECTED: &str = "status IN ('ONLINE', 'DEGRADED') AND host_epoch > 0";

/// The times since when a host must have been silent to count as lost.
#[derive(Clone, Copy)]
pub(super) struct SilenceLimits {
    pub silent: Timestamp,
    /// If its connection has ended.
    pub away: Timestamp,
}

/// The servers whose host is lost.
pub(super) async fn gone(core: &Core, limits: SilenceLimits) -> Result<Vec<FoundServer>> {
    let sql = every_org_sql!(
        "SELECT organization_id, id FROM servers WHERE ",
        WAS_CONNECTED,
        " AND (last_seen_at < $1 OR (host_replica IS NULL AND last_seen_at < $2))"
    );
    core.db.every_org().all(sql, [limits.silent.into(), limits.away.into()]).await
}

/// Marks a server OFFLINE if its host is lost. Returns whether it is.
pub(super) async fn mark_offline(tx: &Tx, server: ServerId, limits: SilenceLimits) -> Result<bool> {
    let sql = sql!(
        "UPDATE servers SET status = 'OFFLINE', host_replica = NULL WHERE ",
        WAS_CONNECTED,
        " AND (last_seen_at < $2 OR (host_replica IS NULL AND last_seen_at < $3)) \
         AND organization_id = $org AND id = $4"
    );
    let values = [limits.silent.into(), limits.away.into(), server.into()];
    Ok(tx.execute(sql, values).await? == 1)
}
