//! Validates channels: the input (pure), the resulting row (pure), and references (in the database).

use async_graphql::MaybeUndefined;
use muster_channels::TOPMOST_RESULTS;

use super::{
    entity::channels::Model,
    input::{ChannelCalendarChoiceInput, UpdateChannelInput},
    merge::Secrets,
    open,
};
use crate::{
    base::{
        enums::{ChannelDirection, Transport},
        ids::ConversationId,
        json::texts,
        problem::{Result, Violation},
        secret::SecretText,
    },
    core::{
        config::Channels,
        handlers::{Question, ask},
        store::Tx,
    },
    domain::{agents::assignments, orgs, people},
};

/// Asks whether the organization has this conversation.
#[derive(Debug)]
pub struct HasConversation(pub ConversationId);

impl Question for HasConversation {
    type Answer = bool;
}

/// Headers with another meaning: a signature in one of these would break the delivery.
const TAKEN_HEADERS: &[&str] = &[
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
];

/// Validates an edit by itself. For a new channel, a `null` object counts as absent.
pub(super) fn check_input(transport: Transport, edit: &UpdateChannelInput) -> Vec<Violation> {
    let mut violations = Vec::new();
    check_foreign_keys(transport, edit, &mut violations);
    let token = open::check_token(transport, &edit.bot_token);
    violations.extend(token.map(|detail| Violation::at("/bot_token", "NOT_ALLOWED", detail)));
    if let MaybeUndefined::Value(webhook) = &edit.webhook {
        if let MaybeUndefined::Value(url) = &webhook.outbound_url {
            violations.extend(orgs::check_url("/webhook/outbound_url", url.trim()));
        }
        if let MaybeUndefined::Value(header) = &webhook.signature_header {
            violations.extend(check_signature_header(header.trim()));
        }
    }
    if let MaybeUndefined::Value(email) = &edit.email {
        if let MaybeUndefined::Value(name) = &email.authserv_id {
            violations.extend(check_authserv_id(name.trim()));
        }
        if let MaybeUndefined::Value(imap) = &email.imap {
            violations.extend(check_host("/email/imap/host", &imap.host));
        }
        if let MaybeUndefined::Value(smtp) = &email.smtp {
            violations.extend(check_host("/email/smtp/host", &smtp.host));
            violations.extend(check_address("/email/smtp/from", &smtp.from));
        }
    }
    if let MaybeUndefined::Value(code_host) = &edit.code_host
        && let MaybeUndefined::Value(repos) = &code_host.repos
    {
        violations.extend(repos.iter().enumerate().filter_map(|(n, repo)| check_repository(n, repo.trim())));
    }
    if let MaybeUndefined::Value(calendar) = &edit.calendar {
        if let MaybeUndefined::Value(choices) = &calendar.calendar_whitelist {
            violations.extend(find_repeated_calendars(choices));
        }
        if let MaybeUndefined::Value(url) = &calendar.url {
            violations.extend(orgs::check_url("/calendar/url", url.trim()));
        }
    }
    violations
}

/// Keys of another transport are refused rather than ignored: a mistake must not become a silent no-op.
fn check_foreign_keys(transport: Transport, edit: &UpdateChannelInput, violations: &mut Vec<Violation>) {
    let objects = [
        ("webhook", Transport::Webhook, edit.webhook.is_value(), edit.webhook.is_null()),
        ("email", Transport::Email, edit.email.is_value(), edit.email.is_null()),
        ("code_host", Transport::CodeHost, edit.code_host.is_value(), edit.code_host.is_null()),
        ("drive", Transport::Drive, edit.drive.is_value(), edit.drive.is_null()),
        ("calendar", Transport::Calendar, edit.calendar.is_value(), edit.calendar.is_null()),
    ];
    for (key, owner, given, null) in objects {
        if given && owner != transport {
            let detail = format!("`{key}` is only for {owner} channels, and this one is {transport}.");
            violations.push(Violation::at(format!("/{key}"), "NOT_ALLOWED", detail));
        } else if null && owner == transport {
            let detail = format!("`{key}` must not be null. Clear its keys one by one.");
            violations.push(Violation::at(format!("/{key}"), "WRONG_TYPE", detail));
        }
    }
    if edit.bot_token.is_value() && !is_bot(transport) {
        let detail = format!(
            "`bot_token` is only for TELEGRAM, DISCORD, SLACK, and CODE_HOST channels, and this one is {transport}."
        );
        violations.push(Violation::at("/bot_token", "NOT_ALLOWED", detail));
    }
}

/// Whether channels of this transport sign in with a bot token. The description of `bot_token` in `input.rs` names them.
pub(super) const fn is_bot(transport: Transport) -> bool {
    matches!(transport, Transport::CodeHost | Transport::Telegram | Transport::Discord | Transport::Slack)
}

fn check_signature_header(header: &str) -> Option<Violation> {
    let detail = match http::HeaderName::from_bytes(header.as_bytes()) {
        Err(_) => format!("`{header}` is not a valid header name."),
        Ok(name) if TAKEN_HEADERS.contains(&name.as_str()) => {
            format!("The header `{name}` already has another meaning.")
        }
        Ok(_) => return None,
    };
    Some(Violation::at("/webhook/signature_header", "NOT_ALLOWED", detail))
}

fn check_host(pointer: &str, host: &MaybeUndefined<String>) -> Option<Violation> {
    let MaybeUndefined::Value(host) = host else { return None };
    let host = host.trim();
    let good = host.parse::<std::net::IpAddr>().is_ok()
        || (!host.starts_with('[') && url::Host::parse(host).is_ok_and(|host| host.to_string() != ""));
    (!good).then(|| Violation::at(pointer, "NOT_ALLOWED", format!("`{host}` is not a valid host name.")))
}

/// A server's name, as in `Authentication-Results`. A check's result (`spf=pass`) is refused: any sender can write it.
fn check_authserv_id(name: &str) -> Option<Violation> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_part);
    let detail = if name.contains(['=', ';']) {
        format!(
            "`{name}` is the result of a check, not a server's name. For a server that writes no name, such as \
             Microsoft 365, `{TOPMOST_RESULTS}` trusts the topmost header."
        )
    } else {
        format!("`{name}` is not a server's name, such as mx.example.org, and not `{TOPMOST_RESULTS}`.")
    };
    (!is_name && name != TOPMOST_RESULTS).then(|| Violation::at("/email/authserv_id", "NOT_ALLOWED", detail))
}

/// A local part, an `@`, and a host. Only a sent mail shows whether the address exists.
fn check_address(pointer: &str, address: &MaybeUndefined<String>) -> Option<Violation> {
    let MaybeUndefined::Value(address) = address else { return None };
    let address = address.trim();
    let good = !address.contains(|c: char| c.is_control() || c == '\n')
        && address.trim_end_matches('>').rsplit_once('@').is_some_and(|(local, domain)| {
            !local.trim_end().is_empty() && !local.ends_with('<') && url::Host::parse(domain).is_ok()
        });
    (!good)
        .then(|| Violation::at(pointer, "NOT_ALLOWED", format!("`{address}` is not a valid e-mail address.")))
}

/// `owner/name`, at GitLab also with groups between them.
fn check_repository(n: usize, repo: &str) -> Option<Violation> {
    let word = |text: &str| {
        !matches!(text, "" | "." | "..")
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let good = repo.contains('/') && repo.split('/').all(word);
    let detail = || format!("`{repo}` is not a repository in the form owner/name.");
    (!good).then(|| Violation::at(format!("/code_host/repos/{n}"), "NOT_ALLOWED", detail()))
}

fn find_repeated_calendars(choices: &[ChannelCalendarChoiceInput]) -> impl Iterator<Item = Violation> {
    choices.iter().enumerate().filter_map(|(n, choice)| {
        let id = choice.id.trim();
        let earlier = choices[..n].iter().any(|other| other.id.trim() == id);
        let pointer = format!("/calendar/calendar_whitelist/{n}/id");
        earlier.then(|| Violation::at(pointer, "NOT_ALLOWED", format!("`{id}` appears more than once.")))
    })
}

/// Violations for missing fields.
#[derive(Default)]
struct Missing(Vec<Violation>);

impl Missing {
    fn require(&mut self, present: bool, pointer: &str, why: &str) {
        if !present {
            let name = pointer.rsplit('/').next().unwrap_or_default();
            self.0.push(Violation::at(pointer, "REQUIRED", format!("`{name}` is required: {why}")));
        }
    }
}

/// Finds settings that the edited row lacks for its transport and direction. `before` is the row before the edit, empty
/// for a new channel.
pub(super) fn check_required(before: &Model, after: &Model, secrets: &Secrets) -> Vec<Violation> {
    let mut missing = Missing::default();
    match after.transport {
        Transport::Telegram | Transport::Discord | Transport::Slack => {
            let token = has(&secrets.bot_token, before.bot_token_sealed.as_ref());
            missing.require(token, "/bot_token", "the bot signs in with it.");
        }
        Transport::Webhook => {
            let url = after.direction == ChannelDirection::Inbound || after.webhook_outbound_url.is_some();
            missing.require(url, "/webhook/outbound_url", "the channel sends messages.");
        }
        Transport::Email => check_required_mail(before, after, secrets, &mut missing),
        Transport::CodeHost => check_required_code_host(before, after, secrets, &mut missing),
        Transport::Drive => {
            missing.require(after.drive_folder_id.is_some(), "/drive/folder_id", "it identifies the folder.");
        }
        Transport::Calendar => check_required_calendar(before, after, secrets, &mut missing),
        Transport::Internal => {}
    }
    missing.0
}

fn check_required_code_host(before: &Model, after: &Model, secrets: &Secrets, missing: &mut Missing) {
    let token = has(&secrets.bot_token, before.bot_token_sealed.as_ref());
    let is_changed = before.id.0 != 0 && before.code_host_host != after.code_host_host;
    if is_changed {
        let detail = "The host of a channel can't be changed. Connect another channel.";
        missing.0.push(Violation::at("/code_host/host", "NOT_ALLOWED", detail));
    } else if after.code_host_host.is_some() {
        missing.require(token, "/bot_token", "the account signs in with it.");
        let repos = !texts(&after.code_host_repos).is_empty();
        missing.require(repos, "/code_host/repos", "their hooks bring the messages.");
    } else {
        let installed = after.code_host_installation_id.is_some();
        missing.require(installed, "/code_host/installation_id", "it identifies the app's installation.");
        if token {
            let detail = "Channels at GitHub have no token: they act as the installation of an app.";
            missing.0.push(Violation::at("/bot_token", "NOT_ALLOWED", detail));
        }
    }
}

/// Refuses a code host that the operator does not name.
pub(super) fn check_code_host(channel: &Model, settings: &Channels) -> Option<Violation> {
    let host = channel.code_host_host.as_ref()?;
    if settings.code_host(host).is_some() {
        return None;
    }
    let known: Vec<_> = settings.code_hosts.iter().map(|host| host.name.as_str()).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let detail = format!("`{host}` is not a code host of this installation (channels.code_hosts): {known}.");
    Some(Violation::at("/code_host/host", "NOT_ALLOWED", detail))
}

/// Whether a secret is set after the edit.
fn has(edit: &MaybeUndefined<SecretText>, stored: Option<&Vec<u8>>) -> bool {
    match edit {
        MaybeUndefined::Undefined => stored.is_some(),
        MaybeUndefined::Null => false,
        MaybeUndefined::Value(_) => true,
    }
}

fn check_required_mail(before: &Model, after: &Model, secrets: &Secrets, missing: &mut Missing) {
    if after.direction != ChannelDirection::Outbound || after.email_imap_port.is_some() {
        let pass = has(&secrets.imap_pass, before.email_imap_pass_sealed.as_ref());
        missing.require(after.email_imap_host.is_some(), "/email/imap/host", "the channel fetches mail.");
        missing.require(after.email_imap_user.is_some(), "/email/imap/user", "the channel fetches mail.");
        missing.require(pass, "/email/imap/pass", "the channel fetches mail.");
    }
    if after.direction != ChannelDirection::Inbound || after.email_smtp_port.is_some() {
        missing.require(after.email_smtp_host.is_some(), "/email/smtp/host", "the channel sends mail.");
        missing.require(after.email_smtp_from.is_some(), "/email/smtp/from", "the channel sends mail.");
    }
    // Otherwise an editor could have the stored password sent to their own host.
    let moved = |before: &Option<String>, after: &Option<String>, pass: &MaybeUndefined<_>| {
        before.is_some() && before != after && after.is_some() && pass.is_undefined()
    };
    let imap = moved(&before.email_imap_host, &after.email_imap_host, &secrets.imap_pass);
    let smtp = moved(&before.email_smtp_host, &after.email_smtp_host, &secrets.smtp_pass)
        && before.email_smtp_pass_sealed.is_some();
    let why = "a stored password is only used with the host it was set for.";
    missing.require(!imap, "/email/imap/pass", why);
    missing.require(!smtp, "/email/smtp/pass", why);
}

/// A calendar without a server is at Google.
fn check_required_calendar(before: &Model, after: &Model, secrets: &Secrets, missing: &mut Missing) {
    if after.calendar_url.is_none() {
        return;
    }
    let why = "the channel signs in at the CalDAV server.";
    missing.require(after.calendar_user.is_some(), "/calendar/user", why);
    // Otherwise an editor could have the stored password sent to their own server.
    let moved = before.calendar_pass_sealed.is_some() && before.calendar_url != after.calendar_url;
    let pass = has(&secrets.calendar_pass, before.calendar_pass_sealed.as_ref());
    let why = if moved { "a stored password is only used with the address it was set for." } else { why };
    missing.require(pass && !(moved && secrets.calendar_pass.is_undefined()), "/calendar/pass", why);
}

/// Refuses references to records that the organization doesn't have.
pub(super) async fn check_references(tx: &Tx, edit: &UpdateChannelInput) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    if let MaybeUndefined::Value(id) = edit.notify_conversation_id
        && !ask(tx, HasConversation(id)).await?
    {
        violations.push(Violation::unknown("/notify_conversation_id", "conversation", id));
    }
    if let MaybeUndefined::Value(users) = &edit.alert_recipient_user_ids {
        let strangers = people::missing(tx, users).await?;
        violations.extend(assignments::unknown("/alert_recipient_user_ids", users, &strangers, "member"));
    }
    Ok(violations)
}
