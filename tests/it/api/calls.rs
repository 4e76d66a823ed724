//! A valid call to each operation of `/v1`, and the fields of its records: the specification's as it lists them, then ours.

use std::collections::BTreeMap;

use muster::api::rest::{ROUTES, Route};
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::harness::{Population, Spare, good_calls};

/// A call, spelled as in REST.
pub struct Call {
    pub operation: &'static str,
    pub method: Method,
    pub status: u16,
    /// The path parameters after `org_id`, in order.
    pub path: Vec<(String, Value)>,
    pub query: Vec<(String, Value)>,
    /// Null: no body.
    pub body: Value,
    template: &'static str,
}

impl Call {
    /// The path and the query string.
    pub fn url(&self, org: i64) -> String {
        let mut path = self.template.replace("{org_id}", &org.to_string());
        for (name, value) in &self.path {
            path = path.replace(&format!("{{{name}}}"), &text(value));
        }
        let query: Vec<String> =
            self.query.iter().map(|(name, value)| format!("{name}={}", text(value))).collect();
        if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
    }

    /// The call as variables of the stored document.
    pub fn variables(&self, org: i64) -> Value {
        let mut variables = Map::from_iter([("orgId".to_owned(), json!(org))]);
        for (name, value) in self.path.iter().chain(&self.query) {
            variables.insert(camel(name), value.clone());
        }
        if !self.body.is_null() {
            variables.insert("input".into(), keys(&self.body, &camel));
        }
        Value::Object(variables)
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub fn camel(name: &str) -> String {
    muster::base::spelling::camel_case(name)
}

/// `snake_case` of a response key. Snake-case keys stay as they are.
pub fn snake(name: &str) -> String {
    muster::base::spelling::snake_case(name)
}

/// The same value with different keys.
pub fn keys(value: &Value, rename: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| keys(item, rename)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (rename(name), keys(value, rename))).collect())
        }
        value => value.clone(),
    }
}

/// Calls to all operations on the records in `all`, in an order in which each succeeds.
pub fn calls(all: &Population, spare: Spare) -> Vec<Call> {
    let good = good_calls(all, spare);
    let place = |operation: &str| good.iter().position(|(name, _)| *name == root_field(operation));
    let mutations = BTreeMap::from_iter(good.clone());
    let mut calls: Vec<Call> = ROUTES.iter().map(|route| call(route, all, &mutations)).collect();
    // Reads come first, or they would contain the changes of the others.
    calls.sort_by_key(|call| (call.method != Method::GET, place(call.operation)));
    calls
}

fn call(route: &Route, all: &Population, mutations: &BTreeMap<&str, Value>) -> Call {
    let arguments = read(route.operation, all)
        .unwrap_or_else(|| mutations.get(&*root_field(route.operation)).expect(route.operation).clone());
    let in_path = route.path.split(['{', '}']).skip(1).step_by(2).filter(|name| *name != "org_id");
    let path: Vec<_> = in_path.map(|name| (name.to_owned(), arguments[camel(name)].clone())).collect();
    let is_query = |name: &str| name != "input" && !path.iter().any(|(used, _)| camel(used) == name);
    let query = arguments.as_object().unwrap().iter().filter(|(name, _)| is_query(name));
    Call {
        operation: route.operation,
        method: route.method.clone(),
        status: route.status.as_u16(),
        query: query.map(|(name, value)| (snake(name), value.clone())).collect(),
        body: keys(&arguments["input"], &snake),
        path,
        template: route.path,
    }
}

/// The arguments of an operation that reads.
fn read(operation: &str, all: &Population) -> Option<Value> {
    let (agent, conversation) = (all.agents[0], all.conversations[0]);
    Some(match operation {
        "ListServers" | "ListAgents" | "ListTurns" | "ListCredentials" | "ListMcpServers" | "ListSkills"
        | "ListMembers" | "ListUsage" => json!({ "page": 1, "limit": 50 }),
        "ListApprovals" => json!({ "page": 1, "limit": 50, "onlyPending": false }),
        "ListAgentConversations" => json!({ "agentId": agent }),
        "ListMessages" => json!({ "agentId": agent, "conversationId": conversation, "limit": 100 }),
        "SearchMessages" => json!({ "agentId": agent, "conversationId": conversation, "q": "message" }),
        "ListConversations" => json!({ "sort": "created", "limit": 10 }),
        "ListChannels" | "GetOrganization" => json!({}),
        "GetMcpServer" => json!({ "id": all.mcp_servers[0] }),
        "GetServer" => json!({ "id": all.servers[0] }),
        "GetApproval" => json!({ "id": all.approvals[0] }),
        "GetConversation" => json!({ "id": conversation }),
        "GetMessage" => json!({ "id": all.messages[0] }),
        "GetTurn" => json!({ "id": all.turns[0], "wait": 0 }),
        "GetAgent" => json!({ "id": agent }),
        "GetChannel" => json!({ "id": all.channels[0] }),
        "GetCredential" => json!({ "id": all.credentials[0] }),
        "GetSkill" => json!({ "id": all.skills[0] }),
        "GetMember" => json!({ "userId": all.members[0] }),
        _ => return None,
    })
}

/// The mutation behind an operation.
fn root_field(operation: &str) -> String {
    match operation.strip_prefix("Edit") {
        Some(record) => format!("update{record}"),
        None => operation[..1].to_lowercase() + &operation[1..],
    }
}

/// The fields of each record, in the order of the specification (or of the design page where the specification
/// shows none). A dotted name is a field of an object in the record, or of the items of a list in it.
pub const RECORDS: &[(&str, &str)] = &[
    (
        "Server",
        "id organization_id name description hostname address region labels status version protocol_version os arch \
         cpu_cores memory_mb disk_mb cpu_pct ram_pct load_1 load_5 load_15 uptime_seconds runtime runtime_version \
         agent_count agents_running has_provisioning_token provisioning_token_expires_at provisioned_at last_seen_at \
         created_by created_at updated_at",
    ),
    (
        "Approval",
        "id organization_id kind status outcome title body severity category risk agent_id agent conversation_id \
         conversation_ref message_seq request question answer decided_by decided_via comment expires_at resolved_at \
         delivered_at created_at updated_at",
    ),
    ("Approval.agent", "id name avatar_url"),
    ("Approval.request", "tool input digest"),
    ("Approval.question", "text options multiple allow_text"),
    ("Approval.answer", "options text"),
    ("Approval.decided_by", "id name kind"),
    (
        "Conversation",
        "id organization_id ref title status agent_id agent contact_id contact_name channel_id channel_name transport \
         model message_count last_seq last_message pending_approvals context_tokens opened_at last_activity_at \
         resolved_at archived_at created_at updated_at",
    ),
    ("Conversation.agent", "id name avatar_url"),
    ("Conversation.last_message", "seq role kind preview created_at"),
    (
        "Message",
        "id conversation_id seq role kind via_channel_id via_identity_id author_user_id author_name status delivery \
         content attachments created_at",
    ),
    ("Message.delivery", "status attempts error sent_at"),
    ("Message.attachments", "id filename mime_type size_bytes url uploaded_by_agent_id"),
    ("MessageHit", "seq id role kind created_at snippet ranges"),
    (
        "Agent",
        "id organization_id server_id image_id name description role status has_model_credential viewer_access \
         model_credential_type model_credential_provider model_credential_base_url credential_choice model_override \
         resolved_model running_model context_floor_tokens context_floor_memory_tokens \
         context_floor_recommended_tokens context_floor_cap_tokens analysis_score effort_override thinking_enabled \
         language mcp_http_bridge response_style response_format single_message no_emoji approval_ask_threshold \
         approval_block_threshold approval_timeout_minutes approval_categories disabled_tool_groups \
         memory_mb_override cpu_override hub_available voice_enabled network_privileged voice_id backup_schedule \
         timezone backup_cron backup_retention backup_freeze cost_guard_mode cost_guard_tokens_per_hour \
         cost_guard_action session_reset_mode session_reset_tokens last_backup_at last_action_at auth_failed_at \
         usage_resets_at usage_overage_resets_at usage_updated_at created_at updated_at container_id last_action \
         uptime_seconds tokens_used cost_micro usage_status usage_rate_limit_type usage_overage_status \
         usage_is_overage sync_pending avatar_url",
    ),
    (
        "Channel",
        "id agent_id transport scope direction name target bot_username has_token whitelist label_whitelist \
         mention_off webhook_registered inbound_path invite_url webhook code_host provider_account drive calendar \
         instructions notify_conversation_id notify_conversation is_active inactive_reason created_at \
         last_activity_at alert_recipient_user_ids",
    ),
    ("Channel.webhook", "outbound_url has_outbound_secret has_inbound_secret signature_header echo_filter"),
    ("Channel.webhook.echo_filter", "actor_paths self_ids"),
    ("Channel.code_host", "installation_id repos events listen_scope raw_payload oauth"),
    ("Channel.code_host.oauth", "authorized user_login expires_at"),
    ("Channel.provider_account", "connected provider_email"),
    ("Channel.drive", "folder_id folder_name"),
    ("Channel.calendar", "calendar_whitelist reminder_lead_minutes"),
    ("Channel.notify_conversation", "id ref title contact_name transport"),
    (
        "Credential",
        "id name description kind destinations assignment_count field_count agents created_by created_at updated_at \
         archived_at fields assignments members",
    ),
    ("Credential.agents", "id name avatar_url"),
    ("Credential.fields", "id label type position has_value"),
    ("Credential.assignments", "id name avatar_url assigned_at"),
    ("Credential.members", "user_id name email avatar_url granted_at"),
    (
        "McpServer",
        "id name description transport command args url auth assignment_count agents created_by created_at updated_at \
         archived_at assignments",
    ),
    ("McpServer.agents", "id name avatar_url"),
    ("McpServer.assignments", "id name avatar_url assigned_at"),
    (
        "Skill",
        "id name description content content_hash model effort assignment_count created_by created_at updated_at \
         archived_at assignments",
    ),
    ("Skill.assignments", "id name avatar_url assigned_at"),
    (
        "Organization",
        "id name plan avatar_url viewer_role viewer_permissions has_voice_key has_transcription_key \
         has_provider_oauth_app provider_oauth_client_id timezone trial_ends_at grace_until grace_from_plan limits \
         support_access_until support_access_granted_at support_access_granted_by customer_type tax_name tax_id \
         tax_country tax_address tax_postal_code tax_city vat_validated vat_validated_at backup_retention backup_cron \
         cost_guard_tokens_per_hour cost_guard_action session_reset_tokens transcript_retention_days \
         contracted_agents max_channels_per_agent doctor_runs_per_month cron_llm_runs_per_month file_versions \
         version_retention server_alert_ram_pct server_alert_cpu_pct server_alert_load_factor created_at updated_at",
    ),
    (
        "Organization.limits",
        "max_agents max_servers channels_per_agent min_cron_interval_minutes min_mail_poll_minutes \
         doctor_runs_per_month cron_llm_runs_per_month file_versions",
    ),
    ("Turn", TURN),
    ("TurnWithMessages", TURN_WITH_MESSAGES),
    ("TurnWithMessages.messages", POSTED),
    ("PostedMessage", POSTED),
    (
        "Member",
        "organization_id user_id name email email_confirmed avatar_url role has_second_factor created_at",
    ),
    (
        "Usage",
        "day agent_id agent provider model calls unpriced_calls input_tokens output_tokens cache_read_tokens \
         cache_write_tokens cost_micro",
    ),
    ("Usage.agent", "id name avatar_url"),
];

const TURN: &str = "id organization_id conversation_id agent_id cause caused_by_user_id caused_by_token_id state error model \
    input_tokens output_tokens cache_read_tokens cache_write_tokens cost_micro first_seq last_seq cancel_requested_at \
    started_at ended_at created_at updated_at";
const TURN_WITH_MESSAGES: &str = "id organization_id conversation_id agent_id cause caused_by_user_id caused_by_token_id state \
    error model input_tokens output_tokens cache_read_tokens cache_write_tokens cost_micro first_seq last_seq \
    cancel_requested_at started_at ended_at created_at updated_at messages";
/// A message, with its turn.
const POSTED: &str = "id conversation_id seq role kind via_channel_id via_identity_id author_user_id author_name status \
    delivery content attachments created_at turn_id";

/// The shape of an operation's answer: the record, and the fields of the object around it (none for a bare array or
/// record).
pub fn answers_with(operation: &str) -> (&'static str, &'static str) {
    match operation {
        "ListServers" => ("Server", "data total page limit"),
        "ListApprovals" => ("Approval", "data total page limit"),
        "ListAgents" => ("Agent", "data total page limit"),
        "ListConversations" => ("Conversation", "data total limit offset"),
        "ListMessages" => ("Message", "data total"),
        "SearchMessages" => ("MessageHit", "data total"),
        "ListAgentConversations" => ("Conversation", ""),
        "ListChannels" => ("Channel", ""),
        "ListTurns" => ("Turn", "data total page limit"),
        "ListCredentials" => ("Credential", "data total page limit"),
        "ListMcpServers" => ("McpServer", "data total page limit"),
        "ListSkills" => ("Skill", "data total page limit"),
        "ListMembers" => ("Member", "data total page limit"),
        "ListUsage" => ("Usage", "data total page limit"),
        "GetTurn" => ("TurnWithMessages", ""),
        "CancelTurn" | "RetryTurn" => ("Turn", ""),
        "PostMessage" | "GetMessage" => ("PostedMessage", ""),
        // The id.
        "DeleteServer" | "DeleteAgent" | "DeleteChannel" | "RemoveMember" => ("", ""),
        name if name.contains("McpServer") => ("McpServer", ""),
        name if name.contains("Skill") => ("Skill", ""),
        name if name.ends_with("Member") => ("Member", ""),
        name if name.ends_with("Conversation") => ("Conversation", ""),
        name if name.ends_with("Agent") => ("Agent", ""),
        name if name.ends_with("Approval") => ("Approval", ""),
        name if name.ends_with("Channel") || name.ends_with("WhitelistOrigin") => ("Channel", ""),
        name if name.contains("Credential") => ("Credential", ""),
        name if name.ends_with("Organization") => ("Organization", ""),
        name if name.ends_with("Server") || name.ends_with("ProvisioningToken") => ("Server", ""),
        other => panic!("what does {other} answer with?"),
    }
}
