//! The kinds of records in files, and the fields of each: the table by which files are read, compared and written.
//!
//! A field has the name of its input in the schema, in snake_case, unless its form says otherwise. What a file leaves
//! out has the default of a new record ([`Field::unset`]).

use serde_json::{Value, json};

use crate::base::permission::Permission;

/// A kind of record, in the order in which changes are made: each only names records before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Image,
    Settings,
    Server,
    ModelCredential,
    Skill,
    McpServer,
    Credential,
    Agent,
    Channel,
}

/// What the table says about a kind.
pub struct About {
    pub kind: Kind,
    /// Its key in files.
    pub section: &'static str,
    /// Its name in sentences.
    pub word: &'static str,
    /// The list of existing records. Settings and model credentials come with the organization.
    pub list: &'static str,
    pub create: &'static str,
    pub update: &'static str,
    /// Deletes or archives one.
    pub remove: &'static str,
    /// Sets the agents that have one. Empty: agents have none of this kind.
    pub assign: &'static str,
    pub fields: &'static [Field],
}

/// How a field is written in files.
pub enum Form {
    /// As the schema takes it.
    Plain,
    /// A line, of which the service keeps no spaces at either end.
    Line,
    /// A text that a plan does not repeat.
    Long,
    /// The same, of which the service keeps no spaces at either end.
    Trimmed,
    /// `{env: NAME}` or `{file: PATH}`: a secret, which no service shows. It is sent again when one of these fields
    /// beside it changes: a service keeps a secret only for the place that it was set for.
    Secret(&'static [&'static str]),
    /// An object. Whether it can be absent in the record.
    Object(&'static [Field], bool),
    /// The name of a record of this kind. The input takes its id, under this name.
    Name(Kind, &'static str),
    /// The fields of a credential.
    Secrets,
    /// Addresses of members. The input takes their ids, under this name; empty: a mutation of its own sets them.
    Members(&'static str),
    /// Names of records that an agent has. A mutation of their own sets them.
    Assigned(Kind),
    /// The origins that may write to a channel. Mutations of their own add and remove each.
    Origins,
}

/// The value of a field that is not set.
enum Unset {
    Null,
    /// What the record has: a file without the field does not change it.
    Kept,
    False,
    True,
    List,
    Object,
    Text(&'static str),
    Number(i64),
}

pub struct Field {
    pub key: &'static str,
    pub form: Form,
    unset: Unset,
    /// Whether a running agent gets a change only when it is started again.
    pub restarts: bool,
    /// The permission that a change needs in addition to the one for the record.
    pub needs: Option<Permission>,
}

impl Field {
    const fn new(key: &'static str, form: Form, unset: Unset) -> Self {
        Self { key, form, unset, restarts: false, needs: None }
    }

    /// Only a launch applies a change (`domain/launch/plans/restart.rs`).
    const fn restarting(mut self) -> Self {
        self.restarts = true;
        self
    }

    /// A change needs this permission as well (`domain/agents/edit.rs`).
    const fn needing(mut self, permission: Permission) -> Self {
        self.needs = Some(permission);
        self
    }

    /// Whether the input of its record has it. Mutations of their own set the others.
    pub fn is_input(&self) -> bool {
        !matches!(self.form, Form::Assigned(_) | Form::Origins | Form::Members(""))
    }

    /// Its name in the input.
    pub fn input(&self) -> &'static str {
        match self.form {
            Form::Name(_, name) | Form::Members(name) => name,
            _ => self.key,
        }
    }

    /// Whether a record keeps what it has if a file leaves the field out.
    pub const fn is_kept(&self) -> bool {
        matches!(self.unset, Unset::Kept)
    }

    /// The value of a new record.
    pub fn unset(&self) -> Value {
        match self.unset {
            Unset::Null | Unset::Kept => Value::Null,
            Unset::False => json!(false),
            Unset::True => json!(true),
            Unset::List => json!([]),
            Unset::Object => json!({}),
            Unset::Text(text) => json!(text),
            Unset::Number(number) => json!(number),
        }
    }
}

const fn value(key: &'static str) -> Field {
    Field::new(key, Form::Plain, Unset::Null)
}

const fn line(key: &'static str) -> Field {
    Field::new(key, Form::Line, Unset::Null)
}

const fn flag(key: &'static str) -> Field {
    Field::new(key, Form::Plain, Unset::False)
}

const fn list(key: &'static str) -> Field {
    Field::new(key, Form::Plain, Unset::List)
}

const fn choice(key: &'static str, unset: &'static str) -> Field {
    Field::new(key, Form::Plain, Unset::Text(unset))
}

const fn secret(key: &'static str, beside: &'static [&'static str]) -> Field {
    Field::new(key, Form::Secret(beside), Unset::Null)
}

const fn object(key: &'static str, fields: &'static [Field]) -> Field {
    Field::new(key, Form::Object(fields, false), Unset::Null)
}

const fn optional(key: &'static str, fields: &'static [Field]) -> Field {
    Field::new(key, Form::Object(fields, true), Unset::Null)
}

const fn names(key: &'static str, form: Form) -> Field {
    Field::new(key, form, Unset::List)
}

/// The kinds, in the order of [`Kind`].
pub static KINDS: [About; 9] = [
    About {
        kind: Kind::Image,
        section: "images",
        word: "image",
        list: "Images",
        create: "createImage",
        update: "updateImage",
        remove: "archiveImage",
        assign: "",
        fields: &[
            line("name"),
            value("description"),
            line("reference"),
            value("default_model"),
            value("profile"),
        ],
    },
    About {
        kind: Kind::Settings,
        section: "settings",
        word: "settings",
        list: "",
        create: "",
        update: "updateOrganization",
        remove: "",
        assign: "",
        fields: SETTINGS,
    },
    About {
        kind: Kind::Server,
        section: "servers",
        word: "server",
        list: "Servers",
        create: "createServer",
        update: "updateServer",
        remove: "deleteServer",
        assign: "",
        fields: &[
            line("name"),
            value("description"),
            value("hostname"),
            value("address"),
            value("region"),
            Field::new("labels", Form::Plain, Unset::Object),
        ],
    },
    About {
        kind: Kind::ModelCredential,
        section: "model_credentials",
        word: "model credential",
        list: "",
        create: "createModelCredential",
        update: "updateModelCredential",
        remove: "archiveModelCredential",
        assign: "",
        fields: &[
            line("name"),
            value("provider"),
            choice("type", "API_KEY"),
            value("base_url"),
            flag("is_default"),
            secret("secret", &["provider", "base_url"]),
        ],
    },
    About {
        kind: Kind::Skill,
        section: "skills",
        word: "skill",
        list: "Skills",
        create: "createSkill",
        update: "updateSkill",
        remove: "archiveSkill",
        assign: "setSkillAgents",
        fields: &[
            line("name"),
            value("description"),
            value("model"),
            value("effort"),
            Field::new("content", Form::Long, Unset::Text("")),
        ],
    },
    About {
        kind: Kind::McpServer,
        section: "mcp_servers",
        word: "MCP server",
        list: "McpServers",
        create: "createMcpServer",
        update: "updateMcpServer",
        remove: "archiveMcpServer",
        assign: "setMcpServerAgents",
        fields: &[
            line("name"),
            value("description"),
            value("transport"),
            value("command"),
            list("args"),
            value("url"),
            list("auth"),
            choice("workspace", "NONE"),
        ],
    },
    About {
        kind: Kind::Credential,
        section: "credentials",
        word: "credential",
        list: "Credentials",
        create: "createCredential",
        update: "updateCredential",
        remove: "archiveCredential",
        assign: "setCredentialAgents",
        fields: &[
            line("name"),
            value("description"),
            value("kind"),
            list("destinations"),
            flag("agent_may_read"),
            Field::new("fields", Form::Secrets, Unset::List),
            names("members", Form::Members("")),
        ],
    },
    About {
        kind: Kind::Agent,
        section: "agents",
        word: "agent",
        list: "AgentSettings",
        create: "createAgent",
        update: "updateAgent",
        remove: "deleteAgent",
        assign: "",
        fields: AGENT,
    },
    About {
        kind: Kind::Channel,
        section: "channels",
        word: "channel",
        list: "Channels",
        create: "createChannel",
        update: "updateChannel",
        remove: "deleteChannel",
        assign: "",
        fields: CHANNEL,
    },
];

impl Kind {
    pub fn about(self) -> &'static About {
        &KINDS[self as usize]
    }
}

const SETTINGS: &[Field] = &[
    choice("timezone", "UTC"),
    choice("currency", "USD"),
    value("monthly_budget_micro"),
    choice("budget_action", "PAUSE"),
    value("cost_guard_tokens_per_hour"),
    choice("cost_guard_action", "NOTIFY"),
    value("session_reset_tokens"),
    Field::new("default_image", Form::Name(Kind::Image, "default_image_id"), Unset::Null),
    value("backup_cron"),
    value("backup_retention"),
    value("transcript_retention_days"),
    choice("version_retention", "SPREAD"),
    Field::new("chat_risk_limit", Form::Plain, Unset::Number(70)),
    flag("mail_request_text"),
    flag("require_second_factor"),
    flag("trace_content"),
    value("server_alert_cpu_pct"),
    value("server_alert_ram_pct"),
    value("server_alert_load_factor"),
    value("provider_oauth_client_id"),
    secret("provider_oauth_secret", &[]),
    secret("voice_key", &[]),
    secret("transcription_key", &[]),
    choice("customer_type", "BUSINESS"),
    value("tax_name"),
    value("tax_id"),
    value("tax_address"),
    value("tax_postal_code"),
    value("tax_city"),
    value("tax_country"),
];

const AGENT: &[Field] = &[
    line("name"),
    value("description"),
    value("role"),
    Field::new("instructions", Form::Long, Unset::Null),
    Field::new("server", Form::Name(Kind::Server, "server_id"), Unset::Null),
    Field::new("image", Form::Name(Kind::Image, "image_id"), Unset::Kept),
    value("model_override").restarting(),
    value("mode_override"),
    value("effort_override"),
    flag("thinking_enabled"),
    names("skills", Form::Assigned(Kind::Skill)),
    names("mcp_servers", Form::Assigned(Kind::McpServer)),
    names("credentials", Form::Assigned(Kind::Credential)).restarting(),
    choice("credential_choice", "INHERIT").restarting(),
    value("model_credential_type"),
    value("model_credential_provider").restarting(),
    value("model_credential_base_url").restarting(),
    secret("model_credential", &["model_credential_provider", "model_credential_base_url"]).restarting(),
    choice("restart_policy", "ON_FAILURE"),
    value("cpu_override").restarting(),
    value("memory_mb_override").restarting(),
    flag("network_privileged").restarting().needing(Permission::NetworkEdit),
    list("disabled_tool_groups"),
    flag("mcp_http_bridge"),
    value("approval_ask_threshold"),
    value("approval_block_threshold"),
    list("approval_categories"),
    value("approval_timeout_minutes"),
    value("monthly_budget_micro").needing(Permission::OrganizationEdit),
    choice("budget_action", "PAUSE").needing(Permission::OrganizationEdit),
    choice("cost_guard_mode", "INHERIT"),
    value("cost_guard_tokens_per_hour"),
    value("cost_guard_action"),
    choice("session_reset_mode", "INHERIT"),
    value("session_reset_tokens"),
    choice("backup_schedule", "INHERIT"),
    value("backup_cron"),
    value("backup_retention"),
    flag("backup_freeze"),
    choice("response_style", "DEFAULT"),
    choice("response_format", "PROSE"),
    flag("single_message"),
    flag("no_emoji"),
    value("language"),
    value("timezone"),
    flag("voice_enabled"),
    value("voice_id"),
    flag("hub_available"),
];

const CHANNEL: &[Field] = &[
    Field::new("agent", Form::Name(Kind::Agent, "agent_id"), Unset::Null),
    line("name"),
    value("transport"),
    choice("scope", "EXTERNAL"),
    choice("direction", "BIDIRECTIONAL"),
    Field::new("is_active", Form::Plain, Unset::True),
    value("destination"),
    secret("bot_token", &[]),
    object("webhook", WEBHOOK),
    object("email", EMAIL),
    object("code_host", CODE_HOST),
    object("drive", DRIVE),
    object("calendar", CALENDAR),
    names("whitelist", Form::Origins),
    list("label_whitelist"),
    list("mention_off"),
    names("alert_recipients", Form::Members("alert_recipient_user_ids")),
    Field::new("instructions", Form::Trimmed, Unset::Null),
];

const WEBHOOK: &[Field] = &[
    value("outbound_url"),
    secret("outbound_secret", &[]),
    secret("inbound_secret", &[]),
    value("signature_header"),
    object("echo_filter", ECHO_FILTER),
];

const ECHO_FILTER: &[Field] = &[list("actor_paths"), list("self_ids")];

const DRIVE: &[Field] =
    &[value("folder_id"), value("folder_name"), value("url"), value("user"), secret("pass", &["url"])];

const CALENDAR: &[Field] = &[
    value("url"),
    value("user"),
    secret("pass", &["url"]),
    list("calendar_whitelist"),
    value("reminder_lead_minutes"),
];

const EMAIL: &[Field] = &[value("authserv_id"), optional("imap", IMAP), optional("smtp", SMTP)];

const IMAP: &[Field] = &[
    value("host"),
    Field::new("port", Form::Plain, Unset::Number(993)),
    Field::new("tls", Form::Plain, Unset::True),
    value("user"),
    secret("pass", &["host"]),
];

const SMTP: &[Field] = &[
    value("host"),
    Field::new("port", Form::Plain, Unset::Number(587)),
    value("user"),
    value("from"),
    secret("pass", &["host"]),
];

const CODE_HOST: &[Field] = &[
    value("host"),
    value("installation_id"),
    list("repos"),
    list("events"),
    choice("listen_scope", "involved"),
    flag("raw_payload"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use async_graphql::registry::{MetaType, Registry};

    use super::*;
    use crate::{
        base::spelling::{camel_case, snake_case},
        cli::remote::operation,
    };

    /// Inputs that files leave out, each with the reason.
    const LEFT_OUT: [(&str, &str); 4] = [
        ("UpdateOrganizationInput/name", "an organization is not renamed by the files of another"),
        ("UpdateOrganizationInput/support_access_until", "a grant for a while"),
        ("UpdateChannelInput/notify_conversation_id", "conversations are not in files"),
        ("UpdateSkillInput/force", "no setting"),
    ];

    /// The fields of an input object, also of those in it, by their names in `/v1`.
    fn inputs(registry: &Registry, ty: &str) -> BTreeSet<String> {
        let Some(MetaType::InputObject { input_fields, .. }) = registry.types.get(ty) else {
            return BTreeSet::new();
        };
        let own = input_fields.keys().map(|name| snake_case(name));
        own.filter(|name| !LEFT_OUT.iter().any(|(left, _)| *left == format!("{ty}/{name}"))).collect()
    }

    /// The same of the table.
    fn known(fields: &[Field]) -> BTreeSet<String> {
        fields.iter().filter(|field| field.is_input()).map(|field| field.input().to_owned()).collect()
    }

    /// The fields that a text lacks.
    fn lacking(text: &str, fields: &[Field]) -> Vec<&'static str> {
        let has = |key: &str| text.split(|c: char| !c.is_alphanumeric()).any(|word| word == camel_case(key));
        let shown = fields.iter().filter(|field| !matches!(field.form, Form::Assigned(_)));
        let inner = |field: &Field| match field.form {
            Form::Object(inner, _) => lacking(text, inner),
            _ => Vec::new(),
        };
        shown
            .flat_map(|field| (!has(field.key)).then_some(field.key).into_iter().chain(inner(field)))
            .collect()
    }

    #[test]
    fn what_exists_is_read_with_every_field() {
        for about in &KINDS {
            let operation = operation(if about.list.is_empty() { "Organization" } else { about.list });
            assert_eq!(lacking(operation, about.fields), [""; 0], "{}", about.section);
        }
    }

    #[test]
    fn files_have_every_input_of_the_schema() {
        let registry = crate::graphql::catalogue().unwrap().registry;
        let input = |operation: &str| {
            let mut letters = operation.chars();
            let first = letters.next().unwrap().to_ascii_uppercase();
            format!("{first}{}Input", letters.as_str())
        };
        for (n, about) in KINDS.iter().enumerate() {
            assert_eq!(about.kind as usize, n);
            let mut of_schema = inputs(&registry, &input(about.update));
            if !about.create.is_empty() {
                of_schema.extend(inputs(&registry, &input(about.create)));
            }
            let mut of_files = known(about.fields);
            // An argument beside the input.
            of_files.remove("agent_may_read");
            assert_eq!(of_files, of_schema, "{}", about.section);
        }
        for (fields, ty) in [
            (WEBHOOK, "ChannelWebhookInput"),
            (ECHO_FILTER, "ChannelEchoFilterInput"),
            (EMAIL, "ChannelEmailInput"),
            (IMAP, "ChannelImapInput"),
            (SMTP, "ChannelSmtpInput"),
            (CODE_HOST, "ChannelCodeHostInput"),
            (DRIVE, "ChannelDriveInput"),
            (CALENDAR, "ChannelCalendarInput"),
        ] {
            assert_eq!(known(fields), inputs(&registry, ty));
        }
        for (left, _) in LEFT_OUT {
            let (ty, name) = left.split_once('/').unwrap();
            let Some(MetaType::InputObject { input_fields, .. }) = registry.types.get(ty) else {
                panic!("no {ty}");
            };
            assert!(input_fields.keys().any(|known| snake_case(known) == name), "{left} is not needed");
        }
    }
}
