//! Servers and images in the GraphQL schema.

use std::{collections::BTreeMap, sync::LazyLock};

use async_graphql::{Context, Json, Object, SimpleObject};

use muster_profiles::Entry;

use super::agents::Agent;
use crate::{
    base::{
        enums::{ActorKind, HostRefusal, ListSort, RecordKind, Runtime, ServerStatus},
        ids::{Id, ImageId, OrgId, ServerId, UserId},
        permission::Permission,
        time::Timestamp,
    },
    domain::{
        hosts::{self, ServerLoad},
        launch,
        servers::{self, CreateImageInput, CreateServerInput, UpdateImageInput, UpdateServerInput},
    },
    read::{List, Many, One, Page, Record, Rows, Spec},
    resolvers::{
        Answer, Enter, answer,
        bounds::{at_least, bounds, length, range},
        permit::permit,
    },
};

pub struct Server;

impl Record for Server {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            fields(Spec::new("Server", "servers t", "A host on which agents run."))
                .revision(RecordKind::Server)
        });
        &SPEC
    }
}

/// The fields of a server. Answers that carry a token have them too.
fn fields(spec: Spec) -> Spec {
    spec.permission(Permission::ServerView)
        .visible("t.archived_at IS NULL")
        .viewer_can(|scope| scope.permissions_json(&["server"]))
        .column::<ServerId>("id", "Identifies the server.")
        .column::<OrgId>("organization_id", "The organization that the server belongs to.")
        .column::<String>("name", "The name, unique in the organization.")
        .column::<Option<String>>("description", "A description for people.")
        .column::<Option<String>>("hostname", "The host's name.")
        .column::<Option<String>>("address", "The host's address.")
        .column::<Option<String>>("region", "Where it is located.")
        .column::<Json<BTreeMap<String, String>>>(
            "labels",
            "Free-form labels: an object whose values are strings.",
        )
        .column::<ServerStatus>("status", "Whether its host is connected.")
        .embedded::<ServerRefusal>(
            "refusal",
            "(t.refused_code IS NOT NULL)",
            "Why its host was last refused. Null once a connection is accepted again.",
        )
        .embedded::<JoinedHost>(
            "host",
            "(t.host_token_hash IS NOT NULL)",
            "The host that has joined. Null: none has, or a new provisioning token has cut it off.",
        )
        .column::<Option<String>>("version", "The host's version.")
        .column::<Option<i64>>("protocol_version", "The version of the protocol that the host speaks.")
        .column::<Option<String>>("os", "The operating system.")
        .column::<Option<String>>("arch", "The processor's architecture.")
        .column::<Option<i64>>("cpu_cores", "Processor cores.")
        .column::<Option<i64>>("memory_mb", "Memory, in MiB.")
        .column::<Option<i64>>("disk_mb", "Disk, in MiB.")
        .column::<Option<f64>>("cpu_pct", "Processor use in percent, as last measured.")
        .column::<Option<f64>>("ram_pct", "Memory use in percent, as last measured.")
        .column::<Option<f64>>("load_1", "Load average over one minute.")
        .column::<Option<f64>>("load_5", "Load average over five minutes.")
        .column::<Option<f64>>("load_15", "Load average over fifteen minutes.")
        .column::<Option<i64>>("uptime_seconds", "How many seconds the host has been up.")
        .column::<Option<Runtime>>("runtime", "The container runtime that runs the agents.")
        .column::<Option<String>>("runtime_version", "The runtime's version.")
        .sql::<i64>("agent_count", count_agents(""), "The number of agents on it.")
        .sql::<i64>(
            "agents_running",
            count_agents(" AND a.status = 'RUNNING'"),
            "The number of those agents that are running.",
        )
        .sql::<bool>(
            "has_provisioning_token",
            "(t.provisioning_token_hash IS NOT NULL)",
            "Whether it has a provisioning token.",
        )
        .column::<Option<Timestamp>>("provisioning_token_expires_at", "When the provisioning token expires.")
        .column::<Option<Timestamp>>("provisioned_at", "When a host first connected.")
        .column::<Option<Timestamp>>("last_seen_at", "When the host was last heard from.")
        .column::<Option<UserId>>("created_by", "The user who created it.")
        .column::<Timestamp>("created_at", "When it was created.")
        .column::<Timestamp>("updated_at", "When it was last updated.")
        .many::<Agent>("agents", Many { by: "t.server_id", ..Many::default() }, "The agents on it.")
}

fn count_agents(condition: &str) -> String {
    format!(
        "(SELECT COUNT(*) FROM agents a WHERE a.organization_id = t.organization_id \
         AND a.server_id = t.id AND a.archived_at IS NULL{condition})"
    )
}

pub struct ServerRefusal;

impl Record for ServerRefusal {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "Why a server's host was refused, until its cause is fixed.";
            Spec::new("ServerRefusal", "servers t", about)
                .sql::<HostRefusal>("code", "t.refused_code", "The reason, as sent to the host.")
                .sql::<String>("reason", "t.refused_reason", "The reason in words, and what to do about it.")
                .sql::<Timestamp>("at", "t.refused_at", "When it was refused last.")
        });
        &SPEC
    }
}

pub struct JoinedHost;

impl Record for JoinedHost {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "The host that has joined a server. Until it is confirmed it gets no secrets, and agents that need some \
                         don't start on it.";
            Spec::new("JoinedHost", "servers t", about)
                .sql::<i64>("join", "t.joins", "Counts the server's hosts. `confirmHost` names the one that it confirms.")
                .sql::<Option<Timestamp>>(
                    "confirmed_at",
                    "t.host_confirmed_at",
                    "When it was confirmed: as it joined, if a person with server.edit and credential.edit, or the operator, had \
                     made its provisioning token; or later, by such a person. Null: it is not confirmed.",
                )
                .sql::<Timestamp>("joined_at", "t.provisioned_at", "When it joined.")
                .sql::<Option<String>>("joined_from", "t.joined_from", "The address from which it joined.")
                .sql::<Option<String>>(
                    "machine_id",
                    "t.machine_id",
                    "The id that its folder generated. It proves nothing, like everything that a host reports about itself.",
                )
                .sql::<Option<ActorKind>>(
                    "token_made_by_kind",
                    "t.provisioned_by_kind",
                    "The kind of actor who made its provisioning token.",
                )
                .sql::<Option<Id>>(
                    "token_made_by_id",
                    "t.provisioned_by_id",
                    "The id of that user or service token. Null for the operator and the service itself.",
                )
                .sql::<Option<String>>(
                    "token_made_by_name",
                    "t.provisioned_by_name",
                    "That actor's name at the time.",
                )
        });
        &SPEC
    }
}

/// A server together with its provisioning token, which is shown only once.
pub struct ProvisionedServer;

impl Record for ProvisionedServer {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            fields(Spec::new(
                "ProvisionedServer",
                "servers t",
                "A server together with its provisioning token, which is shown only once.",
            ))
            .secret(
                "provisioning_token",
                "The token that lets a host connect as this server. It is not shown again.",
            )
        });
        &SPEC
    }
}

pub struct Image;

impl Record for Image {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("Image", "images t", "A container image that agents run from.")
                .permission(Permission::ImageView)
                .column::<ImageId>("id", "Identifies the image.")
                .column::<OrgId>("organization_id", "The organization that the image belongs to.")
                .revision(RecordKind::Image)
                .column::<String>("name", "The name, unique in the organization.")
                .column::<String>("reference", "The image reference, such as `registry.example/agent:1.2`.")
                .column::<Option<String>>("description", "A description for people.")
                .column::<Option<String>>(
                    "digest",
                    "The digest the reference pointed to when it was last used.",
                )
                .column::<Option<String>>("default_model", "The model for agents that don't choose one.")
                .column::<Option<String>>(
                    "profile",
                    "The name of the profile that says how its program is wired. Null: as the host's owner lists it.",
                )
                .column::<Option<UserId>>("created_by", "The user who created it.")
                .column::<Timestamp>("created_at", "When it was created.")
                .column::<Timestamp>("updated_at", "When it was last updated.")
                .column::<Option<Timestamp>>("archived_at", "When it was archived and stopped being offered.")
        });
        &SPEC
    }
}

/// A profile: how a program that others wrote is wired as an agent.
#[derive(SimpleObject)]
pub struct Profile {
    /// Its name, which images are given.
    pub name: String,
    /// The name for people.
    pub title: String,
    /// A description in one sentence.
    pub description: String,
    /// The interface with which it speaks to its model: `OPENAI_CHAT`, `OPENAI_RESPONSES`, `ANTHROPIC` or `GEMINI`.
    pub interface: String,
    /// The provider of its model, as in model credentials. Null: it needs none.
    pub provider: Option<String>,
    /// How it logs in.
    pub login: String,
    /// How it requests approval and resumes sessions, and its peculiarities.
    pub behaviour: String,
    /// The version that it was last run with. Null: not known.
    pub last_run_with: Option<String>,
    /// The day on which it was last run with that version, such as `2026-11-22`. Null: not known.
    pub last_run_on: Option<String>,
}

impl From<&Entry> for Profile {
    fn from(entry: &Entry) -> Self {
        let Entry { title, description, provider, login, behaviour, last_run, wiring } = entry.clone();
        let (last_run_with, last_run_on) = last_run.map(|run| (run.version, run.date)).unzip();
        let (name, interface) = (wiring.name, wiring.interface.as_str().to_owned());
        Self { name, title, description, interface, provider, login, behaviour, last_run_with, last_run_on }
    }
}

#[derive(Default)]
pub struct ServerQuery;

#[Object]
impl ServerQuery {
    /// The organization's servers, ordered by id.
    #[graphql(directive = permit::apply(Permission::ServerView))]
    #[expect(clippy::too_many_arguments, reason = "each is a separate filter in the schema")]
    async fn servers(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(at_least(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
        #[graphql(desc = "Only those whose name contains every word. Case and accents don't matter.", directive = bounds::apply(length(1, 200)))]
        search: Option<String>,
        #[graphql(desc = "The order.", default_with = "Some(ListSort::Created)")] sort: Option<ListSort>,
        #[graphql(desc = "Only servers in this state.")] status: Option<ServerStatus>,
    ) -> Answer<Page<Server>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?)
                .found(&["t.name_folded"], search.as_deref())
                .filter_if("t.status = ?", status.map(ServerStatus::as_str));
            Ok(Page::numbered(rows.listed(sort, "t.id", "t.name_folded, t.id"), page, limit))
        })
        .await
    }

    /// One server.
    #[graphql(directive = permit::apply(Permission::ServerView))]
    async fn server(&self, ctx: &Context<'_>, org_id: OrgId, id: ServerId) -> Answer<One<Server>> {
        answer(async { Ok(One::by_id(&ctx.enter(org_id).await?, id)) }).await
    }

    /// The load of a server's machine over time, oldest first: of at most 14 days, by default the last one, in periods of
    /// five minutes, or of longer ones if there would be more than about 300. Periods without a measurement are missing.
    #[graphql(directive = permit::apply(Permission::ServerView))]
    async fn server_load(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        server_id: ServerId,
        #[graphql(desc = "The time of the first period. Defaults to a day before the last one.")]
        since: Option<Timestamp>,
        #[graphql(desc = "The time after the last period. Defaults to now.")] before: Option<Timestamp>,
    ) -> Answer<Vec<ServerLoad>> {
        answer(async { hosts::load_history(&ctx.enter(org_id).await?, server_id, since, before).await }).await
    }

    /// The images that agents can run from, ordered by id. At most 1,000.
    #[graphql(directive = permit::apply(Permission::ImageView))]
    async fn images(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "Whether to include archived images.", default_with = "Some(false)")]
        include_archived: Option<bool>,
    ) -> Answer<List<Image>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?).order_by("t.id");
            Ok(List::first(rows.unless_archived(include_archived == Some(true)), 1_000))
        })
        .await
    }

    /// The profiles that images can be given, ordered by name. They are the same for all organizations.
    #[graphql(directive = permit::apply(Permission::ImageView))]
    async fn profiles(&self, ctx: &Context<'_>, org_id: OrgId) -> Answer<Vec<Profile>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            Ok(scope.core.profiles.iter().map(Profile::from).collect())
        })
        .await
    }

    /// One image.
    #[graphql(directive = permit::apply(Permission::ImageView))]
    async fn image(&self, ctx: &Context<'_>, org_id: OrgId, id: ImageId) -> Answer<One<Image>> {
        answer(async { Ok(One::by_id(&ctx.enter(org_id).await?, id)) }).await
    }
}

#[derive(Default)]
pub struct ServerMutation;

#[Object]
impl ServerMutation {
    /// Creates a server. The provisioning token in the answer is shown only once.
    #[graphql(directive = permit::apply(Permission::ServerCreate))]
    async fn create_server(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: CreateServerInput,
    ) -> Answer<One<ProvisionedServer>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let (id, token) = servers::create(&scope, input).await?;
            Ok(One::by_id(&scope, id).with_secret(token))
        })
        .await
    }

    /// Edits a server.
    #[graphql(directive = permit::apply(Permission::ServerEdit))]
    async fn update_server(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ServerId,
        input: UpdateServerInput,
        #[graphql(desc = "The revision that the edit was made from. CONFLICT if there is a newer one.")]
        if_revision: Option<i64>,
    ) -> Answer<One<Server>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let edited = scope.if_revision(RecordKind::Server, id, if_revision);
            let done = servers::update(&edited, id, input).await;
            One::after(&scope, id, Permission::ServerView, done)
        })
        .await
    }

    /// Issues a new provisioning token. The old token, and the host that connected with it, are cut off.
    #[graphql(directive = permit::apply(Permission::ServerEdit))]
    async fn regenerate_provisioning_token(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ServerId,
    ) -> Answer<One<ProvisionedServer>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let token = servers::regenerate_token(&scope, id).await?;
            Ok(One::by_id(&scope, id).with_secret(token))
        })
        .await
    }

    /// Confirms a host that has joined: it may hold secrets, and agents that waited for the confirmation start. Only a
    /// person who also has `credential.edit` can do this.
    #[graphql(directive = permit::apply(Permission::ServerEdit))]
    async fn confirm_host(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "The server.")] id: ServerId,
        #[graphql(
            desc = "The server's `host.join` that the person has looked at. CONFLICT if another host has joined since.",
            directive = bounds::apply(at_least(1))
        )]
        join: i64,
    ) -> Answer<One<Server>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            launch::confirm_host(&scope, id, join).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Deletes a server that has no agents and returns its id.
    #[graphql(directive = permit::apply(Permission::ServerDelete))]
    async fn delete_server(&self, ctx: &Context<'_>, org_id: OrgId, id: ServerId) -> Answer<ServerId> {
        answer(async {
            servers::delete(&ctx.enter(org_id).await?, id).await?;
            Ok(id)
        })
        .await
    }

    /// Creates an image.
    #[graphql(directive = permit::apply(Permission::ImageEdit))]
    async fn create_image(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: CreateImageInput,
    ) -> Answer<One<Image>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let id = servers::create_image(&scope, input).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Edits an image.
    #[graphql(directive = permit::apply(Permission::ImageEdit))]
    async fn update_image(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ImageId,
        input: UpdateImageInput,
        #[graphql(desc = "The revision that the edit was made from. CONFLICT if there is a newer one.")]
        if_revision: Option<i64>,
    ) -> Answer<One<Image>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let edited = scope.if_revision(RecordKind::Image, id, if_revision);
            let done = servers::update_image(&edited, id, input).await;
            One::after(&scope, id, Permission::ImageView, done)
        })
        .await
    }

    /// Archives an image: it is no longer offered, but agents that use it keep running.
    #[graphql(directive = permit::apply(Permission::ImageEdit))]
    async fn archive_image(&self, ctx: &Context<'_>, org_id: OrgId, id: ImageId) -> Answer<One<Image>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            servers::archive_image(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Restores an archived image.
    #[graphql(directive = permit::apply(Permission::ImageEdit))]
    async fn unarchive_image(&self, ctx: &Context<'_>, org_id: OrgId, id: ImageId) -> Answer<One<Image>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            servers::restore_image(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }
}
