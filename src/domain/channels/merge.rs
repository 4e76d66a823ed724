//! Applies an edit to a channel's row, without the database. Returns the secrets apart: they are sealed once the row
//! has an id.

use async_graphql::MaybeUndefined;
use serde_json::json;

use super::{
    entity::channels::Model,
    input::{
        ChannelCalendarInput, ChannelCodeHostInput, ChannelDriveInput, ChannelEchoFilterInput,
        ChannelEmailInput, ChannelImapInput, ChannelSmtpInput, ChannelWebhookInput, UpdateChannelInput,
    },
};
use crate::base::{enums::InactiveReason, secret::SecretText};

/// The secrets of an edit.
#[derive(Clone, Debug, Default)]
pub(super) struct Secrets {
    pub bot_token: MaybeUndefined<SecretText>,
    pub outbound: MaybeUndefined<SecretText>,
    pub inbound: MaybeUndefined<SecretText>,
    pub imap_pass: MaybeUndefined<SecretText>,
    pub smtp_pass: MaybeUndefined<SecretText>,
    pub drive_pass: MaybeUndefined<SecretText>,
    pub calendar_pass: MaybeUndefined<SecretText>,
}

impl Secrets {
    /// Whether the edit sets or removes any secret.
    pub fn any(&self) -> bool {
        let webhook = [&self.outbound, &self.inbound];
        let passwords = [&self.imap_pass, &self.smtp_pass, &self.drive_pass, &self.calendar_pass];
        let mut all = [&self.bot_token].into_iter().chain(webhook).chain(passwords);
        all.any(|secret| !secret.is_undefined())
    }
}

/// Applies an edit to a row. Null reaches only nullable fields.
pub(super) fn merge(channel: &mut Model, edit: UpdateChannelInput) -> Secrets {
    let mut secrets = Secrets { bot_token: edit.bot_token, ..Secrets::default() };
    set_required(&mut channel.name, trimmed(edit.name));
    set_required(&mut channel.scope, edit.scope);
    set_required(&mut channel.direction, edit.direction);
    set(&mut channel.target, unless_blank(edit.destination));
    set_required(&mut channel.label_whitelist, list(edit.label_whitelist));
    set_required(&mut channel.mention_off, list(edit.mention_off));
    set(&mut channel.instructions, unless_blank(edit.instructions));
    set(&mut channel.notify_conversation_id, edit.notify_conversation_id);
    let recipients = edit.alert_recipient_user_ids.map_value(|ids| json!(distinct(ids)));
    set_required(&mut channel.alert_recipient_user_ids, recipients);
    if let MaybeUndefined::Value(active) = edit.is_active {
        if active && !channel.is_active {
            channel.failing_since = None;
        }
        channel.is_active = active;
        channel.inactive_reason = (!active).then_some(InactiveReason::Manual);
    }
    if let MaybeUndefined::Value(edit) = edit.webhook {
        webhook(channel, &mut secrets, edit);
    }
    if let MaybeUndefined::Value(edit) = edit.email {
        email(channel, &mut secrets, edit);
    }
    if let MaybeUndefined::Value(edit) = edit.code_host {
        code_host(channel, edit);
    }
    if let MaybeUndefined::Value(edit) = edit.drive {
        drive(channel, &mut secrets, edit);
    }
    if let MaybeUndefined::Value(edit) = edit.calendar {
        calendar(channel, &mut secrets, edit);
    }
    secrets
}

fn webhook(channel: &mut Model, secrets: &mut Secrets, edit: ChannelWebhookInput) {
    set(&mut channel.webhook_outbound_url, trimmed(edit.outbound_url));
    set(&mut channel.webhook_signature_header, trimmed(edit.signature_header));
    secrets.outbound = edit.outbound_secret;
    secrets.inbound = edit.inbound_secret;
    let filter = match edit.echo_filter {
        MaybeUndefined::Undefined => return,
        MaybeUndefined::Value(filter) => filter,
        MaybeUndefined::Null => ChannelEchoFilterInput {
            actor_paths: MaybeUndefined::Value(Vec::new()),
            self_ids: MaybeUndefined::Value(Vec::new()),
        },
    };
    set_required(&mut channel.webhook_actor_paths, list(filter.actor_paths));
    set_required(&mut channel.webhook_self_ids, list(filter.self_ids));
}

fn email(channel: &mut Model, secrets: &mut Secrets, edit: ChannelEmailInput) {
    set(&mut channel.email_authserv_id, trimmed(edit.authserv_id));
    match edit.imap {
        MaybeUndefined::Undefined => {}
        MaybeUndefined::Value(edit) => imap(channel, secrets, edit),
        MaybeUndefined::Null => {
            channel.email_imap_host = None;
            channel.email_imap_port = None;
            channel.email_imap_user = None;
            channel.email_imap_tls = true;
            secrets.imap_pass = MaybeUndefined::Null;
        }
    }
    match edit.smtp {
        MaybeUndefined::Undefined => {}
        MaybeUndefined::Value(edit) => smtp(channel, secrets, edit),
        MaybeUndefined::Null => {
            channel.email_smtp_host = None;
            channel.email_smtp_port = None;
            channel.email_smtp_user = None;
            channel.email_smtp_from = None;
            secrets.smtp_pass = MaybeUndefined::Null;
        }
    }
}

fn imap(channel: &mut Model, secrets: &mut Secrets, edit: ChannelImapInput) {
    set(&mut channel.email_imap_host, trimmed(edit.host));
    set(&mut channel.email_imap_port, edit.port);
    channel.email_imap_port.get_or_insert(993);
    set(&mut channel.email_imap_user, trimmed(edit.user));
    set_required(&mut channel.email_imap_tls, edit.tls);
    secrets.imap_pass = edit.pass;
}

fn smtp(channel: &mut Model, secrets: &mut Secrets, edit: ChannelSmtpInput) {
    set(&mut channel.email_smtp_host, trimmed(edit.host));
    set(&mut channel.email_smtp_port, edit.port);
    channel.email_smtp_port.get_or_insert(587);
    set(&mut channel.email_smtp_user, trimmed(edit.user));
    set(&mut channel.email_smtp_from, trimmed(edit.from));
    secrets.smtp_pass = edit.pass;
}

fn code_host(channel: &mut Model, edit: ChannelCodeHostInput) {
    set(&mut channel.code_host_host, unless_blank(edit.host));
    set(&mut channel.code_host_installation_id, edit.installation_id.map_value(|id| id.0));
    set_required(&mut channel.code_host_repos, list(edit.repos));
    set_required(&mut channel.code_host_events, list(edit.events));
    set_required(&mut channel.code_host_listen_scope, edit.listen_scope);
    set_required(&mut channel.code_host_raw_payload, edit.raw_payload);
}

fn drive(channel: &mut Model, secrets: &mut Secrets, edit: ChannelDriveInput) {
    set(&mut channel.drive_url, unless_blank(edit.url));
    set(&mut channel.drive_user, unless_blank(edit.user));
    secrets.drive_pass = edit.pass;
    set(&mut channel.drive_folder_id, trimmed(edit.folder_id));
    set(&mut channel.drive_folder_name, unless_blank(edit.folder_name));
}

fn calendar(channel: &mut Model, secrets: &mut Secrets, edit: ChannelCalendarInput) {
    set(&mut channel.calendar_url, trimmed(edit.url));
    set(&mut channel.calendar_user, trimmed(edit.user));
    secrets.calendar_pass = edit.pass;
    let choices = edit.calendar_whitelist.map_value(|choices| {
        let choices = choices.into_iter().map(|choice| {
            let id = choice.id.trim().to_owned();
            let name = choice.name.map_or_else(|| id.clone(), |name| name.trim().to_owned());
            json!({ "id": id, "name": name })
        });
        choices.collect()
    });
    set_required(&mut channel.calendar_whitelist, choices);
    set(&mut channel.calendar_reminder_lead_minutes, edit.reminder_lead_minutes);
}

/// Sets a nullable value.
fn set<T>(stored: &mut Option<T>, edit: MaybeUndefined<T>) {
    match edit {
        MaybeUndefined::Undefined => {}
        MaybeUndefined::Null => *stored = None,
        MaybeUndefined::Value(value) => *stored = Some(value),
    }
}

/// Sets a value that is never null. Its input declares `not_null()`.
fn set_required<T>(stored: &mut T, edit: MaybeUndefined<T>) {
    if let MaybeUndefined::Value(value) = edit {
        *stored = value;
    }
}

fn trimmed(edit: MaybeUndefined<String>) -> MaybeUndefined<String> {
    edit.map_value(|text| text.trim().to_owned())
}

/// Treats blank text as null.
fn unless_blank(edit: MaybeUndefined<String>) -> MaybeUndefined<String> {
    match trimmed(edit) {
        MaybeUndefined::Value(text) if text.is_empty() => MaybeUndefined::Null,
        edit => edit,
    }
}

/// Trims and deduplicates a list of texts.
fn list(edit: MaybeUndefined<Vec<String>>) -> MaybeUndefined<serde_json::Value> {
    edit.map_value(|texts| json!(distinct(texts.iter().map(|text| text.trim().to_owned()).collect())))
}

fn distinct<T: PartialEq>(values: Vec<T>) -> Vec<T> {
    let mut distinct = Vec::with_capacity(values.len());
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}
