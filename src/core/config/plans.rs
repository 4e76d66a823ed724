//! The limits of the plans: data, from `plans.toml` and the operator's optional file on top of it.

use std::path::Path;

use serde::Deserialize;
use toml::{Table, Value};

use super::{error::ConfigError, settings};
use crate::base::enums::Plan;

/// The limits that are built in.
const BUILT_IN: &str = include_str!("plans.toml");
/// The largest value of a limit: sums with it must not overflow, regardless of senders and hosts.
const MOST: i64 = 1_000_000_000;

/// The limits of an organization on a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanLimits {
    /// The most agents.
    pub max_agents: i64,
    /// The most servers.
    pub max_servers: i64,
    /// The most channels per agent.
    pub channels_per_agent: i64,
    /// The shortest interval between scheduled runs.
    pub min_cron_interval_minutes: i64,
    /// The shortest interval between polls of a mailbox.
    pub min_mail_poll_minutes: i64,
    /// The most diagnostic runs per month.
    pub doctor_runs_per_month: i64,
    /// The most scheduled runs with a model per month.
    pub cron_llm_runs_per_month: i64,
    /// The most versions kept of a file.
    pub file_versions: i64,
    /// The most members.
    pub max_members: i64,
    /// The most open invitations.
    pub max_open_invitations: i64,
    /// The most service tokens that are not revoked.
    pub max_service_tokens: i64,
    /// The most images, archived ones included.
    pub max_images: i64,
    /// The most credentials, archived ones included.
    pub max_credentials: i64,
    /// The most MCP servers, archived ones included.
    pub max_mcp_servers: i64,
    /// The most skills, archived ones included.
    pub max_skills: i64,
    /// The most space for attachments, pictures and skills, in MiB.
    pub max_stored_mib: i64,
}

/// The limits of every plan.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "UPPERCASE")]
pub struct Plans {
    free: PlanLimits,
    starter: PlanLimits,
    pro: PlanLimits,
    business: PlanLimits,
    enterprise: PlanLimits,
}

impl Plans {
    /// This plan's limits.
    #[must_use]
    pub fn limits(&self, plan: Plan) -> &PlanLimits {
        match plan {
            Plan::Free => &self.free,
            Plan::Starter => &self.starter,
            Plan::Pro => &self.pro,
            Plan::Business => &self.business,
            Plan::Enterprise => &self.enterprise,
        }
    }

    /// Every plan with its limits.
    pub fn iter(&self) -> impl Iterator<Item = (Plan, &PlanLimits)> {
        Plan::ALL.iter().map(|&plan| (plan, self.limits(plan)))
    }

    /// The built-in limits, overridden by those of the file.
    pub(super) fn read(path: Option<&Path>) -> Result<Self, ConfigError> {
        let mut mistakes = Vec::new();
        let mut limits = settings::parse("the built-in plans", BUILT_IN, &mut mistakes);
        if let Some(path) = path {
            let name = path.display().to_string();
            match std::fs::read_to_string(path) {
                Ok(text) => {
                    let over = settings::parse(&name, &text, &mut mistakes);
                    overlay(&name, &mut limits, over, &mut mistakes);
                }
                Err(error) => mistakes.push(format!("{name}: {error}")),
            }
        }
        if !mistakes.is_empty() {
            return Err(ConfigError(mistakes));
        }
        Value::Table(limits)
            .try_into()
            .map_err(|error| ConfigError(vec![format!("plans: {}", error.message())]))
    }
}

/// Overrides the built-in limits, which also define the valid plans and limits, with those of a file.
fn overlay(name: &str, limits: &mut Table, over: Table, mistakes: &mut Vec<String>) {
    for (plan, changes) in over {
        let Some(Value::Table(known)) = limits.get_mut(&plan) else {
            let hint = settings::hint(&plan, limits.keys().map(String::as_str));
            mistakes.push(format!("{name}: unknown plan {plan}{hint}"));
            continue;
        };
        let Value::Table(changes) = changes else {
            mistakes.push(format!("{name}: {plan} must be a section: write [{plan}]"));
            continue;
        };
        for (limit, value) in changes {
            let least = i64::from(limit.starts_with("min_") || limit == "file_versions");
            match (known.get_mut(&limit), &value) {
                (None, _) => {
                    let hint = settings::hint(&limit, known.keys().map(String::as_str));
                    mistakes.push(format!("{name}: unknown limit {plan}.{limit}{hint}"));
                }
                (Some(known), Value::Integer(number)) if (least..=MOST).contains(number) => *known = value,
                _ => mistakes
                    .push(format!("{name}: {plan}.{limit} must be a whole number from {least} to {MOST}")),
            }
        }
    }
}
