//! Who is notified of an event, and when.
//!
//! Of an approval: the assignee; if there is none, those whom its channel names, if it says that this failed; then those who
//! started its conversation or watch it; if there are none either, OWNER and ADMIN. Members who may not see it, or can't be
//! reached, don't count. Of an agent that failed: anyone who has it in their settings. Those who have linked a chat are asked there, too (`slices/asks`), regardless of their settings for mail.

use jiff::tz::TimeZone;
use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Statement, Value};

use super::{
    are_on,
    settings::{column, pace},
};
use crate::{
    base::{
        enums::{NotificationKind, NotificationPace},
        ids::{AgentId, ApprovalId, UserId},
        permission::{Permission, Role},
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::store::Tx,
    slices::asks,
};

/// The hour of the day at which digests are sent.
const DIGEST_HOUR: i8 = 8;

/// The condition in SQL that the user `u` can be told about the organization `o`: the account can be used there, and its
/// address is the person's.
pub const REACHABLE: &str = "u.disabled_at IS NULL AND u.email_confirmed_at IS NOT NULL \
     AND NOT (o.require_second_factor AND u.totp_confirmed_at IS NULL)";

/// An approval was raised.
///
/// # Errors
/// The database is unreachable.
pub async fn approval_raised(tx: &Tx, id: ApprovalId) -> Result<()> {
    let what = NotificationKind::ApprovalRaised;
    let found = of_approval(tx, id, what).await?;
    asks::ask(tx, id, &found.iter().map(|person| person.id).collect::<Vec<_>>()).await?;
    write(tx, what, (Some(id), None), &found).await
}

/// An approval is about to expire.
///
/// # Errors
/// The database is unreachable.
pub async fn approval_expiring(tx: &Tx, id: ApprovalId) -> Result<()> {
    if !are_on(&tx.scope.core) {
        return Ok(());
    }
    let what = NotificationKind::ApprovalExpiring;
    let found = of_approval(tx, id, what).await?;
    write(tx, what, (Some(id), None), &found).await
}

/// An approval was assigned to a member. Anyone who assigns it to themselves knows.
///
/// # Errors
/// The database is unreachable.
pub async fn approval_assigned(tx: &Tx, id: ApprovalId, to: UserId) -> Result<()> {
    if tx.scope.request.caller.user() == Some(to) {
        return Ok(());
    }
    let what = NotificationKind::ApprovalAssigned;
    let found = people(tx, what, "m.user_id = $2", Some(to.0)).await?;
    asks::ask(tx, id, &found.iter().map(|person| person.id).collect::<Vec<_>>()).await?;
    write(tx, what, (Some(id), None), &found).await
}

/// The person has seen a new approval, and need not be told of it.
///
/// # Errors
/// The database is unreachable.
pub async fn forget_raised(tx: &Tx, id: ApprovalId, by: UserId) -> Result<()> {
    let sql = "DELETE FROM notifications WHERE organization_id = $1 AND approval_id = $2 AND user_id = $3 \
               AND what IN ('APPROVAL_RAISED', 'APPROVAL_ASSIGNED')";
    let values = [tx.scope.org.into(), id.into(), by.into()];
    let statement = Statement::from_sql_and_values(tx.scope.core.db.backend(), sql, values);
    tx.connection().execute_raw(statement).await?;
    Ok(())
}

/// An agent has failed.
///
/// # Errors
/// The database is unreachable.
pub async fn agent_failed(tx: &Tx, id: AgentId) -> Result<()> {
    if !are_on(&tx.scope.core) {
        return Ok(());
    }
    let what = NotificationKind::AgentFailed;
    let found = people(tx, what, "1 = 1", None).await?;
    write(tx, what, (None, Some(id)), &found).await
}

/// Who is concerned.
async fn of_approval(tx: &Tx, id: ApprovalId, what: NotificationKind) -> Result<Vec<Person>> {
    let assigned = "EXISTS (SELECT 1 FROM approvals a WHERE a.organization_id = m.organization_id AND a.id = $2 \
                    AND a.assignee_id = m.user_id)";
    let watching = "EXISTS (SELECT 1 FROM approvals a JOIN conversation_watches w ON w.organization_id = a.organization_id \
                    AND w.conversation_id = a.conversation_id WHERE a.organization_id = m.organization_id AND a.id = $2 \
                    AND w.user_id = m.user_id)";
    let answering = "m.role IN ('OWNER', 'ADMIN')";
    let (alerted, of) = (alerted(tx), Some(id.0));
    for (condition, value) in [(assigned, of), (&*alerted, of), (watching, of), (answering, None)] {
        let found = people(tx, what, condition, value).await?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// The condition in SQL that the channel names the member `m`, if the approval `$2` says that it failed.
fn alerted(tx: &Tx) -> String {
    let each = match tx.connection().get_database_backend() {
        DbBackend::Postgres => "json_array_elements_text",
        _ => "json_each",
    };
    format!(
        "m.user_id IN (SELECT CAST(e.value AS BIGINT) FROM approvals a JOIN channels c \
         ON c.organization_id = a.organization_id AND c.id = a.channel_id, {each}(c.alert_recipient_user_ids) e \
         WHERE a.organization_id = $1 AND a.id = $2 AND a.kind = 'CHANNEL_ERROR')"
    )
}

/// A member who is concerned.
struct Person {
    id: UserId,
    pace: NotificationPace,
    /// The person's time zone, or the organization's.
    zone: String,
}

/// The members who meet `condition` (on the member `m`; `$2` is `value`), may see what it is about, and can be reached.
async fn people(tx: &Tx, what: NotificationKind, condition: &str, value: Option<i64>) -> Result<Vec<Person>> {
    let sql = format!(
        "SELECT m.user_id, m.role, s.{}, COALESCE(u.time_zone, o.timezone) FROM members m \
         JOIN users u ON u.id = m.user_id JOIN organizations o ON o.id = m.organization_id \
         LEFT JOIN notification_settings s ON s.organization_id = m.organization_id AND s.user_id = m.user_id \
         WHERE m.organization_id = $1 AND {REACHABLE} AND {condition} ORDER BY m.user_id",
        column(what)
    );
    let values = std::iter::once(tx.scope.org.into()).chain(value.map(Value::from));
    let found = Statement::from_sql_and_values(tx.scope.core.db.backend(), sql, values);
    let rows = tx.connection().query_all_raw(found).await?;
    let mut people = Vec::with_capacity(rows.len());
    for row in rows {
        let role: Role = row.try_get_by::<String, _>(1)?.parse().map_err(Problem::internal)?;
        if tx.scope.core.policy.allows(tx.scope.org, role, permission(what)) {
            people.push(person(&row, what, role)?);
        }
    }
    Ok(people)
}

fn person(row: &QueryResult, what: NotificationKind, role: Role) -> Result<Person> {
    Ok(Person {
        id: row.try_get_by(0)?,
        pace: pace(what, row.try_get_by(2)?, role),
        zone: row.try_get_by(3)?,
    })
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
    (approval, agent): (Option<ApprovalId>, Option<AgentId>),
    people: &[Person],
) -> Result<()> {
    if !are_on(&tx.scope.core) {
        return Ok(());
    }
    let sql = "INSERT INTO notifications (organization_id, user_id, what, approval_id, agent_id, due_at) \
               VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT ";
    let same = match approval {
        Some(_) => "(organization_id, approval_id, user_id, what) WHERE approval_id IS NOT NULL",
        None => "(organization_id, agent_id, user_id) WHERE agent_id IS NOT NULL",
    };
    let sql = format!("{sql}{same} DO UPDATE SET raised = notifications.raised + 1");
    for person in people {
        let due = match person.pace {
            NotificationPace::Off => continue,
            NotificationPace::AtOnce => tx.now,
            NotificationPace::Digest => next_digest(tx.now, &person.zone),
        };
        let (org, user, what) = (tx.scope.org.into(), person.id.into(), what.as_str().into());
        let values = [org, user, what, approval.into(), agent.into(), due.into()];
        let statement = Statement::from_sql_and_values(tx.scope.core.db.backend(), &sql, values);
        tx.connection().execute_raw(statement).await?;
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
