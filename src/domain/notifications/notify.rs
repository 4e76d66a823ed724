//! The recipients and times of notifications.
//!
//! An approval notifies the first of these groups that has members who may see it and can be reached: the assignee; for
//! a channel error, the channel's alert recipients; the people who started its conversation or watch it; OWNER and
//! ADMIN. A failed agent notifies the members who have chosen that in their settings. Members who have linked a chat
//! are asked there, too (`domain/chat_approvals`), regardless of their mail settings.

use jiff::tz::TimeZone;

use super::{
    are_on,
    queries::{self, Member, MemberFilter},
    settings::pace,
};
use crate::{
    base::{
        enums::{NotificationKind, NotificationPace},
        ids::{AgentId, ApprovalId, UserId},
        permission::Permission,
        problem::Result,
        time::Timestamp,
    },
    core::store::Tx,
    domain::chat_approvals,
};

/// The hour of the day at which digests are sent.
const DIGEST_HOUR: i8 = 8;

/// An approval was raised.
pub async fn approval_raised(tx: &Tx, id: ApprovalId) -> Result<()> {
    let what = NotificationKind::ApprovalRaised;
    let found = recipients_of_approval(tx, id, what).await?;
    chat_approvals::ask(tx, id, &found.iter().map(|person| person.id).collect::<Vec<_>>()).await?;
    store(tx, what, (Some(id), None), &found).await
}

/// An approval is about to expire.
pub async fn approval_expiring(tx: &Tx, id: ApprovalId) -> Result<()> {
    if !are_on(&tx.scope.core) {
        return Ok(());
    }
    let what = NotificationKind::ApprovalExpiring;
    let found = recipients_of_approval(tx, id, what).await?;
    store(tx, what, (Some(id), None), &found).await
}

/// An approval was assigned to a member. Not notified if they assigned it to themselves.
pub async fn approval_assigned(tx: &Tx, id: ApprovalId, to: UserId) -> Result<()> {
    if tx.scope.request.caller.user() == Some(to) {
        return Ok(());
    }
    let what = NotificationKind::ApprovalAssigned;
    let found = recipients(tx, what, MemberFilter::Member(to)).await?;
    chat_approvals::ask(tx, id, &found.iter().map(|person| person.id).collect::<Vec<_>>()).await?;
    store(tx, what, (Some(id), None), &found).await
}

/// Removes notifications of a new approval that the person has already seen.
pub async fn forget_raised(tx: &Tx, id: ApprovalId, by: UserId) -> Result<()> {
    queries::remove_raised(tx, id, by).await
}

/// An agent has failed.
pub async fn agent_failed(tx: &Tx, id: AgentId) -> Result<()> {
    if !are_on(&tx.scope.core) {
        return Ok(());
    }
    let what = NotificationKind::AgentFailed;
    let found = recipients(tx, what, MemberFilter::Everyone).await?;
    store(tx, what, (None, Some(id)), &found).await
}

/// The first group of recipients that is not empty.
async fn recipients_of_approval(tx: &Tx, id: ApprovalId, what: NotificationKind) -> Result<Vec<Person>> {
    for who in [
        MemberFilter::Assignee(id),
        MemberFilter::Alerted(id),
        MemberFilter::Watchers(id),
        MemberFilter::Answering,
    ] {
        let found = recipients(tx, what, who).await?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// A recipient.
struct Person {
    id: UserId,
    pace: NotificationPace,
    /// The person's time zone, or the organization's.
    zone: String,
}

/// The members of a group who may see the subject and can be reached.
async fn recipients(tx: &Tx, what: NotificationKind, who: MemberFilter) -> Result<Vec<Person>> {
    let mut found = queries::reachable(tx, who).await?;
    found.retain(|member| tx.scope.core.policy.allows(tx.scope.org, member.role, permission(what)));
    Ok(found.into_iter().map(|member| person(member, what)).collect())
}

fn person(member: Member, what: NotificationKind) -> Person {
    let chosen = match what {
        NotificationKind::ApprovalRaised | NotificationKind::ApprovalAssigned => member.approval_raised,
        NotificationKind::ApprovalExpiring => member.approval_expiring,
        NotificationKind::AgentFailed => member.agent_failed,
    };
    Person { id: member.user_id, pace: pace(what, chosen, member.role), zone: member.zone }
}

/// The permission that a member needs to be notified.
pub(super) const fn permission(what: NotificationKind) -> Permission {
    match what {
        NotificationKind::AgentFailed => Permission::AgentView,
        NotificationKind::ApprovalRaised
        | NotificationKind::ApprovalAssigned
        | NotificationKind::ApprovalExpiring => Permission::ApprovalView,
    }
}

/// Stores a notification for each of these people. A notification that is still stored is counted again instead of
/// duplicated, so that a replica that has already read it does not delete it.
async fn store(
    tx: &Tx,
    what: NotificationKind,
    about: (Option<ApprovalId>, Option<AgentId>),
    people: &[Person],
) -> Result<()> {
    if !are_on(&tx.scope.core) {
        return Ok(());
    }
    for person in people {
        let due = match person.pace {
            NotificationPace::Off => continue,
            NotificationPace::AtOnce => tx.now,
            NotificationPace::Digest => next_digest(tx.now, &person.zone),
        };
        queries::store(tx, person.id, what, about, due).await?;
    }
    Ok(())
}

/// The time zone of this name, or UTC.
pub(super) fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap_or(TimeZone::UTC)
}

/// The time of the next digest after `now` in this time zone.
fn next_digest(now: Timestamp, name: &str) -> Timestamp {
    let in_a_day = now.plus(std::time::Duration::from_hours(24));
    let Ok(instant) = jiff::Timestamp::from_millisecond(now.0) else { return in_a_day };
    let here = instant.to_zoned(zone(name));
    let at = |date: jiff::civil::Date| {
        date.at(DIGEST_HOUR, 0, 0, 0).to_zoned(here.time_zone().clone()).map(|at| at.timestamp())
    };
    let today = at(here.date());
    let next = match today {
        Ok(today) if today > instant => Ok(today),
        _ => here.date().tomorrow().and_then(at),
    };
    next.map_or(in_a_day, |next| Timestamp(next.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_come_at_eight_in_the_time_zone_of_the_person() {
        let next = |now: &str, zone: &str| next_digest(now.parse().unwrap(), zone).to_string();
        assert_eq!(next("2026-06-01T12:00:00.000Z", "UTC"), "2026-06-02T08:00:00.000Z");
        assert_eq!(next("2026-06-01T07:59:59.999Z", "UTC"), "2026-06-01T08:00:00.000Z");
        assert_eq!(next("2026-06-01T08:00:00.000Z", "UTC"), "2026-06-02T08:00:00.000Z");
        assert_eq!(next("2026-06-01T12:00:00.000Z", "Asia/Tokyo"), "2026-06-01T23:00:00.000Z");
        // The clocks go forward in the night between.
        assert_eq!(next("2026-03-28T12:00:00.000Z", "Europe/Berlin"), "2026-03-29T06:00:00.000Z");
        assert_eq!(next("2026-06-01T12:00:00.000Z", "Nowhere/Land"), "2026-06-02T08:00:00.000Z");
    }
}
