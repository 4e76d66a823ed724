//! The poll: one statement that finds the due work in all tables, so that an idle service rarely queries its database.

use crate::{
    base::problem::Result,
    core::{
        Core,
        access::org_policies::{Mark, NEWEST},
        audit,
        store::sql::{EveryOrgSql, RunSql as _, every_org_sql, row},
    },
    domain::{
        approvals, chat_approvals, deliveries, event_endpoints, launch, mails, notifications, orgs, spending,
    },
};

row! {
    /// The kinds of work that are due.
    #[derive(Clone, Debug, Default)]
    pub struct Due {
        /// Agents whose restart is due.
        restarts: bool,
        /// Agents that have been starting for too long.
        late_starts: bool,
        /// Queued turns of organizations released from an emergency stop.
        letting_go: bool,
        /// Expired leases.
        leases_over: bool,
        /// Agents' spending limits that have ended.
        limits_over: bool,
        /// Approvals past their deadline.
        overdue: bool,
        /// Approvals whose reminder is due.
        to_remind: bool,
        /// Due notifications of people outside their quiet time.
        notifications: bool,
        /// Mails.
        mails: bool,
        /// Parts of messages to channels.
        parts: bool,
        /// Unsent parts of messages in channels that no longer send.
        left: bool,
        /// Approvals to be shown in chats.
        asks: bool,
        /// Events for endpoints.
        events: bool,
        /// Lines of the audit log to be sealed.
        unsealed: bool,
        /// The number of the newest policy version.
        newest_policy: i64,
        /// The sum of the numbers of the newest policy versions ([`NEWEST`]).
        newest_policies: i64,
    }
}

const POLL: EveryOrgSql = every_org_sql!(
    "SELECT EXISTS (SELECT 1 FROM ",
    launch::RESTART_DUE,
    ") AS restarts, EXISTS (SELECT 1 FROM ",
    launch::SPAWNING,
    " AND t.status_changed_at <= $3) AS late_starts, EXISTS (SELECT 1 FROM ",
    orgs::LETTING_GO,
    ") AS letting_go, EXISTS (SELECT 1 FROM ",
    spending::LEASE_OVER,
    ") AS leases_over, EXISTS (SELECT 1 FROM ",
    spending::LIMIT_OVER,
    ") AS limits_over, EXISTS (SELECT 1 FROM ",
    approvals::OVERDUE,
    ") AS overdue, EXISTS (SELECT 1 FROM ",
    approvals::TO_REMIND,
    ") AS to_remind, EXISTS (SELECT 1 FROM ",
    notifications::TO_COLLECT,
    ") AS notifications, EXISTS (SELECT 1 FROM ",
    mails::DUE,
    ") AS mails, EXISTS (SELECT 1 FROM ",
    deliveries::PART_DUE,
    ") AS parts, EXISTS (SELECT 1 FROM ",
    deliveries::LEFT,
    ") AS \"left\", EXISTS (SELECT 1 FROM ",
    chat_approvals::ASK_DUE,
    ") AS asks, EXISTS (SELECT 1 FROM ",
    event_endpoints::EVENT_DUE,
    ") AS events, EXISTS (SELECT 1 FROM ",
    audit::UNSEALED,
    ") AS unsealed, COALESCE(MAX(newest.id), 0) AS newest_policy, \
     CAST(COALESCE(SUM(newest.id), 0) AS BIGINT) AS newest_policies FROM ",
    NEWEST
);

/// Runs the poll.
pub async fn poll(core: &Core) -> Result<Due> {
    let values = [core.clock.now().into(), audit::floor(core).into(), launch::half_deadline(core).into()];
    Ok(core.db.every_org().one(POLL, values).await?.unwrap_or_default())
}

impl Due {
    /// Whether the policy or its versions have changed since the job last followed them.
    pub fn has_policies(core: &Core, due: &Self) -> bool {
        let mark = Mark { newest: due.newest_policy, sum: due.newest_policies };
        core.access.rules.differ(mark, &core.policy.status().version)
    }
}
