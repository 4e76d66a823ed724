//! Skills in the GraphQL schema.

use std::sync::LazyLock;

use async_graphql::{Context, Object};

use super::agents::{AgentAssignment, AgentSummary, assigned, assignment_count, version};
use crate::{
    base::{
        enums::{Effort, ListSort, RecordKind},
        ids::{OrgId, SkillId, SkillVersionId, UserId},
        permission::Permission,
        time::Timestamp,
    },
    domain::{
        agents::SetAgentsInput,
        skills::{self, CreateSkillInput, UpdateSkillInput},
    },
    read::{One, Page, Record, Rows, Spec},
    resolvers::{
        Answer, Enter, answer,
        bounds::{at_least, bounds, length, name, range},
        permit::permit,
    },
};

/// The agents that have a skill.
const AGENTS: &str =
    "skill_agents j JOIN agents t ON t.organization_id = j.organization_id AND t.id = j.agent_id";

pub struct Skill;

impl Record for Skill {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("Skill", "skills t", "A skill: written know-how that agents receive as files.")
                .permission(Permission::SkillView)
                .viewer_can(|scope| scope.permissions_json(&["skill"]))
                .column::<SkillId>("id", "Identifies the skill.")
                .revision(RecordKind::Skill)
                .column::<String>(
                    "name",
                    "The name, unique in the organization. It is also the name of the skill's folder.",
                )
                .column::<Option<String>>("description", "What the skill is for.")
                .column::<String>("content", "The text of the skill.")
                .column::<String>("content_hash", "SHA-256 of the content, in hexadecimal.")
                .column::<i64>("version", "Counts the changes to it: the newest of `skillVersions`.")
                .column::<Option<String>>("model", "The model it prefers.")
                .column::<Option<Effort>>("effort", "The effort it prefers.")
                .sql::<i64>(
                    "assignment_count",
                    assignment_count("skill_agents", "skill_id"),
                    "The number of agents that have it.",
                )
                .many::<AgentSummary>("agents", assigned(AGENTS, "j.skill_id"), "The agents that have it.")
                .column::<Option<UserId>>("created_by", "The user who created it.")
                .column::<Timestamp>("created_at", "When it was created.")
                .column::<Timestamp>("updated_at", "When it was last updated.")
                .column::<Option<Timestamp>>("archived_at", "When it was archived.")
                .many::<AgentAssignment>(
                    "assignments",
                    assigned(AGENTS, "j.skill_id"),
                    "The agents that have it, with the time of each assignment.",
                )
        });
        &SPEC
    }
}

pub struct SkillVersion;

impl Record for SkillVersion {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "The content of a skill at a time. It never changes.";
            let spec = Spec::new("SkillVersion", "skill_versions t", about)
                .permission(Permission::SkillView)
                .column::<SkillVersionId>("id", "Identifies the version in the installation.")
                .column::<SkillId>("skill_id", "The skill.")
                .sql::<i64>("version", "t.number", "The number of the version: 1, 2, 3, …");
            version(spec)
        });
        &SPEC
    }
}

#[derive(Default)]
pub struct SkillQuery;

#[Object]
impl SkillQuery {
    /// The organization's skills
    #[graphql(directive = permit::apply(Permission::SkillView))]
    #[expect(clippy::too_many_arguments, reason = "each is a separate filter in the schema")]
    async fn skills(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(at_least(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
        #[graphql(desc = "Whether to include archived skills.", default_with = "Some(false)")]
        include_archived: Option<bool>,
        #[graphql(desc = "Only those whose name contains every word. Case and accents don't matter.", directive = bounds::apply(length(1, 200)))]
        search: Option<String>,
        #[graphql(desc = "The order.", default_with = "Some(ListSort::Created)")] sort: Option<ListSort>,
    ) -> Answer<Page<Skill>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?).unless_archived(include_archived == Some(true));
            let rows = rows.found(&["t.name_folded"], search.as_deref());
            Ok(Page::numbered(rows.listed(sort, "t.id", "t.name_folded, t.id"), page, limit))
        })
        .await
    }

    /// One skill, archived or not.
    #[graphql(directive = permit::apply(Permission::SkillView))]
    async fn skill(&self, ctx: &Context<'_>, org_id: OrgId, id: SkillId) -> Answer<One<Skill>> {
        answer(async { Ok(One::by_id(&ctx.enter(org_id).await?, id)) }).await
    }

    /// The versions of a skill, newest first.
    #[graphql(directive = permit::apply(Permission::SkillView))]
    async fn skill_versions(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        skill_id: SkillId,
        #[graphql(directive = bounds::apply(at_least(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
    ) -> Answer<Page<SkillVersion>> {
        answer(async {
            let count = "SELECT (SELECT COUNT(*) FROM skill_versions v WHERE v.organization_id = s.organization_id \
                         AND v.skill_id = s.id) FROM skills s WHERE s.organization_id = $1 AND s.id = ?";
            let rows = Rows::of(&ctx.enter(org_id).await?)
                .parts_of("skill", skill_id.0, count, [skill_id.into()])
                .filter("t.skill_id = ?", [skill_id.into()])
                .order_by("t.number DESC");
            Ok(Page::numbered(rows, page, limit))
        })
        .await
    }

    /// One version of a skill.
    #[graphql(directive = permit::apply(Permission::SkillView))]
    async fn skill_version(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        skill_id: SkillId,
        #[graphql(desc = "Its number.", directive = bounds::apply(at_least(1)))] version: i64,
    ) -> Answer<One<SkillVersion>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?)
                .filter("t.skill_id = ? AND t.number = ?", [skill_id.into(), version.into()]);
            Ok(One::of(rows, version))
        })
        .await
    }
}

#[derive(Default)]
pub struct SkillMutation;

#[Object]
impl SkillMutation {
    /// Creates a skill. No agent has it yet.
    #[graphql(directive = permit::apply(Permission::SkillCreate))]
    async fn create_skill(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: CreateSkillInput,
    ) -> Answer<One<Skill>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let id = skills::create(&scope, input).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Edits a skill. The assigned agents are marked for synchronization.
    #[graphql(directive = permit::apply(Permission::SkillEdit))]
    async fn update_skill(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: SkillId,
        input: UpdateSkillInput,
        #[graphql(desc = "The reason, stored with the version.", directive = bounds::apply(name(1000)))]
        reason: Option<String>,
        #[graphql(desc = "The revision that the edit was made from. CONFLICT if there is a newer one.")]
        if_revision: Option<i64>,
    ) -> Answer<One<Skill>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let edited = scope.if_revision(RecordKind::Skill, id, if_revision);
            let done = skills::update(&edited, id, input, reason).await;
            One::after(&scope, id, Permission::SkillView, done)
        })
        .await
    }

    /// Restores a skill to an earlier version, as a new version. Checked like an edit.
    #[graphql(directive = permit::apply(Permission::SkillEdit))]
    async fn revert_skill(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: SkillId,
        #[graphql(desc = "The number of the earlier version.", directive = bounds::apply(at_least(1)))]
        version: i64,
        #[graphql(desc = "The reason, stored with the version.", directive = bounds::apply(name(1000)))]
        reason: String,
    ) -> Answer<One<Skill>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            skills::revert(&scope, id, version, reason)
                .await
                .map_err(|problem| problem.blame_argument("version"))?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Sets the agents that have a skill. Agents left out lose it. One unknown agent fails the whole call.
    #[graphql(directive = permit::apply(Permission::SkillEdit))]
    async fn set_skill_agents(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: SkillId,
        input: SetAgentsInput,
    ) -> Answer<One<Skill>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            skills::set_agents(&scope, id, &input.agent_ids).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Archives a skill: it is hidden, and its agents lose it at once. Assignments are kept.
    #[graphql(directive = permit::apply(Permission::SkillDelete))]
    async fn archive_skill(&self, ctx: &Context<'_>, org_id: OrgId, id: SkillId) -> Answer<One<Skill>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            skills::archive(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Restores an archived skill: its agents regain it at once.
    #[graphql(directive = permit::apply(Permission::SkillEdit))]
    async fn unarchive_skill(&self, ctx: &Context<'_>, org_id: OrgId, id: SkillId) -> Answer<One<Skill>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            skills::restore(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }
}
