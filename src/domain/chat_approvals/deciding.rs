//! Decisions in chats, by buttons and replies. Each decision checks the link, the membership, the permission, the
//! organization's risk limit, and that the request is still the one that was shown.

use std::sync::Arc;

use muster_channels::{ButtonPress, Inbound, Proof};
use sea_orm::{ColumnTrait, QueryFilter};

use super::{
    ReplyOutcome,
    entity::approval_asks::{Column, Entity, Model},
    rights,
    sending::load_terms,
    wording::{self, ButtonValue},
};
use crate::{
    base::{
        enums::{ApprovalStatus, AskState},
        ids::{ApprovalId, ChannelId, OrgId},
        problem::{Code, Problem, Result},
    },
    core::{Core, access::Scope},
    domain::approvals::{self, Answer, Shown},
};

/// The answer to a person who may not decide. Reveals nothing about the request.
const NOT_YOURS: &str = "You can't decide this here. Look at it in the panel.";
const CHANGED: &str = "The request has changed since you were asked. Look at it in the panel.";
const TOO_RISKY: &str = "This can only be decided in the panel.";
const UNCLEAR: &str = "Answer with the number of one of the choices.";

/// Handles a tapped button. Returns the answer to the person.
///
/// # Errors
/// The database is unreachable: nothing was decided.
pub async fn handle_press(
    core: &Arc<Core>,
    place: (OrgId, ChannelId),
    press: &ButtonPress,
) -> Result<String> {
    let Some(pressed) = ButtonValue::parse(&press.value) else { return Ok(NOT_YOURS.to_owned()) };
    if press.proof != Proof::Vendor || !press.is_private {
        return Ok(NOT_YOURS.to_owned());
    }
    let Some(theirs) = rights::scope_of_origin(core, place, &press.origin.id).await? else {
        return Ok(NOT_YOURS.to_owned());
    };
    let Some(ask) = find_ask(&theirs, place.1, pressed.approval).await? else {
        return Ok(NOT_YOURS.to_owned());
    };
    let choose = |shown: &Shown| {
        let option = shown.question.options.get(pressed.option)?;
        Some(Answer { options: vec![option.id.clone()], text: None })
    };
    decide(&theirs, (&ask, &pressed.digest), choose).await
}

/// Handles a reply to one of our messages: the answer, if that message asked about an approval.
///
/// # Errors
/// The database is unreachable: nothing was decided.
pub async fn handle_answer(
    core: &Arc<Core>,
    place: (OrgId, ChannelId),
    message: &Inbound,
) -> Result<ReplyOutcome> {
    let Some(to) = &message.answers else { return Ok(ReplyOutcome::NotOurs) };
    if message.proof != Proof::Vendor || !message.thread.is_private || message.is_automatic {
        return Ok(ReplyOutcome::NotOurs);
    }
    let system = Scope::system(core, place.0);
    let asked = system.find::<Entity>().filter(Column::ChannelId.eq(place.1)).filter(Column::VendorId.eq(to));
    let Some(ask) = asked.one(core.db.read()).await? else { return Ok(ReplyOutcome::NotOurs) };
    let theirs = rights::scope_of_origin(core, place, &message.origin.id).await?;
    let Some(theirs) = theirs.filter(|scope| scope.request.caller.user() == Some(ask.user_id)) else {
        return Ok(ReplyOutcome::Answer(NOT_YOURS.to_owned()));
    };
    let Some(digest) = &ask.digest else { return Ok(ReplyOutcome::Answer(TOO_RISKY.to_owned())) };
    let read = |shown: &Shown| wording::parse_answer(&shown.question, shown.kind, &message.text);
    decide(&theirs, (&ask, digest), read).await.map(ReplyOutcome::Answer)
}

/// Finds the message that asked a member about an approval.
async fn find_ask(theirs: &Scope, channel: ChannelId, approval: ApprovalId) -> Result<Option<Model>> {
    let Some(user) = theirs.request.caller.user() else { return Ok(None) };
    let asked = theirs.find::<Entity>().filter(Column::ApprovalId.eq(approval));
    let asked = asked.filter(Column::ChannelId.eq(channel)).filter(Column::UserId.eq(user));
    Ok(asked.one(theirs.core.db.read()).await?)
}

/// Decides if the request is as it was shown. Returns the answer to the person.
async fn decide(
    theirs: &Scope,
    (ask, digest): (&Model, &str),
    read: impl Fn(&Shown) -> Option<Answer>,
) -> Result<String> {
    let Some(shown) = approvals::load_shown(theirs, ask.approval_id).await? else {
        return Ok(NOT_YOURS.to_owned());
    };
    if shown.status != ApprovalStatus::Pending {
        return Ok(wording::outcome(&shown));
    }
    // A tap may arrive before the sent message has been recorded.
    let had_buttons = ask.digest.is_some() || ask.state == AskState::ToAsk;
    if !had_buttons || !wording::is_decidable(&shown, load_terms(theirs, &shown).await?.risk_limit) {
        return Ok(TOO_RISKY.to_owned());
    }
    if shown.digest != digest {
        return Ok(CHANGED.to_owned());
    }
    let Some(answer) = read(&shown) else { return Ok(UNCLEAR.to_owned()) };
    match approvals::answer_shown(theirs, ask.approval_id, answer, digest).await {
        Ok(()) => describe_state(theirs, ask.approval_id).await,
        Err(problem) => explain_refusal(theirs, ask.approval_id, problem).await,
    }
}

/// The current state of the approval, in a sentence.
async fn describe_state(theirs: &Scope, id: ApprovalId) -> Result<String> {
    let shown = approvals::load_shown(theirs, id).await?;
    Ok(shown.map_or_else(|| NOT_YOURS.to_owned(), |shown| wording::outcome(&shown)))
}

/// Why the approval was not decided. The service's own failures stay errors, so that the vendor delivers the event
/// again.
async fn explain_refusal(theirs: &Scope, id: ApprovalId, problem: Problem) -> Result<String> {
    match problem.code {
        Code::ApprovalNotPending => describe_state(theirs, id).await,
        Code::Conflict => Ok(CHANGED.to_owned()),
        Code::PermissionDenied | Code::NotFound => Ok(NOT_YOURS.to_owned()),
        Code::ValidationFailed => Ok(UNCLEAR.to_owned()),
        _ => Err(problem),
    }
}
