//! Approvals in the GraphQL schema.

mod list;

use std::sync::LazyLock;

use async_graphql::{Context, InputObject, Json, Object, SimpleObject, Subscription};
use futures::{Stream, StreamExt};

use self::list::Filter;
use crate::{
    base::{
        column::Decimal,
        enums::{
            ActorKind, ApprovalKind, ApprovalOutcome, ApprovalSort, ApprovalStatus, DecidedVia, RecordKind,
            Severity, SortOrder, TurnCut,
        },
        ids::{
            AgentId, ApprovalId, ChannelId, ConversationId, Id, ModelCredentialId, OrgId, ServerId, TurnId,
            UserId,
        },
        permission::Permission,
        problem::Result,
        time::Timestamp,
    },
    core::access::Scope,
    domain::approvals::{self, overdue},
    graphql::{agents::AgentSummary, turns::Turn},
    read::{Feed, One, Page, Record, Rows, Spec},
    resolvers::{
        Answer, Enter, answer,
        bounds::{at_least, bounds, free_text, items, length, list as each, range},
        permit::permit,
        subscribe_to_kind,
    },
};

pub struct Approval;

impl Record for Approval {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "A decision an agent is waiting for, or something a person needs to look at.";
            let spec = Spec::new("Approval", "approvals t", about)
                .permission(Permission::ApprovalView)
                .viewer_can(|scope| scope.permissions_json(&["approval"]));
            decision(subject(spec))
        });
        &SPEC
    }
}

/// SQL for the short code of the approval's conversation.
const CONVERSATION_REF: &str = "(SELECT c.ref FROM conversations c WHERE c.organization_id = t.organization_id AND c.id = t.conversation_id)";

const ASSIGNEE_NAME: &str = "(SELECT u.name FROM users u WHERE u.id = t.assignee_id)";
const SNOOZED_UNTIL: &str = "(SELECT z.until FROM approval_snoozes z WHERE z.organization_id = t.organization_id \
     AND z.approval_id = t.id AND z.user_id = :viewer AND z.until > :now)";

const IS_DECIDED: &str = "(t.decided_by_kind IS NOT NULL OR (t.status = 'PENDING' AND t.expires_at <= :now))";

/// SQL: a column of the turn of a withdrawn approval about the person who ended it, if that was before the withdrawal.
fn turn_cut_column(column: &str) -> String {
    format!(
        "(CASE WHEN t.outcome = 'WITHDRAWN' THEN (SELECT w.{column} FROM turns w \
         WHERE w.organization_id = t.organization_id AND w.id = t.turn_id AND w.cut_at <= t.resolved_at) END)"
    )
}

fn subject(spec: Spec) -> Spec {
    spec.column::<ApprovalId>("id", "Identifies the approval.")
        .column::<OrgId>("organization_id", "The organization that the approval belongs to.")
        .column::<ApprovalKind>("kind", "The kind of approval.")
        .sql::<ApprovalStatus>("status", overdue("'EXPIRED'", "status"), "The lifecycle state.")
        .sql::<Option<ApprovalOutcome>>("outcome", overdue("'EXPIRED'", "outcome"), "How it ended.")
        .column::<String>("title", "What it is about, in one line.")
        .column::<Option<String>>("body", "What it is about, in detail.")
        .column::<Severity>("severity", "Its severity.")
        .column::<Option<String>>("category", "The category of the action, as the risk rules name it.")
        .column::<Option<i64>>("risk", "The risk of the action, from 0 to 100.")
        .column::<Option<AgentId>>("agent_id", "The agent it concerns.")
        .one::<AgentSummary>("agent", "t.agent_id", "A short form of the agent it concerns.")
        .column::<Option<ServerId>>("server_id", "The server an alert is about.")
        .column::<Option<ModelCredentialId>>(
            "model_credential_id",
            "The organization's model credential that its provider rejected.",
        )
        .column::<Option<ChannelId>>("channel_id", "The channel that failed, or that someone wrote to.")
        .column::<Option<ConversationId>>("conversation_id", "The conversation it was raised in.")
        .sql::<Option<String>>("conversation_ref", CONVERSATION_REF, "The conversation's short code.")
        .column::<Option<i64>>("message_seq", "The seq of the message it was raised at.")
        .column::<Option<TurnId>>("turn_id", "The turn it was asked in.")
        .one::<Turn>("turn", "t.turn_id", "The turn it was asked in.")
}

fn decision(spec: Spec) -> Spec {
    spec.parts::<Option<ApprovalRequest>>("request", "t.request", "What the agent wants to do.")
        .parts::<Option<ApprovalQuestion>>("question", "t.question", "The question.")
        .parts::<Option<ApprovalSpending>>(
            "spending",
            "t.spending",
            "The additional amount that a COST_GUARD proposes. `allowSpending` allows it, or another one, and resolves the approval.",
        )
        .parts::<Option<ApprovalAnswer>>("answer", "t.answer", "The answer.")
        .embedded::<ApprovalDecider>("decided_by", IS_DECIDED, "Who decided.")
        .sql::<Option<DecidedVia>>(
            "decided_via",
            overdue("'SYSTEM'", "decided_via"),
            "How the decision was made.",
        )
        .sql::<Option<String>>(
            "withdrawn_by",
            turn_cut_column("cut_by"),
            "Who withdrew it, by cancelling the turn or stopping the agent. Null: it was not withdrawn, or not by a person.",
        )
        .sql::<Option<TurnCut>>("withdrawn_with", turn_cut_column("cut"), "What that person ended: the turn or the agent.")
        .column::<Option<String>>("comment", "The decider's comment.")
        .column::<Option<UserId>>(
            "assignee_id",
            "The member who should decide: a hint, which restricts no one.",
        )
        .sql::<Option<String>>("assignee_name", ASSIGNEE_NAME, "The name of that member.")
        .sql::<Option<Timestamp>>(
            "snoozed_until",
            SNOOZED_UNTIL,
            "The time until which the caller has snoozed it. Null for a service token.",
        )
        .column::<Option<Timestamp>>("expires_at", "When it expires without a decision.")
        .sql::<Option<Timestamp>>("resolved_at", overdue("t.expires_at", "resolved_at"), "When it ended.")
        .column::<Option<Timestamp>>("delivered_at", "When the agent was notified.")
        .column::<Timestamp>("created_at", "When it was raised.")
        .column::<Timestamp>("updated_at", "When it was last updated.")
}

pub struct ApprovalDecider;

impl Record for ApprovalDecider {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let id = "COALESCE(t.decided_by_user_id, t.decided_by_token_id)";
            Spec::new("ApprovalDecider", "approvals t", "Who decided an approval.")
                .sql::<Option<Id>>("id", id, "The user or service token. Null for the service itself.")
                .sql::<Option<String>>(
                    "name",
                    overdue("'system'", "decided_by_name"),
                    "The name at the time.",
                )
                .sql::<ActorKind>("kind", overdue("'SYSTEM'", "decided_by_kind"), "The kind of decider.")
        });
        &SPEC
    }
}

/// The tool call that an agent wants to make.
#[derive(SimpleObject)]
pub struct ApprovalRequest {
    /// The tool.
    pub tool: Option<String>,
    /// The input of the call, with secrets removed.
    pub input: Option<Json<serde_json::Value>>,
    /// SHA-256 of the complete input.
    pub digest: Option<String>,
}

/// The additional amount that a COST_GUARD proposes: money or tokens.
#[derive(SimpleObject)]
pub struct ApprovalSpending {
    /// The agent whose limit is reached. Null: the organization's.
    pub agent_id: Option<AgentId>,
    /// Money, in millionths of the organization's currency.
    pub cost_micro: Option<Decimal>,
    /// Tokens for the next 60 minutes.
    pub tokens: Option<i64>,
}

/// The question asked.
#[derive(SimpleObject)]
pub struct ApprovalQuestion {
    /// The question itself.
    pub text: String,
    /// The options to choose from. May be empty.
    pub options: Vec<ApprovalOption>,
    /// Whether more than one option can be chosen.
    pub multiple: bool,
    /// Whether the answer can contain free text.
    pub allow_text: bool,
}

/// One option of a question.
#[derive(SimpleObject)]
pub struct ApprovalOption {
    /// Identifies the option within the question.
    pub id: String,
    /// The label shown to people.
    pub label: String,
    /// A longer description.
    pub description: Option<String>,
}

/// The answer given.
#[derive(SimpleObject)]
pub struct ApprovalAnswer {
    /// The ids of the chosen options.
    pub options: Vec<String>,
    /// Free text.
    pub text: Option<String>,
}

/// An answer: options, text, or both.
#[derive(InputObject)]
pub struct AnswerApprovalInput {
    /// The chosen options, by id or label. More than one only if the question allows it.
    #[graphql(directive = bounds::apply(each(100, free_text(500))))]
    pub options: Option<Vec<String>>,
    /// Free text, if the question allows it.
    #[graphql(directive = bounds::apply(free_text(10_000)))]
    pub text: Option<String>,
}

#[derive(Default)]
pub struct ApprovalQuery;

#[Object]
impl ApprovalQuery {
    /// The organization's approvals, most recent first.
    #[graphql(directive = permit::apply(Permission::ApprovalView))]
    async fn approvals(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(at_least(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
        #[graphql(desc = "Whether to return only approvals that are still pending.")] only_pending: bool,
    ) -> Answer<Page<Approval>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let mut rows = Rows::of(&scope).order_by("t.created_at DESC, t.id");
            if only_pending {
                let waits = "t.status = 'PENDING' AND (t.expires_at IS NULL OR t.expires_at > ?)";
                let now = rows.now().0;
                rows = rows.filter(waits, [now.into()]);
            }
            Ok(Page::numbered(rows, page, limit))
        })
        .await
    }

    /// Approvals, with filters, in pages that do not shift.
    #[graphql(directive = permit::apply(Permission::ApprovalView))]
    #[expect(clippy::too_many_arguments, reason = "each is a separate filter in the schema")]
    async fn approval_feed(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "The start of the page: `next` of the previous page.", directive = bounds::apply(length(1, 10_000)))]
        after: Option<String>,
        #[graphql(desc = "The maximum number to return.", default_with = "Some(50)", directive = bounds::apply(range(1, 200)))]
        limit: Option<i64>,
        #[graphql(desc = "Only those in one of these states.", directive = bounds::apply(items(4)))]
        status: Option<Vec<ApprovalStatus>>,
        #[graphql(desc = "Only those of these kinds.", directive = bounds::apply(items(7)))] kinds: Option<
            Vec<ApprovalKind>,
        >,
        #[graphql(desc = "Only those of this severity or a higher one.")] severity_at_least: Option<Severity>,
        #[graphql(desc = "Only those that concern this agent.")] agent_id: Option<AgentId>,
        #[graphql(desc = "Only those raised in this conversation.")] conversation_id: Option<ConversationId>,
        #[graphql(desc = "Only those that this person should decide.")] assignee_id: Option<UserId>,
        #[graphql(
            desc = "Whether to return approvals that the caller has snoozed, or the others. Null: both."
        )]
        snoozed: Option<bool>,
        #[graphql(
            desc = "Only those in which every word occurs: in the title, the text, the request, or the agent's name. Case and accents don't matter in titles and names; elsewhere accents do, and case may for letters other than A to Z.",
            directive = bounds::apply(length(1, 200))
        )]
        search: Option<String>,
        #[graphql(desc = "The sort key.", default_with = "Some(ApprovalSort::Risk)")] sort: Option<
            ApprovalSort,
        >,
        #[graphql(desc = "The direction, if not the key's own.")] order: Option<SortOrder>,
    ) -> Answer<Feed<Approval>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let filter = Filter {
                status,
                kinds,
                severity_at_least,
                agent_id,
                conversation_id,
                assignee_id,
                snoozed,
                search,
            };
            let keys = list::keys(sort.unwrap_or(ApprovalSort::Risk), order);
            Feed::after(list::rows(&scope, &filter), keys, after.as_deref(), limit.unwrap_or(50))
        })
        .await
    }

    /// One approval.
    #[graphql(directive = permit::apply(Permission::ApprovalView))]
    async fn approval(&self, ctx: &Context<'_>, org_id: OrgId, id: ApprovalId) -> Answer<One<Approval>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            Ok(shown(&scope, id))
        })
        .await
    }
}

fn shown(scope: &Scope, id: ApprovalId) -> One<Approval> {
    One::by_id(scope, id)
}

#[derive(Default)]
pub struct ApprovalMutation;

#[Object]
impl ApprovalMutation {
    /// Marks a pending approval as resolved. Only changes its status: fix what it was about first.
    #[graphql(directive = permit::apply(Permission::ApprovalResolve))]
    async fn resolve_approval(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ApprovalId,
        #[graphql(desc = "A comment.", directive = bounds::apply(length(0, 2000)))] comment: Option<String>,
    ) -> Answer<One<Approval>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let done = approvals::resolve(&scope, id, comment).await;
            One::after(&scope, id, Permission::ApprovalView, done)
        })
        .await
    }

    /// Answers a question, or approves or denies an action. The agent is notified.
    #[graphql(directive = permit::apply(Permission::ApprovalResolve))]
    async fn answer_approval(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ApprovalId,
        input: AnswerApprovalInput,
    ) -> Answer<One<Approval>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let given = approvals::Answer { options: input.options.unwrap_or_default(), text: input.text };
            let done = approvals::answer(&scope, id, given).await;
            One::after(&scope, id, Permission::ApprovalView, done)
        })
        .await
    }

    /// Dismisses a pending approval that no longer applies. The action it asks about is not carried out.
    #[graphql(directive = permit::apply(Permission::ApprovalResolve))]
    async fn dismiss_approval(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ApprovalId,
        #[graphql(desc = "A comment.", directive = bounds::apply(length(0, 2000)))] comment: Option<String>,
    ) -> Answer<One<Approval>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let done = approvals::dismiss(&scope, id, comment).await;
            One::after(&scope, id, Permission::ApprovalView, done)
        })
        .await
    }

    /// Assigns an approval to a member, who is notified; null unassigns it. A hint that restricts no one.
    #[graphql(directive = permit::apply(Permission::ApprovalResolve))]
    async fn assign_approval(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ApprovalId,
        #[graphql(desc = "A member of the organization.")] user_id: Option<UserId>,
    ) -> Answer<One<Approval>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            approvals::assign(&scope, id, user_id).await?;
            Ok(shown(&scope, id))
        })
        .await
    }

    /// Hides an approval from the caller until then, at most until ten minutes before it expires; null shows it again. For
    /// people only.
    #[graphql(directive = permit::apply(Permission::ApprovalView))]
    async fn snooze_approval(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ApprovalId,
        until: Option<Timestamp>,
    ) -> Answer<One<Approval>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            approvals::snooze(&scope, id, until).await?;
            Ok(shown(&scope, id))
        })
        .await
    }
}

#[derive(Default)]
pub struct ApprovalSubscription;

#[Subscription]
impl ApprovalSubscription {
    /// Sends an approval's record each time one is raised, decided, or expires.
    #[graphql(directive = permit::apply(Permission::ApprovalView))]
    async fn approval_changed(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
    ) -> Result<impl Stream<Item = Result<One<Approval>>> + use<>> {
        let scope = ctx.enter(org_id).await?;
        let changes = subscribe_to_kind(&scope, Permission::ApprovalView, RecordKind::Approval, |_| true)?;
        Ok(changes.map(|change| change.map(|(scope, id)| shown(&scope, ApprovalId(id)))))
    }
}
