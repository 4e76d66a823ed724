//! Backups in the GraphQL schema.

use std::sync::LazyLock;

use async_graphql::{Context, Object};

use super::agents::Agent;
use crate::{
    base::{
        column::Decimal,
        enums::{ActorKind, BackupCause, BackupState},
        ids::{AgentId, BackupId, Id, OrgId, ServerId},
        permission::Permission,
        time::Timestamp,
    },
    domain::backups,
    read::{One, Page, Record, Rows, Spec},
    resolvers::{
        Answer, Enter, answer,
        bounds::{at_least, bounds, range},
        permit::permit,
    },
};

pub struct AgentBackup;

impl Record for AgentBackup {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("AgentBackup", "agent_backups t", "A copy of an agent's home, in a file on its host.")
                .permission(Permission::AgentView)
                .column::<BackupId>("id", "Identifies the backup.")
                .column::<AgentId>("agent_id", "The agent.")
                .column::<ServerId>("server_id", "The server whose host has the file.")
                .column::<BackupCause>("cause", "Why it was made.")
                .column::<BackupState>("state", "Whether it is complete.")
                .column::<Option<Decimal>>("bytes", "The size of the file. Null: it is not complete.")
                .column::<Option<String>>("sha256", "The SHA-256 of the file, in hexadecimal.")
                .column::<Option<String>>("error", "Why it failed, in words.")
                .column::<ActorKind>("author_kind", "The kind of actor who requested it.")
                .column::<Option<Id>>(
                    "author_id",
                    "The id of the user or service token. Null for the service itself.",
                )
                .column::<String>("author_name", "The actor's name at the time.")
                .column::<Timestamp>("created_at", "When it was requested.")
                .column::<Option<Timestamp>>("ended_at", "When it was complete, or failed.")
                .column::<Option<BackupState>>(
                    "restore_state",
                    "The outcome of the last restore from it. Null: there was none.",
                )
                .column::<Option<String>>("restore_error", "Why that restore failed, in words.")
                .column::<Option<Timestamp>>(
                    "restored_at",
                    "When that restore ended; while it is PENDING, when it was requested.",
                )
        });
        &SPEC
    }
}

#[derive(Default)]
pub struct BackupQuery;

#[Object]
impl BackupQuery {
    /// The backups of an agent, newest first.
    #[graphql(directive = permit::apply(Permission::AgentView))]
    async fn agent_backups(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        agent_id: AgentId,
        #[graphql(directive = bounds::apply(at_least(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
    ) -> Answer<Page<AgentBackup>> {
        answer(async {
            let count = "SELECT (SELECT COUNT(*) FROM agent_backups b WHERE b.organization_id = a.organization_id \
                         AND b.agent_id = a.id) FROM agents a WHERE a.organization_id = $1 AND a.id = ?";
            let rows = Rows::of(&ctx.enter(org_id).await?)
                .parts_of("agent", agent_id.0, count, [agent_id.into()])
                .filter("t.agent_id = ?", [agent_id.into()])
                .order_by("t.id DESC");
            Ok(Page::numbered(rows, page, limit))
        })
        .await
    }
}

#[derive(Default)]
pub struct BackupMutation;

#[Object]
impl BackupMutation {
    /// Backs up an agent's home now. For a consistent copy, pause or stop the agent first.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn backup_agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<One<AgentBackup>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let backup = backups::back_up(&scope, id).await?;
            Ok(One::by_id(&scope, backup))
        })
        .await
    }

    /// Restores the home of a stopped agent from a backup. Its current content is lost at the next start.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn restore_backup(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: BackupId,
    ) -> Answer<One<AgentBackup>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            backups::restore(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Deletes a backup, and its file on the host.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn delete_backup(&self, ctx: &Context<'_>, org_id: OrgId, id: BackupId) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let agent = backups::delete(&scope, id).await?;
            Ok(One::by_id(&scope, agent))
        })
        .await
    }
}
