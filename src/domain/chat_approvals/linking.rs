//! Links between chats and members.
//!
//! A member gets a code in the panel and sends it once, in a private chat with the channel's bot. The code has 60 bits
//! and is valid for ten minutes. A link ends with the membership, the channel, or the bot's token, and its messages are
//! deleted.
//!
//! Wrong codes don't invalidate a code: anyone may write to a bot, and could prevent members from linking. The length
//! of the code protects against guessing. A thousand messages a second are 600,000 guesses in its lifetime: they hit
//! one of a hundred open codes with a probability of 1 in 19,000,000,000.

use std::{sync::Arc, time::Duration};

use muster_channels::{Inbound, Proof};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    ReplyOutcome,
    queries::{self, Linked},
    rights,
};
use crate::{
    base::{
        bounds,
        enums::{ChangeOp, RecordKind},
        ids::{ChannelId, OrgId},
        plain::truncated,
        problem::{Code as Refusal, Problem, Result},
        time::Timestamp,
    },
    core::{Core, access::Scope, audit, sealing::random_bytes, store::Tx},
    domain::{
        channels,
        mails::{self, Notice},
    },
};

const LIFETIME: Duration = Duration::from_mins(10);
/// The number of wrong codes that get an answer, until a new code is created. Further ones are silently ignored.
const ANSWERED: i64 = 10;
/// Crockford's alphabet: without letters that resemble others or digits.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// A code that links a chat. Shown once.
pub struct LinkCode {
    /// Three groups of four characters.
    pub text: String,
    pub expires_at: Timestamp,
}

/// Creates a code for the caller, replacing an earlier one.
///
/// # Errors
/// `NOT_FOUND`; `PERMISSION_DENIED` for a service token; `NOT_SUPPORTED` for a channel whose vendor does not prove who
/// writes.
pub async fn create_code(scope: &Scope, channel: ChannelId) -> Result<LinkCode> {
    let person = scope.person()?.id;
    let tx = scope.begin().await?;
    if !channels::proves_people(&tx, channel).await? {
        let detail =
            "Only chats in Telegram, Discord and Slack can be linked: there the vendor proves who writes.";
        return Err(Problem::new(Refusal::NotSupported, detail));
    }
    let code = LinkCode { text: format_code(random_bytes()), expires_at: tx.now.plus(LIFETIME) };
    queries::put_code(&tx, channel, person, hash(&code.text), code.expires_at).await?;
    record(&tx, "linkChat", channel, json!({}));
    tx.commit().await?;
    Ok(code)
}

/// Ends the caller's link in a channel. Does nothing without a link.
///
/// # Errors
/// `NOT_FOUND`; `PERMISSION_DENIED` for a service token.
pub async fn unlink(scope: &Scope, channel: ChannelId) -> Result<()> {
    let person = scope.person()?.id;
    let tx = scope.begin().await?;
    if queries::delete_link(&tx, channel, person).await? == 0 {
        return channels::proves_people(&tx, channel).await.map(drop);
    }
    record(&tx, "unlinkChat", channel, json!({}));
    tx.commit().await
}

/// Lists the chats that the caller has linked.
///
/// # Errors
/// `PERMISSION_DENIED` for a service token.
pub async fn list_linked(scope: &Scope) -> Result<Vec<Linked>> {
    let person = scope.person()?.id;
    queries::links_of(scope, person).await
}

/// Ends all links of a channel and notifies their members. Deletes the messages sent there: one of the next bot may
/// have the same id, and must not be answered or edited instead.
pub async fn unlink_all(tx: &Tx, channel: ChannelId, name: &str) -> Result<()> {
    queries::delete_codes(tx, channel).await?;
    for person in queries::linked_people(tx, channel).await? {
        let (to, what) = ((person.id, person.email), Notice::ChatUnlinked);
        mails::enqueue_notice(&tx.scope.core, tx.connection(), to, what, name.to_owned());
    }
    queries::delete_links(tx, channel).await?;
    queries::delete_asks(tx, channel).await
}

/// Tries a message as a code. A message that looks like a code is never stored while the channel has open codes.
pub async fn try_code(
    core: &Arc<Core>,
    (org, channel): (OrgId, ChannelId),
    message: &Inbound,
) -> Result<ReplyOutcome> {
    if message.proof != Proof::Vendor || !message.thread.is_private || message.is_automatic {
        return Ok(ReplyOutcome::NotOurs);
    }
    let Some(code) = parse_code(&message.text) else { return Ok(ReplyOutcome::NotOurs) };
    let system = Scope::system(core, org);
    if !queries::has_codes(&system, channel).await? {
        return Ok(ReplyOutcome::NotOurs);
    }
    let mut tx = system.begin().await?;
    let Some(user) = queries::take_code(&tx, channel, hash(&code)).await? else {
        return refuse_code(tx, channel).await;
    };
    let origin = truncated(&message.origin.id, bounds::NAME);
    queries::delete_replaced_links(&tx, channel, user, &origin).await?;
    let name = message.origin.name.as_deref().map(|name| truncated(name, bounds::NAME));
    let target = truncated(&message.thread.target, bounds::NAME);
    queries::insert_link(&tx, channel, user, (&origin, name), &target).await?;
    // The member may no longer have the chat linked before.
    queries::move_asks(&tx, channel, user, &target).await?;
    if let Some(theirs) = rights::scope_in_transaction(&tx, channel, &origin).await? {
        tx.scope = theirs;
    }
    record(&tx, "chatLinked", channel, json!({ "origin_id": origin }));
    tx.commit().await?;
    Ok(ReplyOutcome::Answer(
        "This chat is linked. Requests for you arrive here, and you can answer them here.".to_owned(),
    ))
}

/// Counts a wrong code. Beyond the limit, it gets no answer.
async fn refuse_code(tx: Tx, channel: ChannelId) -> Result<ReplyOutcome> {
    let counted = queries::count_wrong_code(&tx, channel, ANSWERED).await?;
    tx.commit().await?;
    if counted == 0 {
        return Ok(ReplyOutcome::Nothing);
    }
    Ok(ReplyOutcome::Answer("This code is invalid or has expired. Get a new one in the panel.".to_owned()))
}

/// The code in a message: three groups of four characters, on its own or after a command such as `/start`.
fn parse_code(text: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    let first = words.next()?;
    let word = if first.starts_with('/') { words.next()? } else { first };
    let code = word.to_ascii_uppercase();
    let groups: Vec<&str> = code.split('-').collect();
    let is_group = |group: &&str| group.len() == 4 && group.bytes().all(|byte| ALPHABET.contains(&byte));
    let is_code = words.next().is_none() && groups.len() == 3 && groups.iter().all(is_group);
    is_code.then_some(code)
}

/// Encodes sixty of these bits.
fn format_code(random: [u8; 8]) -> String {
    let bits = u64::from_be_bytes(random);
    let letter = |place: u32| char::from(ALPHABET[(bits >> (place * 5) & 31) as usize]);
    let group = |from: u32| (from..from + 4).map(letter).collect::<String>();
    [group(0), group(4), group(8)].join("-")
}

fn hash(code: &str) -> Vec<u8> {
    Sha256::digest(code.as_bytes()).to_vec()
}

fn record(tx: &Tx, operation: &'static str, channel: ChannelId, changes: serde_json::Value) {
    let (op, kind) = (ChangeOp::Updated, RecordKind::Channel);
    audit::record(tx, audit::Entry { operation, op, kind, id: channel.0, changes });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_sixty_bits_and_is_read_as_people_type_it() {
        assert_eq!(format_code([0; 8]), "0000-0000-0000");
        assert_eq!(format_code([0xff; 8]), "ZZZZ-ZZZZ-ZZZZ");
        assert_eq!(parse_code(" /start 0abc-defg-hjkm\n").as_deref(), Some("0ABC-DEFG-HJKM"));
        assert_eq!(parse_code("0abc-defg-hjkm").as_deref(), Some("0ABC-DEFG-HJKM"));
        for other in [
            "",
            "hello",
            "/start",
            "0abc-defg-hjk",
            "0abc-defg-hjkm please",
            "0abc-defg-hjk\u{e9}",
            "text-only-here",
        ] {
            assert_eq!(parse_code(other), None, "{other}");
        }
    }
}
