//! Who is notified of an event, and when.
//!
//! Of an approval: the assignee; if there is none, those whom its channel names, if it says that this failed; then those who
//! started its conversation or watch it; if there are none either, OWNER and ADMIN. Members who may not see it, or can't be
//! reached, don't count. Of an agent that failed: anyone who has it in their settings. Those who have linked a chat are asked there, too (`domain/chat_approvals`), regardless of their settings for mail.

use jiff::tz::TimeZone;

use super::{
    are_on,
    queries::{self, Member, Who},
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
    let found = of_approval(tx, id, what).await?;
    chat_approvals::ask(tx, id, &found.iter().map(|person| person.id).collect::<Vec<_>>()).await?;
    write(tx, what, (Some(id), None), &found).await
}

/// An approval is about to expire.
pub async fn approval_expiring(tx: &Tx, id: ApprovalId) -> Result<()> {
    if !are_on(&tx.scope.core) {
        return Ok(());
    }
    let what = NotificationKind::ApprovalExpiring;
    let found = of_approval(tx, id, what).await?;
    write(tx, what, (Some(id), None), &found).await
}

/// An approval was assigned to a member. Anyone who assigns it to themselves knows.
pub async fn approval_assigned(tx: &Tx, id: ApprovalId, to: UserId) -> Result<()> {
    if tx.scope.request.caller.user() == Some(to) {
        return Ok(());
    }
    let what = NotificationKind::ApprovalAssigned;
    let found = people(tx, what, Who::Member(to)).await?;
    chat_approvals::ask(tx, id, &found.iter().map(|person| person.id).collect::<Vec<_>>()).await?;
    write(tx, what, (Some(id), None), &found).await
}

/// The person has seen a new approval, and need not be told of it.
pub async fn forget_raised(tx: &Tx, id: ApprovalId, by: UserId) -> Result<()> {
    queries::remove_raised(tx, id, by).await
}

/// An agent has failed.
pub async fn agent_failed(tx: &Tx, id: AgentId) -> Result<()> {
    if !are_on(&tx.scope.core) {
        return Ok(());
    }
    let what = NotificationKind::AgentFailed;
    let found = people(tx, what, Who::Everyone).await?;
    write(tx, what, (None, Some(id)), &found).await
}

/// Who is concerned.
async fn of_approval(tx: &Tx, id: ApprovalId, what: NotificationKind) -> Result<Vec<Person>> {
    for who in [Who::Assignee(id), Who::Alerted(id), Who::Watchers(id), Who::Answering] {
        let found = people(tx, what, who).await?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// A member who is concerned.
struct Person {
    id: UserId,
    pace: NotificationPace,
    /// The person's time zone, or the organization's.
    zone: String,
}

/// Those of these members who may see what it is about, and can be reached.
async fn people(tx: &Tx, what: NotificationKind, who: Who) -> Result<Vec<Person>> {
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

/// What a member needs to be told of it.
pub(super) const fn permission(what: NotificationKind) -> Permission {
    match what {
        NotificationKind::AgentFailed => Permission::AgentView,
        NotificationKind::ApprovalRaised
        | NotificationKind::ApprovalAssigned
        | NotificationKind::ApprovalExpiring => Permission::ApprovalView,
    }
}

/// Notes what these people are to be told. What someone is still to be told is not told twice, but counted: anyone who is
/// collecting it has looked before.
async fn write(
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

/// The next time after `now` at which digests are sent in this time zone.
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
    fn a_digest_comes_at_eight_where_the_person_is() {
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
