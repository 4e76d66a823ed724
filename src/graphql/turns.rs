//! Turns in the GraphQL schema.

use std::{sync::LazyLock, time::Duration};

use async_graphql::{Context, Object, Subscription};
use futures::{Stream, StreamExt};
use tokio::time::timeout;

use super::{
    agents::Agent,
    conversations::{Conversation, Message},
    spending::ModelCall,
};
use crate::{
    base::{
        bounds::ANSWER_WAIT,
        column::Decimal,
        enums::{RecordKind, TurnCause, TurnCut, TurnState},
        ids::{AgentId, ConversationId, OrgId, TokenId, TurnId, UserId},
        permission::Permission,
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::access::{Permit, Scope},
    domain::conversations::turns,
    read::{Many, One, Page, Record, Rows, Spec},
    resolvers::{
        Answer, Enter, answer,
        bounds::{at_least, bounds, range},
        permit::permit,
        subscribe, subscribe_to_kind,
    },
};

/// The longest wait for a turn's end, in seconds. Proxies end requests without an answer after 30 or 60.
const LONGEST_WAIT: i64 = 25;

/// Whether `turns::retry` can take the turn.
const IS_RETRYABLE: &str = "(t.state IN ('FAILED', 'INTERRUPTED') AND EXISTS (SELECT 1 FROM messages m \
    WHERE m.organization_id = t.organization_id AND m.turn_id = t.id \
    AND (m.role = 'USER' OR (m.role = 'ASSISTANT' AND m.author_user_id IS NOT NULL))))";

pub struct Turn;

impl Record for Turn {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "A turn: a piece of an agent's work, in one conversation.";
            let spec = Spec::new("Turn", "turns t", about)
                .permission(Permission::AgentOutputView)
                .viewer_can(|scope| scope.permissions_json(&["agent"]));
            course(spent(subject(spec)))
        });
        &SPEC
    }
}

fn subject(spec: Spec) -> Spec {
    spec.column::<TurnId>("id", "Identifies the turn.")
        .column::<OrgId>("organization_id", "The organization that the turn belongs to.")
        .column::<ConversationId>("conversation_id", "The conversation.")
        .one::<Conversation>("conversation", "t.conversation_id", "The conversation.")
        .column::<AgentId>("agent_id", "The agent.")
        .one::<Agent>("agent", "t.agent_id", "The agent.")
        .column::<Option<i64>>("generation", "The launch that it was sent to. Null: not sent.")
        .column::<Option<i64>>("agent_revision", "The number of the agent's revision.")
        .column::<TurnCause>("cause", "What caused it.")
        .column::<Option<UserId>>("caused_by_user_id", "The person who caused it.")
        .column::<Option<TokenId>>("caused_by_token_id", "The service token that caused it.")
        .column::<TurnState>("state", "The lifecycle state.")
        .column::<Option<String>>(
            "error",
            "Why it failed, was interrupted, or was never begun. Null otherwise.",
        )
        .sql::<bool>(
            "is_retryable",
            IS_RETRYABLE,
            "Whether it failed or was interrupted, and no other turn has its messages.",
        )
}

fn spent(spec: Spec) -> Spec {
    spec.column::<Option<String>>("model", "The model that was used, if the agent reports it.")
        .column::<Option<Decimal>>(
            "input_tokens",
            "Tokens read, except cached ones. Null: not reported.",
        )
        .column::<Option<Decimal>>("output_tokens", "Tokens written. Null: not reported.")
        .column::<Option<Decimal>>(
            "cache_read_tokens",
            "Tokens read from a cache. Null: not reported.",
        )
        .column::<Option<Decimal>>(
            "cache_write_tokens",
            "Tokens written to a cache. Null: not reported.",
        )
        .column::<Option<Decimal>>(
            "cost_micro",
            "The cost, in millionths of the organization's currency. Null: unknown, because a model has no price, the agent reports none, or several turns ran at once, to which calls can't be attributed.",
        )
        .many::<ModelCall>(
            "model_calls",
            Many { by: "t.turn_id", ..Many::default() },
            "The model calls made in it, as the host measured them, except calls made while the agent had several turns at once. Kept for 90 days.",
        )
}

fn course(spec: Spec) -> Spec {
    spec.column::<Option<i64>>("first_seq", "The seq of its first message.")
        .column::<Option<i64>>("last_seq", "The seq of its last message.")
        .many::<Message>(
            "messages",
            Many { by: "t.turn_id", order: "t.seq", ..Many::default() },
            "The messages that caused it, and the agent's messages in it, oldest first.",
        )
        .column::<Option<Timestamp>>("cancel_requested_at", "When it was cancelled.")
        .sql::<Option<String>>(
            "cancelled_by",
            "(CASE WHEN t.state NOT IN ('DONE', 'FAILED') THEN t.cut_by END)",
            "Who ended it early, by cancelling it or by stopping the agent. Null: no one, or the service.",
        )
        .sql::<Option<TurnCut>>(
            "cancelled_with",
            "(CASE WHEN t.state NOT IN ('DONE', 'FAILED') THEN t.cut END)",
            "What that person ended: the turn or the agent.",
        )
        .column::<Option<Timestamp>>("started_at", "When the agent received it.")
        .column::<Option<Timestamp>>("ended_at", "When it ended.")
        .column::<Timestamp>("created_at", "When it was caused.")
        .column::<Timestamp>("updated_at", "When it was last updated.")
}

#[derive(Default)]
pub struct TurnQuery;

#[Object]
impl TurnQuery {
    /// The organization's turns, newest first.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    #[expect(clippy::too_many_arguments, reason = "the filters")]
    async fn turns(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "Only turns of this agent.")] agent_id: Option<AgentId>,
        #[graphql(desc = "Only turns in this conversation.")] conversation_id: Option<ConversationId>,
        #[graphql(desc = "Only turns in this state.")] state: Option<TurnState>,
        #[graphql(directive = bounds::apply(at_least(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
    ) -> Answer<Page<Turn>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?)
                .filter_if("t.agent_id = ?", agent_id)
                .filter_if("t.conversation_id = ?", conversation_id)
                .filter_if("t.state = ?", state)
                .order_by("t.id DESC");
            Ok(Page::numbered(rows, page, limit))
        })
        .await
    }

    /// One turn. With `wait`, answers as soon as the turn has ended, or after this time with the turn as it is then.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    async fn turn(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: TurnId,
        #[graphql(
            desc = "How many seconds to wait for the turn's end. Counts as an open subscription meanwhile.",
            directive = bounds::apply(range(0, LONGEST_WAIT))
        )]
        wait: Option<i64>,
    ) -> Answer<One<Turn>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            wait_for_end(&scope, id, wait.unwrap_or_default()).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }
}

/// Waits until the turn has ended, at most for `seconds`. Like a subscription, it takes a place of the caller's and of
/// the organization's, and ends when the caller may no longer see the turn.
async fn wait_for_end(scope: &Scope, id: TurnId, seconds: i64) -> Result<()> {
    let longest = scope.core.config.limits.request_timeout().saturating_sub(ANSWER_WAIT);
    let wait = Duration::from_secs(seconds.unsigned_abs()).min(longest);
    if wait.is_zero() {
        return Ok(());
    }
    let required = Permit::InOrganization { permission: Permission::AgentOutputView, confirmed_email: false };
    // Before the first check: an end in between is not missed.
    let mut news =
        subscribe(scope, required, move |event| event.kind == RecordKind::Turn && event.id == id.0)?;
    let ended = async {
        while turns::is_under_way(scope, id).await? {
            // `None`: the service is stopping.
            let Some(change) = news.next().await else { break };
            change?;
        }
        Ok::<(), Problem>(())
    };
    let done = timeout(wait, ended).await;
    scope.request.changed();
    done.unwrap_or(Ok(()))
}

#[derive(Default)]
pub struct TurnMutation;

#[Object]
impl TurnMutation {
    /// Cancels a turn: a waiting one at once, a running one as soon as the agent has stopped it. A turn that has ended
    /// stays as it is. `CONFLICT` for a turn that only holds a person's messages for the agent until the next message.
    #[graphql(directive = permit::apply(Permission::AgentInteract))]
    async fn cancel_turn(&self, ctx: &Context<'_>, org_id: OrgId, id: TurnId) -> Answer<One<Turn>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            turns::cancel(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Sends the messages of a FAILED or INTERRUPTED turn again, with the conversation's next turn, which it returns.
    /// They reopen a resolved conversation. `CONFLICT` for a turn in another state, one that was retried already, and
    /// while a person answers instead of the agent.
    #[graphql(directive = permit::apply(Permission::AgentInteract))]
    async fn retry_turn(&self, ctx: &Context<'_>, org_id: OrgId, id: TurnId) -> Answer<One<Turn>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let next = turns::retry(&scope, id).await?;
            Ok(One::by_id(&scope, next))
        })
        .await
    }
}

#[derive(Default)]
pub struct TurnSubscription;

#[Subscription]
impl TurnSubscription {
    /// Sends a turn's record each time one is made or changes. Without `conversationId`, sends those of every conversation.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    async fn turn_changed(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "Only turns in this conversation.")] conversation_id: Option<ConversationId>,
    ) -> Result<impl Stream<Item = Result<One<Turn>>> + use<>> {
        let scope = ctx.enter(org_id).await?;
        let changes =
            subscribe_to_kind(&scope, Permission::AgentOutputView, RecordKind::Turn, move |event| {
                conversation_id.is_none_or(|conversation| event.of == Some(conversation.0))
            })?;
        Ok(changes.map(|change| change.map(|(scope, id)| One::by_id(&scope, id))))
    }
}
