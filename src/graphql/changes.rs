//! `changes`: one subscription for the whole panel.

use async_graphql::{Context, SimpleObject, Subscription};
use futures::{Stream, StreamExt, future, stream};

use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::{Id, OrgId},
        numerals::with_noun,
        permission::Permission,
        problem::{Problem, Result},
    },
    core::access::Permit,
    resolvers::{Enter, permit::member, subscribe},
};

/// A change to a record. It carries no data: clients refetch what they show.
#[derive(SimpleObject)]
pub struct Change {
    /// The kind of record. Null if changes may have been missed.
    pub kind: Option<RecordKind>,
    /// The record's id. Null if changes may have been missed.
    pub id: Option<Id>,
    /// What happened.
    pub op: ChangeOp,
}

/// The permissions that allow reading records of a kind. One of them is needed to receive their changes.
#[must_use]
pub const fn needed(kind: RecordKind) -> &'static [Permission] {
    match kind {
        RecordKind::Agent | RecordKind::Channel => &[Permission::AgentView],
        RecordKind::Approval => &[Permission::ApprovalView],
        RecordKind::Attachment | RecordKind::Message | RecordKind::Turn => &[Permission::AgentOutputView],
        RecordKind::AuditEntry => &[Permission::AuditView],
        // The list needs the first, a single conversation the second.
        RecordKind::Conversation => &[Permission::ConversationView, Permission::AgentOutputView],
        RecordKind::Contact => &[Permission::ContactView],
        RecordKind::Credential => &[Permission::CredentialView],
        RecordKind::EventEndpoint => &[Permission::OrganizationEdit],
        RecordKind::Image => &[Permission::ImageView],
        RecordKind::Invitation | RecordKind::Member => &[Permission::MemberView],
        RecordKind::McpServer => &[Permission::McpView],
        RecordKind::ModelCredential | RecordKind::Organization => &[Permission::OrganizationView],
        RecordKind::Policy => &[Permission::PolicyView],
        RecordKind::Server => &[Permission::ServerView],
        RecordKind::ServiceToken => &[Permission::TokenView],
        RecordKind::Skill => &[Permission::SkillView],
    }
}

#[derive(Default)]
pub struct ChangeSubscription;

#[Subscription]
impl ChangeSubscription {
    /// Every change to the organization's records of these kinds that the caller may view; without `kinds`, of
    /// all kinds. The first event is `RESYNC`: changes are sent from that moment on. Later, `RESYNC` means that
    /// changes may have been missed. After each, refetch everything.
    #[graphql(directive = member::apply())]
    async fn changes(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        kinds: Option<Vec<RecordKind>>,
    ) -> Result<impl Stream<Item = Result<Change>> + use<>> {
        let scope = ctx.enter(org_id).await?;
        require_few(kinds.as_deref())?;
        let is_wanted = move |kind| kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind));
        let told = subscribe(&scope, Permit::Member, move |event| is_wanted(event.kind))?;
        // A client that reads before this event may miss changes in between.
        let begins = stream::once(future::ready(Ok((scope, None))));
        Ok(begins.chain(told).filter_map(async |told| match told {
            Ok((scope, Some(event))) => needed(event.kind)
                .iter()
                .any(|permission| scope.may(*permission))
                .then(|| Ok(Change { kind: Some(event.kind), id: Some(Id(event.id)), op: event.op })),
            Ok((_, None)) => Some(Ok(Change { kind: None, id: None, op: ChangeOp::Resync })),
            Err(problem) => Some(Err(problem)),
        }))
    }
}

/// A subscription holds its arguments for as long as it lasts, and the library can't declare bounds on a subscription's
/// arguments.
fn require_few(kinds: Option<&[RecordKind]>) -> Result<()> {
    let most = RecordKind::ALL.len();
    if kinds.is_some_and(|kinds| kinds.len() > most) {
        let detail = format!("`kinds` can have at most {}.", with_noun(most, "item"));
        return Err(Problem::invalid_parameter("kinds", "TOO_LONG", detail));
    }
    Ok(())
}
