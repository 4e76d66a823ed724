//! What people tap and write where they were asked. Every decision is checked at this moment: the link, the membership, the right,
//! the organization's limit of risk, and that the request is still the one that was shown.

use std::sync::Arc;

use muster_channels::{ButtonPress, Inbound, Proof};
use sea_orm::{ColumnTrait, QueryFilter};

use super::{
    Heard,
    entity::approval_asks::{Column, Entity, Model},
    rights,
    sending::terms,
    wording::{self, Pressed},
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

/// The answer to a person who may not decide, or no longer: nothing about the request.
const NOT_YOURS: &str = "You can't decide this here. Look at it in the panel.";
/// The request is another now.
const CHANGED: &str = "The request has changed since you were asked. Look at it in the panel.";
/// It is one that only the panel decides.
const TOO_RISKY: &str = "This can only be decided in the panel.";
/// A reply that says neither.
const UNCLEAR: &str = "Answer with the number of one of the choices.";

/// Someone tapped a button. Returns what they get to hear.
///
/// # Errors
/// The database is unreachable: nothing was decided.
pub async fn pressed(core: &Arc<Core>, place: (OrgId, ChannelId), press: &ButtonPress) -> Result<String> {
    let Some(pressed) = Pressed::read(&press.value) else { return Ok(NOT_YOURS.to_owned()) };
    if press.proof != Proof::Vendor || !press.is_private {
        return Ok(NOT_YOURS.to_owned());
    }
    let Some(theirs) = rights::of_origin(core, place, &press.origin.id).await? else {
        return Ok(NOT_YOURS.to_owned());
    };
    let Some(ask) = asked(&theirs, place.1, pressed.approval).await? else { return Ok(NOT_YOURS.to_owned()) };
    let choose = |shown: &Shown| {
        let option = shown.question.options.get(pressed.option)?;
        Some(Answer { options: vec![option.id.clone()], text: None })
    };
    decide(&theirs, (&ask, &pressed.digest), choose).await
}

/// Someone answered a message of ours: if it asked something, this is the answer.
///
/// # Errors
/// The database is unreachable: nothing was decided.
pub async fn answered(core: &Arc<Core>, place: (OrgId, ChannelId), message: &Inbound) -> Result<Heard> {
    let Some(to) = &message.answers else { return Ok(Heard::NotOurs) };
    if message.proof != Proof::Vendor || !message.thread.is_private || message.is_automatic {
        return Ok(Heard::NotOurs);
    }
    let system = Scope::system(core, place.0);
    let asked = system.find::<Entity>().filter(Column::ChannelId.eq(place.1)).filter(Column::VendorId.eq(to));
    let Some(ask) = asked.one(core.db.read()).await? else { return Ok(Heard::NotOurs) };
    let theirs = rights::of_origin(core, place, &message.origin.id).await?;
    let Some(theirs) = theirs.filter(|scope| scope.request.caller.user() == Some(ask.user_id)) else {
        return Ok(Heard::Answer(NOT_YOURS.to_owned()));
    };
    let Some(digest) = &ask.digest else { return Ok(Heard::Answer(TOO_RISKY.to_owned())) };
    let read = |shown: &Shown| wording::read(&shown.question, shown.kind, &message.text);
    decide(&theirs, (&ask, digest), read).await.map(Heard::Answer)
}

/// The message by which a member was asked.
async fn asked(theirs: &Scope, channel: ChannelId, approval: ApprovalId) -> Result<Option<Model>> {
    let Some(user) = theirs.request.caller.user() else { return Ok(None) };
    let asked = theirs.find::<Entity>().filter(Column::ApprovalId.eq(approval));
    let asked = asked.filter(Column::ChannelId.eq(channel)).filter(Column::UserId.eq(user));
    Ok(asked.one(theirs.core.db.read()).await?)
}

/// Decides, if everything is as it was shown. Returns what the person gets to hear.
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
    // A tap may come before it is noted what it taps.
    let had_buttons = ask.digest.is_some() || ask.state == AskState::ToAsk;
    if !had_buttons || !wording::is_decidable(&shown, terms(theirs, &shown).await?.risk_limit) {
        return Ok(TOO_RISKY.to_owned());
    }
    if shown.digest != digest {
        return Ok(CHANGED.to_owned());
    }
    let Some(answer) = read(&shown) else { return Ok(UNCLEAR.to_owned()) };
    match approvals::answer_shown(theirs, ask.approval_id, answer, digest).await {
        Ok(()) => said(theirs, ask.approval_id).await,
        Err(problem) => refused(theirs, ask.approval_id, problem).await,
    }
}

/// How it stands now.
async fn said(theirs: &Scope, id: ApprovalId) -> Result<String> {
    let shown = approvals::load_shown(theirs, id).await?;
    Ok(shown.map_or_else(|| NOT_YOURS.to_owned(), |shown| wording::outcome(&shown)))
}

/// Why it was not decided. What the service itself failed at is tried again.
async fn refused(theirs: &Scope, id: ApprovalId, problem: Problem) -> Result<String> {
    match problem.code {
        Code::ApprovalNotPending => said(theirs, id).await,
        Code::Conflict => Ok(CHANGED.to_owned()),
        Code::PermissionDenied | Code::NotFound => Ok(NOT_YOURS.to_owned()),
        Code::ValidationFailed => Ok(UNCLEAR.to_owned()),
        _ => Err(problem),
    }
}
