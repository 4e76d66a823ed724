//! Whether a message is wanted.

use muster_channels::{Inbound, Proof};

use super::{entity::channels::Model, whitelist::Listed};
use crate::base::{
    enums::{RefusalReason, Transport},
    json::texts,
};

/// The lists of a channel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// Whether a valid signature is proof enough, so that an empty whitelist admits everybody.
    pub proves_itself: bool,
    /// Whether the sender has to be proven.
    pub needs_proof: bool,
    /// A message needs one of these. Empty: none.
    pub labels: Vec<String>,
    /// Places where the agent need not be mentioned.
    pub mention_off: Vec<String>,
    /// Who we are.
    pub self_ids: Vec<String>,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is stored.
    Wanted {
        /// Whether the agent answers it.
        is_answered: bool,
    },
    /// It is our own.
    Echo,
    /// It is counted.
    Refused(RefusalReason),
}

impl Rules {
    /// The lists of a channel that decide what is wanted.
    pub fn of(channel: &Model) -> Self {
        Self {
            proves_itself: channel.transport == Transport::Webhook,
            needs_proof: channel.email_authserv_id.is_some(),
            labels: texts(&channel.label_whitelist),
            mention_off: texts(&channel.mention_off),
            self_ids: [texts(&channel.webhook_self_ids), texts(&channel.self_ids)].concat(),
        }
    }

    /// Deny by default: an empty whitelist admits only those who prove themselves.
    pub fn judge(&self, message: &Inbound, listed: Listed) -> Verdict {
        if message.authors.iter().any(|author| self.self_ids.contains(author)) {
            return Verdict::Echo;
        }
        let may_enter = match listed {
            Listed::Named => true,
            Listed::Others => false,
            Listed::Empty => self.proves_itself && message.proof >= Proof::Signed,
        };
        if !may_enter {
            return Verdict::Refused(RefusalReason::NotWhitelisted);
        }
        if self.needs_proof && message.proof < Proof::Signed {
            return Verdict::Refused(RefusalReason::Unproven);
        }
        if !self.labels.is_empty() && !message.labels.iter().any(|label| self.labels.contains(label)) {
            return Verdict::Refused(RefusalReason::Label);
        }
        let place = message.origin.place.as_ref();
        let is_for_us = message.is_addressed || place.is_some_and(|place| self.mention_off.contains(place));
        if !is_for_us {
            return Verdict::Refused(RefusalReason::NotAddressed);
        }
        // Two robots would talk forever.
        Verdict::Wanted { is_answered: !message.is_automatic || listed == Listed::Named }
    }
}

#[cfg(test)]
mod tests {
    use muster_channels::{Origin, Thread};

    use super::*;

    fn message() -> Inbound {
        Inbound {
            key: None,
            vendor_id: None,
            album: None,
            is_edit: false,
            answers: None,
            origin: Origin { id: "ada".to_owned(), place: Some("room".to_owned()), name: None },
            authors: vec!["ada".to_owned()],
            is_automatic: false,
            proof: Proof::Signed,
            thread: Thread {
                readers: Vec::new(),
                key: "t".to_owned(),
                refs: Vec::new(),
                target: "t".to_owned(),
                title: None,
                is_private: false,
            },
            is_addressed: true,
            labels: vec!["urgent".to_owned()],
            context: String::new(),
            text: "Hello".to_owned(),
            files: Vec::new(),
            at: jiff::Timestamp::UNIX_EPOCH,
            source: None,
        }
    }

    const TAKEN: Verdict = Verdict::Wanted { is_answered: true };

    #[test]
    fn an_empty_whitelist_admits_only_those_who_prove_themselves() {
        let refused = Verdict::Refused(RefusalReason::NotWhitelisted);
        let (bot, webhook) = (Rules::default(), Rules { proves_itself: true, ..Rules::default() });
        assert_eq!(bot.judge(&message(), Listed::Empty), refused);
        assert_eq!(bot.judge(&message(), Listed::Others), refused);
        assert_eq!(bot.judge(&message(), Listed::Named), TAKEN);
        assert_eq!(webhook.judge(&message(), Listed::Empty), TAKEN);
        assert_eq!(webhook.judge(&message(), Listed::Others), refused);
        let unproven = Inbound { proof: Proof::None, ..message() };
        assert_eq!(webhook.judge(&unproven, Listed::Empty), refused);
    }

    #[test]
    fn where_senders_are_proven_a_forged_one_is_refused() {
        let rules = Rules { needs_proof: true, ..Rules::default() };
        let forged = Inbound { proof: Proof::None, ..message() };
        let refused = Verdict::Refused(RefusalReason::Unproven);
        assert_eq!(rules.judge(&forged, Listed::Named), refused);
        assert_eq!(rules.judge(&message(), Listed::Named), TAKEN);
        assert_eq!(Rules::default().judge(&forged, Listed::Named), TAKEN);
    }

    #[test]
    fn what_is_our_own_is_an_echo_whoever_is_listed() {
        let rules = Rules { self_ids: vec!["bot".to_owned()], ..Rules::default() };
        let own = Inbound { authors: vec!["b1".to_owned(), "bot".to_owned()], ..message() };
        assert_eq!(rules.judge(&own, Listed::Named), Verdict::Echo);
        assert_eq!(rules.judge(&message(), Listed::Named), TAKEN);
    }

    #[test]
    fn labels_let_messages_in() {
        let of = |label: &str| Rules { labels: vec![label.to_owned()], ..Rules::default() };
        assert_eq!(of("urgent").judge(&message(), Listed::Named), TAKEN);
        let refused = Verdict::Refused(RefusalReason::Label);
        assert_eq!(of("later").judge(&message(), Listed::Named), refused);
    }

    #[test]
    fn what_is_written_to_others_needs_mention_off() {
        let aside = Inbound { is_addressed: false, ..message() };
        let refused = Verdict::Refused(RefusalReason::NotAddressed);
        assert_eq!(Rules::default().judge(&aside, Listed::Named), refused);
        let rules = Rules { mention_off: vec!["room".to_owned()], ..Rules::default() };
        assert_eq!(rules.judge(&aside, Listed::Named), TAKEN);
    }

    #[test]
    fn robots_are_answered_only_if_somebody_listed_them() {
        let robot = Inbound { is_automatic: true, ..message() };
        let rules = Rules { proves_itself: true, ..Rules::default() };
        assert_eq!(rules.judge(&robot, Listed::Empty), Verdict::Wanted { is_answered: false });
        assert_eq!(rules.judge(&robot, Listed::Named), TAKEN);
    }
}
