//! The look: what has become due in all tables, in one statement, so that an idle service asks its database little.

use crate::{
    base::problem::Result,
    core::{
        Core,
        access::org_policies::{Mark, NEWEST},
        audit,
        store::sql::{Door as _, EveryOrgSql, every_org_sql, row},
    },
    domain::{approvals, chat_approvals, deliveries, launch, mails, notifications, orgs, spending},
};

row! {
    /// Whether there is work for a job.
    #[derive(Clone, Debug, Default)]
    pub struct Due {
        /// Agents to be started again.
        restarts: bool,
        /// Agents that have been starting for long.
        late_starts: bool,
        /// Queued turns of organizations that go on.
        letting_go: bool,
        /// Leases that are over.
        leases_over: bool,
        /// Limits of agents that are over.
        limits_over: bool,
        /// Approvals past their deadline.
        overdue: bool,
        /// Approvals that people are reminded of.
        to_remind: bool,
        /// Notifications that people are due to get.
        notifications: bool,
        /// Mails.
        mails: bool,
        /// Parts of messages to channels.
        parts: bool,
        /// Parts of messages in channels that send no more.
        left: bool,
        /// Approvals to be shown in chats.
        asks: bool,
        /// Lines of the audit log to be sealed.
        unsealed: bool,
        /// The number of the newest policy version.
        newest_policy: i64,
        /// The sum of the numbers of the newest ones.
        newest_policies: i64,
    }
}

const LOOK: EveryOrgSql = every_org_sql!(
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
    ") AS to_remind, EXISTS (SELECT 1 FROM notifications n WHERE ",
    notifications::DUE,
    ") AS notifications, EXISTS (SELECT 1 FROM ",
    mails::DUE,
    ") AS mails, EXISTS (SELECT 1 FROM ",
    deliveries::PART_DUE,
    ") AS parts, EXISTS (SELECT 1 FROM ",
    deliveries::LEFT,
    ") AS \"left\", EXISTS (SELECT 1 FROM ",
    chat_approvals::ASK_DUE,
    ") AS asks, EXISTS (SELECT 1 FROM ",
    audit::UNSEALED,
    ") AS unsealed, COALESCE(MAX(newest.id), 0) AS newest_policy, \
     CAST(COALESCE(SUM(newest.id), 0) AS BIGINT) AS newest_policies FROM ",
    NEWEST
);

/// What is due now.
pub async fn look(core: &Core) -> Result<Due> {
    let values = [core.clock.now().into(), audit::floor(core).into(), launch::half_deadline(core).into()];
    Ok(core.db.every_org().one(LOOK, values).await?.unwrap_or_default())
}

impl Due {
    /// Whether the policy differs from the one that was followed last.
    pub fn has_policies(core: &Core, due: &Self) -> bool {
        let mark = Mark { newest: due.newest_policy, sum: due.newest_policies };
        core.access.rules.differ(mark, &core.policy.status().version)
    }
}
