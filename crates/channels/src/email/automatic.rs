//! Detects mails written by programs. They may be shown, but replying could start an endless exchange between machines
//! (RFC 3834).

use super::mime::Headers;

/// Local parts of unread mailboxes.
const UNREAD_MAILBOXES: [&str; 7] =
    ["no-reply", "noreply", "no_reply", "donotreply", "do-not-reply", "mailer-daemon", "postmaster"];

/// Whether this is a report about another mail.
pub fn is_report(head: &Headers<'_>) -> bool {
    let kind = head.content_type();
    kind.is_some_and(|kind| kind.is("multipart", "report"))
}

pub fn is_automatic(head: &Headers<'_>, from: &str) -> bool {
    let header = |name: &str| head.raw(name).next_back().map(|value| value.trim().to_ascii_lowercase());
    let says = |name: &str, words: &[&str]| {
        header(name).is_some_and(|value| {
            words.iter().any(|word| value.split([',', ' ', ';']).any(|one| one == *word))
        })
    };
    let local = from.split('@').next().unwrap_or_default();
    is_report(head)
        || header("Auto-Submitted").is_some_and(|value| value.split([';', ' ']).next() != Some("no"))
        || header("Return-Path").is_some_and(|value| value == "<>")
        || ["List-Id", "List-Unsubscribe", "List-Post", "X-Autoreply", "X-Autorespond"]
            .iter()
            .any(|name| header(name).is_some())
        || says("Precedence", &["bulk", "junk", "list", "auto_reply"])
        || says("X-Auto-Response-Suppress", &["all", "autoreply", "oof"])
        || UNREAD_MAILBOXES.contains(&local)
        || local.starts_with("bounce")
}
