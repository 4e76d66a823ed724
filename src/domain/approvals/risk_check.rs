//! Decides whether an action is allowed, needs a person's decision, or is refused.
//!
//! The risk rules (`core/config/risk.rs`) rate the action; the agent's thresholds decide. Each decision that needs no
//! person leaves an entry in the audit log, and a refusal is also shown in the conversation.

use muster_protocol::{
    DEEPEST,
    plan::{MCP_KIND, action_of_tool},
};
use sea_orm::{ColumnTrait, PaginatorTrait, QueryFilter, QueryOrder};

use super::{
    NewApproval, answers,
    entity::approvals,
    queries,
    raise::{INPUT_BYTES, is_too_long, raise},
};
use crate::{
    base::{
        enums::{ApprovalKind, ApprovalStatus, Severity},
        ids::AgentId,
        problem::Result,
    },
    core::{Core, config::RiskRules, store::Tx},
    domain::{
        agents::{ApprovalRules, LockedAgent},
        mcp_servers::tools::ToolRule,
    },
};

/// The risk from which agents ask, unless they have a threshold of their own.
pub const ASK: i64 = 40;
/// The risk from which actions are refused, unless the agent has a threshold of its own.
pub const BLOCK: i64 = 90;

/// The name of the rule in the audit log, where the risk of an MCP server's tool has decided.
const OF_TOOL: &str = "risk of the tool";

/// The consequence of an action's risk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RiskDecision {
    Allowed,
    /// A person decides.
    Asked,
    /// Refused: too risky.
    Blocked,
    /// Refused: the agent may not use such tools.
    Disabled,
    /// Refused: the MCP server was archived or taken from the agent.
    Unassigned,
    /// Refused: the MCP server's tool is switched off.
    SwitchedOff,
    /// Refused: the definition of the MCP server's tool has not been accepted.
    NotAccepted,
    /// Refused: a person would have to decide, but the input is too long or nested too deep to be shown whole.
    TooLong,
}

/// The risk of an action, and the decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RiskAssessment {
    /// From 0 to 100.
    pub risk: i64,
    pub rule: Option<String>,
    pub category: Option<String>,
    pub decision: RiskDecision,
}

impl RiskAssessment {
    /// The reason of the refusal, in words that follow "because".
    pub fn refusal(&self) -> String {
        match self.decision {
            RiskDecision::Disabled => "the agent may not use tools of this kind".to_owned(),
            RiskDecision::Unassigned => "the agent no longer has this MCP server".to_owned(),
            RiskDecision::SwitchedOff => "this tool of the MCP server is switched off".to_owned(),
            RiskDecision::NotAccepted => {
                "this tool's definition is new or has changed, and has not been accepted".to_owned()
            }
            RiskDecision::TooLong => {
                let most = INPUT_BYTES / 1024;
                format!(
                    "a person would have to decide, and its input is longer than the {most} KiB, or nested deeper than the {DEEPEST} \
                     levels, that people are shown"
                )
            }
            _ => format!("its risk is {}", self.risk),
        }
    }
}

/// Rates an action by the risk rules, and decides by the agent's approval rules. People's rule for the tool of an MCP
/// server goes first: its risk counts instead of the risk rules'.
pub fn assess_risk(
    rules: &RiskRules,
    approval_rules: &ApprovalRules,
    tool_rule: Option<ToolRule>,
    (kind, tool): (&str, &str),
    input: &serde_json::Value,
) -> RiskAssessment {
    let mut judgment = rules.judge(kind, tool, input);
    if let Some(risk) = tool_rule.and_then(|rule| rule.risk) {
        (judgment.risk, judgment.rule) = (risk, Some(OF_TOOL));
    }
    let is_new_host = tool == super::NETWORK;
    let decision = if approval_rules.disables(kind, tool) {
        RiskDecision::Disabled
    } else if tool_rule.is_some_and(|rule| !rule.is_enabled) {
        RiskDecision::SwitchedOff
    } else if tool_rule.is_some_and(|rule| !rule.is_accepted) {
        RiskDecision::NotAccepted
    } else if judgment.risk >= approval_rules.block.unwrap_or(BLOCK) {
        RiskDecision::Blocked
    } else if judgment.risk >= approval_rules.ask.unwrap_or(ASK) || judgment.is_of(&approval_rules.categories)
    {
        RiskDecision::Asked
    } else if is_new_host {
        // Thresholds don't apply to the network: members with `network.edit` decide which hosts may be reached.
        RiskDecision::Asked
    } else {
        RiskDecision::Allowed
    };
    let decision =
        if decision == RiskDecision::Asked && is_too_long(input) { RiskDecision::TooLong } else { decision };
    RiskAssessment {
        risk: judgment.risk,
        rule: judgment.rule.map(str::to_owned),
        category: judgment.category.map(str::to_owned),
        decision,
    }
}

/// The rule for a tool that is an action at a channel's vendor. If none of the risk rules applies, its own risk counts.
/// `None`: it is another tool.
pub(super) fn rule_of_action(rules: &RiskRules, tool: &str, input: &serde_json::Value) -> Option<ToolRule> {
    let own = muster_channels::action_risk(action_of_tool(tool)?)?;
    let is_named = rules.judge(MCP_KIND, tool, input).rule.is_some();
    Some(ToolRule { is_enabled: true, is_accepted: true, risk: (!is_named).then_some(own) })
}

pub const fn severity(risk: i64) -> Severity {
    match risk {
        ..40 => Severity::Low,
        40..70 => Severity::Medium,
        70..85 => Severity::High,
        _ => Severity::Critical,
    }
}

/// Raises an AUTH_REQUIRED for access to the agent's model, unless one is open.
pub async fn request_model_access(tx: &Tx, agent: AgentId, detail: String) -> Result<()> {
    if open_access_requests(tx, agent).count(tx.connection()).await? > 0 {
        return Ok(());
    }
    let new = NewApproval {
        body: Some(detail).filter(|detail| !detail.trim().is_empty()),
        severity: Severity::High,
        agent_id: Some(agent),
        ..NewApproval::new(ApprovalKind::AuthRequired, "The agent has no valid access to its model")
    };
    raise(tx, new).await?;
    Ok(())
}

/// Withdraws the approvals of [`request_model_access`]: the agent has access again, or was deleted.
pub async fn withdraw_model_access_requests(tx: &Tx, agent: &LockedAgent) -> Result<()> {
    let open =
        open_access_requests(tx, agent.id).order_by_asc(approvals::Column::Id).all(tx.connection()).await?;
    for approval in open {
        answers::withdraw(tx, &approval).await?;
    }
    Ok(())
}

/// The pending AUTH_REQUIREDs that [`request_model_access`] raised for an agent.
fn open_access_requests(tx: &Tx, agent: AgentId) -> sea_orm::Select<approvals::Entity> {
    tx.scope
        .find::<approvals::Entity>()
        .filter(approvals::Column::AgentId.eq(agent))
        .filter(approvals::Column::Kind.eq(ApprovalKind::AuthRequired))
        .filter(approvals::Column::Status.eq(ApprovalStatus::Pending))
        .filter(approvals::Column::RequestKey.is_null())
        .filter(approvals::Column::ConversationId.is_null())
}

/// Writes the rules' categories to the database, where queries for agents' records read them.
pub async fn store_categories(core: &Core) -> Result<()> {
    let categories = core.risk.categories();
    let known = queries::risk_categories(core).await?;
    for gone in known.iter().filter(|known| !categories.contains(known)) {
        queries::delete_risk_category(core, gone).await?;
    }
    for new in categories.iter().filter(|category| !known.contains(category)) {
        queries::add_risk_category(core, new).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn risk_rules() -> RiskRules {
        let config = crate::core::config::Config::read(None, std::collections::BTreeMap::new());
        config.unwrap().risk().unwrap()
    }

    fn with_thresholds(ask: Option<i64>, block: Option<i64>) -> ApprovalRules {
        ApprovalRules { ask, block, timeout_minutes: None, categories: Vec::new(), disabled: Vec::new() }
    }

    fn decisions(approval_rules: &ApprovalRules) -> Vec<RiskDecision> {
        let rules = risk_rules();
        let cases = [
            ("read", "cat", json!({ "path": "a" })),
            ("edit", "write", json!({ "path": "a" })),
            ("execute", "shell", json!({ "command": "ls" })),
            ("execute", "shell", json!({ "command": "sudo ls" })),
            ("execute", "shell", json!({ "command": "reboot" })),
        ];
        cases
            .iter()
            .map(|(kind, tool, input)| {
                assess_risk(&rules, approval_rules, None, (kind, tool), input).decision
            })
            .collect()
    }

    #[test]
    fn thresholds_decide_what_follows() {
        use RiskDecision::{Allowed, Asked, Blocked};
        assert_eq!(decisions(&with_thresholds(None, None)), [Allowed, Allowed, Asked, Asked, Blocked]);
        assert_eq!(
            decisions(&with_thresholds(Some(10), Some(50))),
            [Asked, Asked, Blocked, Blocked, Blocked]
        );
        assert_eq!(
            decisions(&with_thresholds(Some(100), Some(100))),
            [Allowed, Allowed, Allowed, Allowed, Allowed]
        );
        assert_eq!(decisions(&with_thresholds(Some(0), Some(0))), [Blocked; 5]);
        let mut named = with_thresholds(None, None);
        named.categories = vec!["Changing FILES".to_owned(), "being polite".to_owned()];
        assert_eq!(decisions(&named), [Allowed, Asked, Asked, Asked, Blocked]);
        let mut without = with_thresholds(Some(100), Some(100));
        without.disabled = vec!["execute".to_owned()];
        assert_eq!(decisions(&without)[..3], [Allowed, Allowed, RiskDecision::Disabled]);
    }

    #[test]
    fn the_rule_of_a_tool_goes_first() {
        use RiskDecision::{Allowed, Asked, Blocked, Disabled, NotAccepted, SwitchedOff};
        let rules = risk_rules();
        let mut approval_rules = with_thresholds(None, None);
        let judged = |approval_rules: &ApprovalRules, is_enabled, is_accepted, risk| {
            let rule = ToolRule { is_enabled, is_accepted, risk };
            assess_risk(&rules, approval_rules, Some(rule), ("other", "shop.pay"), &json!({}))
        };
        let decided = |enabled, accepted, risk| judged(&approval_rules, enabled, accepted, risk).decision;
        assert_eq!(
            [None, Some(10), Some(95)].map(|risk| decided(true, true, risk)),
            [Asked, Allowed, Blocked]
        );
        assert_eq!(
            [decided(false, false, Some(0)), decided(true, false, Some(0))],
            [SwitchedOff, NotAccepted]
        );
        let low = judged(&approval_rules, true, true, Some(10));
        assert_eq!(
            (low.risk, low.rule.as_deref(), low.category.as_deref()),
            (10, Some(OF_TOOL), Some("money"))
        );
        approval_rules.disabled = vec!["shop".to_owned()];
        assert_eq!(judged(&approval_rules, true, true, Some(0)).decision, Disabled);
    }

    #[test]
    fn an_action_has_its_own_risk_unless_a_rule_names_it() {
        let rule =
            "[[rule]]\nname = \"reactions\"\nrisk = 70\ncategory = \"messages\"\ntool = \"muster.react\"\n";
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("risk.toml");
        std::fs::write(&file, rule).unwrap();
        let config = crate::core::config::Config::read(None, std::collections::BTreeMap::new());
        let mut config = config.unwrap();
        config.risk_file = Some(file);
        let (built_in, own) = (risk_rules(), config.risk().unwrap());
        let approval_rules = with_thresholds(None, None);
        let judged = |rules: &RiskRules, tool: &str| {
            let input = json!({ "emoji": "eyes" });
            let tool_rule = rule_of_action(rules, tool, &input);
            let judged = assess_risk(rules, &approval_rules, tool_rule, (MCP_KIND, tool), &input);
            (judged.risk, judged.decision)
        };
        assert_eq!(judged(&built_in, "muster.react"), (20, RiskDecision::Allowed));
        assert_eq!(judged(&own, "muster.react"), (70, RiskDecision::Asked));
        assert_eq!(judged(&built_in, "muster.unknown"), (50, RiskDecision::Asked));
        assert_eq!(judged(&built_in, "mustering.react"), (50, RiskDecision::Asked));
    }

    #[test]
    fn what_a_person_decides_is_seen_whole() {
        let rules = risk_rules();
        let approval_rules = with_thresholds(None, None);
        let judged = |kind: &str, name: &str, bytes: usize| {
            let input = json!({ name: "x".repeat(bytes) });
            assess_risk(&rules, &approval_rules, None, (kind, "tool"), &input)
        };
        // {"text":""}
        let most = INPUT_BYTES - 11;
        assert_eq!(judged("execute", "text", most).decision, RiskDecision::Asked);
        let refused = judged("execute", "text", most + 1);
        assert_eq!((refused.decision, refused.refusal().contains("256 KiB")), (RiskDecision::TooLong, true));
        assert_eq!(judged("read", "text", most + 1).decision, RiskDecision::Allowed, "no one has to see it");
        assert_eq!(judged("execute", "token", most + 1).decision, RiskDecision::Asked, "as it is shown");
    }

    #[test]
    fn a_group_is_a_kind_or_a_server() {
        let mut approval_rules = with_thresholds(None, None);
        approval_rules.disabled = vec!["Git Hub".to_owned(), "fetch".to_owned()];
        for (kind, tool) in [
            ("other", "git hub.create_issue"),
            ("other", "mcp__Git_Hub__create"),
            ("fetch", "network"),
            ("fetch", "browse"),
        ] {
            assert!(approval_rules.disables(kind, tool), "{kind} {tool}");
        }
        for (kind, tool) in [("other", "git hubble.x"), ("other", "git hub"), ("read", "fetch.x1")] {
            assert!(!approval_rules.disables(kind, tool) || tool.starts_with("fetch."), "{kind} {tool}");
        }
    }

    #[test]
    fn a_new_host_is_never_allowed_by_thresholds() {
        let rules = risk_rules();
        let approval_rules = with_thresholds(Some(100), Some(100));
        let judged = assess_risk(
            &rules,
            &approval_rules,
            None,
            ("fetch", "network"),
            &json!({ "host": "a.example", "port": 443 }),
        );
        assert_eq!((judged.decision, judged.rule.as_deref()), (RiskDecision::Asked, Some("network")));
        assert_eq!(judged.category.as_deref(), Some("new hosts"));
    }
}
