//! Decides which incoming messages a channel accepts.

use muster_channels::{Inbound, Proof};

use super::{entity::channels::Model, whitelist::Listed};
use crate::base::{
    enums::{RefusalReason, Transport},
    json::texts,
};

/// A channel's rules for incoming messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilterRules {
    /// Whether a valid signature is sufficient, so that an empty whitelist admits every signed message.
    pub proves_itself: bool,
    /// Whether the sender must be proven.
    pub needs_proof: bool,
    /// A message needs one of these labels, in lower case. Empty: no label is needed.
    pub labels: Vec<String>,
    /// Chats in which the agent need not be mentioned.
    pub mention_off: Vec<String>,
    /// The ids of the channel's own account.
    pub self_ids: Vec<String>,
}

/// The decision about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilterDecision {
    /// Store it.
    Wanted { is_answered: bool },
    /// Our own message: ignore it.
    Echo,
    /// Count it as rejected.
    Refused(RefusalReason),
}

impl FilterRules {
    pub fn from_channel(channel: &Model) -> Self {
        Self {
            proves_itself: channel.transport == Transport::Webhook,
            needs_proof: channel.email_authserv_id.is_some(),
            labels: texts(&channel.label_whitelist).iter().map(|label| label.to_lowercase()).collect(),
            mention_off: texts(&channel.mention_off),
            self_ids: [texts(&channel.webhook_self_ids), texts(&channel.self_ids)].concat(),
        }
    }

    /// Denies by default: an empty whitelist admits only signed messages, and only where a signature is sufficient.
    pub fn decide(&self, message: &Inbound, listed: Listed) -> FilterDecision {
        if message.authors.iter().any(|author| self.self_ids.contains(author)) {
            return FilterDecision::Echo;
        }
        let may_enter = match listed {
            Listed::Named => true,
            Listed::Others => false,
            Listed::Empty => self.proves_itself && message.proof >= Proof::Signed,
        };
        if !may_enter {
            return FilterDecision::Refused(RefusalReason::NotWhitelisted);
        }
        if self.needs_proof && message.proof < Proof::Signed {
            return FilterDecision::Refused(RefusalReason::Unproven);
        }
        let is_listed = |label: &String| self.labels.contains(&label.to_lowercase());
        if !self.labels.is_empty() && !message.labels.iter().any(is_listed) {
            return FilterDecision::Refused(RefusalReason::Label);
        }
        let place = message.origin.place.as_ref();
        let is_for_us = message.is_addressed || place.is_some_and(|place| self.mention_off.contains(place));
        if !is_for_us {
            return FilterDecision::Refused(RefusalReason::NotAddressed);
        }
        // Otherwise two bots could answer each other forever.
        FilterDecision::Wanted { is_answered: !message.is_automatic || listed == Listed::Named }
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
            labels: vec!["Urgent".to_owned()],
            context: String::new(),
            text: "Hello".to_owned(),
            files: Vec::new(),
            at: jiff::Timestamp::UNIX_EPOCH,
            source: None,
        }
    }

    const TAKEN: FilterDecision = FilterDecision::Wanted { is_answered: true };

    #[test]
    fn an_empty_whitelist_admits_only_those_who_prove_themselves() {
        let refused = FilterDecision::Refused(RefusalReason::NotWhitelisted);
        let (bot, webhook) =
            (FilterRules::default(), FilterRules { proves_itself: true, ..FilterRules::default() });
        assert_eq!(bot.decide(&message(), Listed::Empty), refused);
        assert_eq!(bot.decide(&message(), Listed::Others), refused);
        assert_eq!(bot.decide(&message(), Listed::Named), TAKEN);
        assert_eq!(webhook.decide(&message(), Listed::Empty), TAKEN);
        assert_eq!(webhook.decide(&message(), Listed::Others), refused);
        let unproven = Inbound { proof: Proof::None, ..message() };
        assert_eq!(webhook.decide(&unproven, Listed::Empty), refused);
    }

    #[test]
    fn where_senders_are_proven_a_forged_one_is_refused() {
        let rules = FilterRules { needs_proof: true, ..FilterRules::default() };
        let forged = Inbound { proof: Proof::None, ..message() };
        let refused = FilterDecision::Refused(RefusalReason::Unproven);
        assert_eq!(rules.decide(&forged, Listed::Named), refused);
        assert_eq!(rules.decide(&message(), Listed::Named), TAKEN);
        assert_eq!(FilterRules::default().decide(&forged, Listed::Named), TAKEN);
    }

    #[test]
    fn our_own_messages_are_echoes_even_if_listed() {
        let rules = FilterRules { self_ids: vec!["bot".to_owned()], ..FilterRules::default() };
        let own = Inbound { authors: vec!["b1".to_owned(), "bot".to_owned()], ..message() };
        assert_eq!(rules.decide(&own, Listed::Named), FilterDecision::Echo);
        assert_eq!(rules.decide(&message(), Listed::Named), TAKEN);
    }

    #[test]
    fn labels_let_messages_in() {
        let of = |label: &str| FilterRules { labels: vec![label.to_owned()], ..FilterRules::default() };
        assert_eq!(of("urgent").decide(&message(), Listed::Named), TAKEN);
        let refused = FilterDecision::Refused(RefusalReason::Label);
        assert_eq!(of("later").decide(&message(), Listed::Named), refused);
    }

    #[test]
    fn what_is_written_to_others_needs_mention_off() {
        let aside = Inbound { is_addressed: false, ..message() };
        let refused = FilterDecision::Refused(RefusalReason::NotAddressed);
        assert_eq!(FilterRules::default().decide(&aside, Listed::Named), refused);
        let rules = FilterRules { mention_off: vec!["room".to_owned()], ..FilterRules::default() };
        assert_eq!(rules.decide(&aside, Listed::Named), TAKEN);
    }

    #[test]
    fn bots_are_answered_only_if_they_are_listed() {
        let robot = Inbound { is_automatic: true, ..message() };
        let rules = FilterRules { proves_itself: true, ..FilterRules::default() };
        assert_eq!(rules.decide(&robot, Listed::Empty), FilterDecision::Wanted { is_answered: false });
        assert_eq!(rules.decide(&robot, Listed::Named), TAKEN);
    }
}
