//! Servers, images, agents, channels and contacts.

use std::collections::HashSet;

use super::{
    Volume,
    bulk::{Bulk, Cell, Sheet},
};
use muster_corpus::{Random, TOPICS, Topic, person};

use crate::{
    base::{folding, ids::OrgId, time::DAY_MS},
    core::store::sql::{InstallationSql, installation_sql},
};

/// The agents, channels and contacts from which conversations choose.
pub struct Fleet {
    /// The number of servers created.
    pub servers: u64,
    pub agents: Vec<Agent>,
    pub channels: Vec<Channel>,
    /// The people on the other side of the channels.
    pub contacts: Vec<Contact>,
}

pub struct Agent {
    pub id: i64,
    pub server: i64,
    /// Its field of work.
    pub topic: &'static Topic,
    pub model: &'static str,
}

pub struct Channel {
    pub id: i64,
    pub agent: usize,
    pub transport: &'static str,
}

/// A contact with an address on one channel.
pub struct Contact {
    pub id: i64,
    pub identity: i64,
    pub channel: usize,
    pub name: String,
}

const MODELS: &[&str] = &["large-2", "large-2-thinking", "medium-3", "small-3", "local-70b"];
const REGIONS: &[&str] = &["eu-central", "eu-west", "us-east", "ap-south"];
const TRANSPORTS: &[(u64, &str)] = &[
    (28, "EMAIL"),
    (22, "SLACK"),
    (18, "TELEGRAM"),
    (10, "DISCORD"),
    (10, "WEBHOOK"),
    (8, "CODE_HOST"),
    (2, "DRIVE"),
    (2, "CALENDAR"),
];

/// Creates the whole fleet.
pub async fn create(
    bulk: &mut Bulk,
    org: OrgId,
    volume: &Volume,
    mut random: Random,
) -> anyhow::Result<Fleet> {
    let mut fleet = Fleet { servers: 0, agents: Vec::new(), channels: Vec::new(), contacts: Vec::new() };
    if volume.agents == 0 {
        return Ok(fleet);
    }
    let began = volume.until.0 - 400 * DAY_MS;
    let servers = servers(bulk, org, volume, began, &mut random).await?;
    fleet.servers = servers.len() as u64;
    let images = images(bulk, org, began).await?;
    fleet.agents = agents(bulk, org, volume, (&servers, &images), &mut random).await?;
    fleet.channels = channels(bulk, org, volume, &fleet.agents, &mut random).await?;
    if volume.conversations > 0 {
        fleet.contacts = contacts(bulk, org, volume, &fleet.channels, &mut random).await?;
    }
    widen(bulk, org).await?;
    Ok(fleet)
}

/// Raises plan limits that the data exceeds, so that the organization's record stays consistent.
async fn widen(bulk: &mut Bulk, org: OrgId) -> anyhow::Result<()> {
    let agents = installation_sql!(
        "UPDATE organizations SET contracted_agents = (SELECT COUNT(*) FROM agents a \
         WHERE a.organization_id = $1 AND a.archived_at IS NULL) \
         WHERE id = $1 AND (SELECT COUNT(*) FROM agents a WHERE a.organization_id = $1 AND a.archived_at IS NULL) \
         > COALESCE(contracted_agents, (SELECT p.max_agents FROM plans p WHERE p.plan = organizations.plan))"
    );
    let servers = installation_sql!(
        "UPDATE organizations SET max_servers_override = (SELECT COUNT(*) FROM servers s \
         WHERE s.organization_id = $1) WHERE id = $1 AND (SELECT COUNT(*) FROM servers s WHERE s.organization_id = $1) \
         > COALESCE(max_servers_override, (SELECT p.max_servers FROM plans p WHERE p.plan = organizations.plan))"
    );
    bulk.run(agents, [org.into()]).await?;
    bulk.run(servers, [org.into()]).await
}

async fn servers(
    bulk: &mut Bulk,
    org: OrgId,
    volume: &Volume,
    began: i64,
    random: &mut Random,
) -> anyhow::Result<Vec<i64>> {
    let sql = installation_sql!("SELECT name FROM servers WHERE organization_id = $1");
    let mut taken = names(bulk, sql, org).await?;
    let ids = bulk.ids("servers", volume.agents.div_ceil(25) as usize).await?;
    let mut sheet = Sheet::new(
        "servers",
        &[
            "organization_id",
            "id",
            "name",
            "name_folded",
            "description",
            "hostname",
            "address",
            "region",
            "labels",
            "status",
            "version",
            "protocol_version",
            "os",
            "arch",
            "cpu_cores",
            "memory_mb",
            "disk_mb",
            "cpu_pct",
            "ram_pct",
            "load_1",
            "load_5",
            "load_15",
            "uptime_seconds",
            "runtime",
            "runtime_version",
            "provisioned_at",
            "last_seen_at",
            "created_at",
            "updated_at",
        ],
    );
    for &id in &ids {
        let region = random.pick(REGIONS);
        let name = free(&mut taken, &format!("{region}-{}", 1 + random.below(4)));
        let cores = random.pick(&[4, 8, 16, 32]);
        let load = random.between(5, 85) as f64 * f64::from(cores as i32) / 100.0;
        let seen = volume.until.0 - random.between(500, 20_000);
        let made = began + random.between(0, 30 * DAY_MS);
        sheet.push([
            org.0.into(),
            id.into(),
            name.clone().into(),
            folding::name(&name).into(),
            "Runs agents.".into(),
            format!("{name}.example.net").into(),
            format!("10.20.{}.{}", random.below(250), 1 + random.below(250)).into(),
            region.into(),
            format!(r#"{{"region":"{region}","tier":"{}"}}"#, random.pick(&["production", "staging"])).into(),
            server_status(volume, random).into(),
            "0.1.0".into(),
            1.into(),
            "linux".into(),
            (random.pick(&["x86_64", "aarch64"])).into(),
            cores.into(),
            (cores * 4096).into(),
            (cores * 51_200).into(),
            (random.between(20, 930) as f64 / 10.0).into(),
            (random.between(150, 910) as f64 / 10.0).into(),
            load.into(),
            (load * 0.9).into(),
            (load * 0.8).into(),
            random.between(3_600, 8_000_000).into(),
            (random.pick(&["DOCKER", "PODMAN"])).into(),
            "28.1".into(),
            made.into(),
            seen.into(),
            made.into(),
            seen.into(),
        ]);
    }
    bulk.write(&mut sheet).await?;
    Ok(ids)
}

fn server_status(volume: &Volume, random: &mut Random) -> &'static str {
    let status = random.weighted(&[(8, "ONLINE"), (1, "DEGRADED"), (1, "OFFLINE")]);
    if volume.at_rest { "OFFLINE" } else { status }
}

/// The organization's images; creates three if it has none.
async fn images(bulk: &mut Bulk, org: OrgId, began: i64) -> anyhow::Result<Vec<i64>> {
    let sql = installation_sql!(
        "SELECT id FROM images WHERE organization_id = $1 AND archived_at IS NULL ORDER BY id"
    );
    let known = bulk.column(sql, [org.into()]).await?;
    if !known.is_empty() {
        return Ok(known);
    }
    let ids = bulk.ids("images", 3).await?;
    let mut sheet = Sheet::new(
        "images",
        &[
            "organization_id",
            "id",
            "name",
            "name_folded",
            "reference",
            "description",
            "default_model",
            "created_at",
            "updated_at",
        ],
    );
    for (&id, (name, about)) in ids.iter().zip([
        ("general", "Everything that an agent needs to talk and to call tools."),
        ("developer", "With compilers, a shell and a code host's client."),
        ("office", "With converters for documents and spreadsheets."),
    ]) {
        sheet.push([
            org.0.into(),
            id.into(),
            name.into(),
            folding::name(name).into(),
            format!("registry.example.net/agents/{name}:1.4").into(),
            about.into(),
            MODELS[0].into(),
            began.into(),
            began.into(),
        ]);
    }
    bulk.write(&mut sheet).await?;
    let sql = installation_sql!(
        "UPDATE organizations SET default_image_id = $2 WHERE id = $1 AND default_image_id IS NULL"
    );
    bulk.run(sql, [org.into(), ids[0].into()]).await?;
    Ok(ids)
}

/// How the failed ones ended.
const FAILURE: &str = "Its process ended with exit code 137.";

const AGENT: &[&str] = &[
    "organization_id",
    "id",
    "server_id",
    "image_id",
    "name",
    "name_folded",
    "description",
    "role",
    "status",
    "status_reason",
    "status_detail",
    "launch_generation",
    "status_changed_at",
    "started_at",
    "container_id",
    "last_action",
    "last_action_at",
    "model_credential_type",
    "model_credential_provider",
    "model_override",
    "mode_override",
    "running_model",
    "context_floor_tokens",
    "context_floor_memory_tokens",
    "context_floor_recommended_tokens",
    "context_floor_cap_tokens",
    "analysis_score",
    "effort_override",
    "thinking_enabled",
    "language",
    "response_style",
    "response_format",
    "no_emoji",
    "approval_ask_threshold",
    "approval_block_threshold",
    "approval_timeout_minutes",
    "approval_categories",
    "disabled_tool_groups",
    "memory_mb_override",
    "cpu_override",
    "hub_available",
    "backup_schedule",
    "timezone",
    "last_backup_at",
    "tokens_used",
    "cost_micro",
    "usage_status",
    "usage_rate_limit_type",
    "usage_resets_at",
    "usage_updated_at",
    "sync_pending",
    "created_at",
    "updated_at",
];

async fn agents(
    bulk: &mut Bulk,
    org: OrgId,
    volume: &Volume,
    (servers, images): (&[i64], &[i64]),
    random: &mut Random,
) -> anyhow::Result<Vec<Agent>> {
    let sql = installation_sql!("SELECT name FROM agents WHERE organization_id = $1 AND archived_at IS NULL");
    let mut taken = names(bulk, sql, org).await?;
    let mut sheet = Sheet::new("agents", AGENT);
    let mut agents = Vec::new();
    for (n, id) in bulk.ids("agents", volume.agents as usize).await?.into_iter().enumerate() {
        let topic = &TOPICS[n % TOPICS.len()];
        let agent = Agent { id, server: servers[n % servers.len()], topic, model: random.pick(MODELS) };
        let name = free(&mut taken, random.pick(topic.names));
        sheet.push(agent_row(org, volume, &agent, (name, random.pick(images)), random));
        agents.push(agent);
    }
    bulk.write(&mut sheet).await?;
    Ok(agents)
}

fn agent_row(
    org: OrgId,
    volume: &Volume,
    agent: &Agent,
    (name, image): (String, i64),
    random: &mut Random,
) -> [Cell; 53] {
    let now = volume.until.0;
    let status = match random.weighted(&[(12, "RUNNING"), (5, "STOPPED"), (2, "PAUSED"), (1, "ERROR")]) {
        "RUNNING" | "PAUSED" if volume.at_rest => "STOPPED",
        status => status,
    };
    let (up, failed) = (matches!(status, "RUNNING" | "PAUSED"), status == "ERROR");
    let made = now - random.between(30 * DAY_MS, 390 * DAY_MS);
    let changed = now - random.between(60_000, 20 * DAY_MS);
    let tokens = random.between(0, 90_000_000);
    let floor = random.between(2_000, 18_000);
    let own = random.chance(30);
    let last_action = match status {
        "ERROR" => "EXITED",
        "STOPPED" => "STOP",
        "PAUSED" => "PAUSE",
        _ => "LAUNCH",
    };
    let container = format!("{:016x}{:016x}", random.number(), random.number());
    [
        org.0.into(),
        agent.id.into(),
        agent.server.into(),
        image.into(),
        name.clone().into(),
        folding::name(&name).into(),
        agent.topic.about.into(),
        agent.topic.role.into(),
        status.into(),
        failed.then_some("EXITED").into(),
        failed.then_some(FAILURE).into(),
        random.between(1, 40).into(),
        changed.into(),
        up.then_some(changed).into(),
        up.then_some(container).into(),
        last_action.into(),
        changed.into(),
        own.then_some("API_KEY").into(),
        own.then_some("openai-compatible").into(),
        random.chance(25).then_some(agent.model).into(),
        (agent.id % 9 == 0).then_some("plan").into(),
        up.then_some(agent.model).into(),
        floor.into(),
        (floor / 3).into(),
        12_000.into(),
        32_000.into(),
        random.between(40, 98).into(),
        random.chance(20).then_some("HIGH").into(),
        random.chance(50).into(),
        (random.pick(&["en", "de", "fr", "pl", "pt"])).into(),
        random.weighted(&[(6, "DEFAULT"), (2, "CONCISE"), (1, "FORMAL"), (1, "FRIENDLY")]).into(),
        random.weighted(&[(6, "PROSE"), (3, "MARKDOWN"), (1, "PLAIN")]).into(),
        random.chance(40).into(),
        random.between(20, 60).into(),
        random.between(70, 100).into(),
        (random.pick(&[30, 60, 240, 1440])).into(),
        r#"["payments","destructive"]"#.into(),
        (random.pick(&["[]", r#"["browser"]"#, r#"["shell","browser"]"#])).into(),
        random.chance(20).then_some(4096).into(),
        random.chance(20).then_some(2.5).into(),
        random.chance(30).into(),
        random.weighted(&[(6, "INHERIT"), (3, "DAILY"), (1, "OFF")]).into(),
        (random.pick(&["Europe/Berlin", "Europe/Lisbon", "UTC"])).into(),
        random.chance(60).then_some(now - random.between(0, 2 * DAY_MS)).into(),
        tokens.into(),
        (tokens / 7 * 3).into(),
        random.weighted(&[(9, "ALLOWED"), (1, "ALLOWED_WARNING")]).into(),
        "FIVE_HOUR".into(),
        (now + random.between(60_000, 5 * 3_600_000)).into(),
        (now - random.between(0, 3_600_000)).into(),
        random.chance(10).into(),
        made.into(),
        changed.max(made).into(),
    ]
}

async fn channels(
    bulk: &mut Bulk,
    org: OrgId,
    volume: &Volume,
    agents: &[Agent],
    random: &mut Random,
) -> anyhow::Result<Vec<Channel>> {
    let owners: Vec<usize> = (0..agents.len())
        .flat_map(|agent| std::iter::repeat_n(agent, 1 + usize::from(random.chance(50))))
        .collect();
    let ids = bulk.ids("channels", owners.len()).await?;
    let mut sheet = Sheet::new(
        "channels",
        &[
            "organization_id",
            "id",
            "agent_id",
            "transport",
            "scope",
            "name",
            "name_folded",
            "target",
            "bot_username",
            "email_imap_host",
            "email_imap_port",
            "email_imap_user",
            "email_smtp_host",
            "email_smtp_port",
            "email_smtp_user",
            "email_smtp_from",
            "webhook_outbound_url",
            "code_host_installation_id",
            "code_host_repos",
            "drive_folder_id",
            "drive_folder_name",
            "instructions",
            "is_active",
            "inactive_reason",
            "created_at",
            "updated_at",
            "last_activity_at",
        ],
    );
    let mut channels = Vec::new();
    for (&id, agent) in ids.iter().zip(owners) {
        // The agent of the longest conversation is reached by email, the simplest transport.
        let transport = if channels.is_empty() { "EMAIL" } else { random.weighted(TRANSPORTS) };
        let place = random.pick(&["helpdesk", "office", "team", "partners", "night-shift"]);
        let mail = transport == "EMAIL";
        // Their bots and mailboxes don't exist, so that nothing is sent to them, or asked.
        let inactive = match transport {
            "WEBHOOK" => None,
            "DISCORD" | "DRIVE" | "EMAIL" | "SLACK" | "TELEGRAM" => Some("MANUAL"),
            _ => Some("NOT_SUPPORTED"),
        };
        let bot = matches!(transport, "TELEGRAM" | "DISCORD" | "SLACK").then(|| format!("{place}_{id}_bot"));
        let address = format!("{place}-{id}@example.org");
        let at = volume.until.0 - random.between(40 * DAY_MS, 300 * DAY_MS);
        let name = format!("{place} {}", transport.to_lowercase().replace('_', " "));
        sheet.push([
            org.0.into(),
            id.into(),
            agents[agent].id.into(),
            transport.into(),
            random.weighted(&[(4, "EXTERNAL"), (1, "INTERNAL")]).into(),
            name.clone().into(),
            folding::name(&name).into(),
            bot.clone().map(|bot| format!("@{bot}")).into(),
            bot.into(),
            mail.then_some("imap.example.org").into(),
            mail.then_some(993).into(),
            mail.then(|| address.clone()).into(),
            mail.then_some("smtp.example.org").into(),
            mail.then_some(465).into(),
            mail.then(|| address.clone()).into(),
            mail.then_some(address).into(),
            (transport == "WEBHOOK").then(|| format!("https://hooks.example.org/{id}")).into(),
            (transport == "CODE_HOST").then_some(40_000 + id).into(),
            if transport == "CODE_HOST" { r#"["example/shop","example/infra"]"# } else { "[]" }.into(),
            (transport == "DRIVE").then(|| format!("folder-{id}")).into(),
            (transport == "DRIVE").then_some("Shared documents").into(),
            random.chance(30).then_some("Answer in the language of the sender.").into(),
            inactive.is_none().into(),
            inactive.into(),
            at.into(),
            at.into(),
            (volume.until.0 - random.between(0, 9 * DAY_MS)).into(),
        ]);
        channels.push(Channel { id, agent, transport });
    }
    bulk.write(&mut sheet).await?;
    Ok(channels)
}

async fn contacts(
    bulk: &mut Bulk,
    org: OrgId,
    volume: &Volume,
    channels: &[Channel],
    random: &mut Random,
) -> anyhow::Result<Vec<Contact>> {
    let count = (volume.conversations.div_ceil(2) as usize).max(1);
    let ids = bulk.ids("contacts", count).await?;
    let identities = bulk.ids("identities", count).await?;
    let mut people =
        Sheet::new("contacts", &["organization_id", "id", "name", "name_folded", "created_at", "updated_at"]);
    let mut addresses = Sheet::new(
        "identities",
        &[
            "organization_id",
            "id",
            "contact_id",
            "channel_id",
            "transport",
            "origin_id",
            "origin_id_folded",
            "display_name",
            "display_name_folded",
            "created_at",
            "updated_at",
            "last_seen_at",
        ],
    );
    let mut whitelist =
        Sheet::new("channel_whitelist", &["organization_id", "channel_id", "origin_id", "created_at"]);
    let mut contacts = Vec::new();
    for (&id, &identity) in ids.iter().zip(&identities) {
        let place = contacts.len() % channels.len();
        let (channel, name) = (&channels[place], person(random));
        let at = volume.until.0 - random.between(30 * DAY_MS, 390 * DAY_MS);
        let origin = match channel.transport {
            "EMAIL" => format!("contact-{id}@example.com"),
            "TELEGRAM" => format!("{}", 500_000_000 + id),
            _ => format!("U{id:09}"),
        };
        let folded = folding::name(&name);
        people.push([
            org.0.into(),
            id.into(),
            name.clone().into(),
            folded.clone().into(),
            at.into(),
            at.into(),
        ]);
        addresses.push([
            org.0.into(),
            identity.into(),
            id.into(),
            channel.id.into(),
            channel.transport.into(),
            origin.clone().into(),
            folding::name(&origin).into(),
            name.clone().into(),
            folded.into(),
            at.into(),
            at.into(),
            (volume.until.0 - random.between(0, 20 * DAY_MS)).into(),
        ]);
        whitelist.push([org.0.into(), channel.id.into(), origin.into(), at.into()]);
        contacts.push(Contact { id, identity, channel: place, name });
    }
    bulk.write(&mut people).await?;
    bulk.write(&mut addresses).await?;
    bulk.write(&mut whitelist).await?;
    Ok(contacts)
}

async fn names(bulk: &mut Bulk, sql: InstallationSql, org: OrgId) -> anyhow::Result<HashSet<String>> {
    Ok(bulk.column(sql, [org.into()]).await?.into_iter().collect())
}

/// `name`, or the first free one of `name 2`, `name 3` …
fn free(taken: &mut HashSet<String>, name: &str) -> String {
    let mut numbered = name.to_owned();
    let mut n = 1;
    while !taken.insert(numbered.clone()) {
        n += 1;
        numbered = format!("{name} {n}");
    }
    numbered
}
