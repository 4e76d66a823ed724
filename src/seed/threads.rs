//! Conversations with their turns, messages, search index and approvals.

use std::collections::BTreeMap;

use super::{
    Seeded, Volume,
    asked::{self, ApprovalOrigin, PlannedApproval},
    bulk::{Bulk, Cell, Sheet},
    fleet::Fleet,
    talk::{Draft, Talk},
};
use crate::{
    base::{
        folding,
        ids::{AgentId, ConversationId, OrgId},
        time::DAY_MS,
    },
    core::store::{Db, sql::installation_sql},
    domain::conversations::{place_tokens, preview, text_of, tokens},
};
use muster_corpus::{Facts, Random};

/// Creates all conversations. Readers see consistent data meanwhile: counts are committed with the messages they count.
pub async fn create(
    db: &Db,
    org: OrgId,
    volume: &Volume,
    fleet: &Fleet,
    mut random: Random,
) -> anyhow::Result<Seeded> {
    let mut seeded = Seeded::default();
    if fleet.agents.is_empty() {
        return Ok(seeded);
    }
    let mut bulk = Bulk::begin(db).await?;
    let ids = bulk.ids("approvals", volume.approvals as usize).await?;
    let asked = asked::plan(&ids, volume, &mut random);
    let threads = open(&mut bulk, org, volume, fleet, &asked, &mut random).await?;
    bulk.commit().await?;
    let mut writer =
        Writer { db, org, fleet, threads: &threads, drafts: Vec::new(), approvals: asked::sheet() };
    let mut by_thread: BTreeMap<usize, Vec<&PlannedApproval>> = BTreeMap::new();
    for asked in &asked {
        match asked.conversation {
            Some(place) => by_thread.entry(place).or_default().push(asked),
            None => {
                let at = volume.until.0 - random.between(0, 20 * DAY_MS);
                let agent = random.below(fleet.agents.len() as u64) as usize;
                let place = ApprovalOrigin { conversation: None, agent, at };
                asked::push(&mut writer.approvals, org, asked, fleet, &place, &mut random);
            }
        }
    }
    for place in 0..threads.len() {
        let asked = by_thread.remove(&place).unwrap_or_default();
        seeded.messages += writer.write_conversation(place, &asked, volume, &random).await?;
    }
    writer.flush().await?;
    seeded.approvals = asked.len() as u64;
    seeded.conversations = threads.len() as u64;
    seeded.first_agent = threads.first().map(|thread| fleet.agents[thread.agent].id);
    seeded.first_conversation = threads.first().map(|thread| thread.id);
    Ok(seeded)
}

/// A conversation whose row exists.
pub(super) struct Thread {
    pub(super) id: i64,
    pub(super) agent: usize,
    /// The index of its contact; `None` in the panel.
    pub(super) contact: Option<usize>,
    messages: u64,
    opened_at: i64,
    pace: i64,
}

/// The number of messages in each conversation.
fn shares(volume: &Volume) -> Vec<u64> {
    let count = volume.conversations;
    let mut shares: Vec<u64> = if volume.one_conversation {
        let few = 8.min(volume.messages / (4 * count.max(1)));
        vec![few; count as usize]
    } else {
        // The second is half as long as the first, the third a third, and so on.
        let whole: f64 = (1..=count).map(|n| 1.0 / n as f64).sum();
        (1..=count).map(|n| (volume.messages as f64 / whole / n as f64) as u64).collect()
    };
    let given: u64 = shares.iter().skip(1).sum();
    if let Some(first) = shares.first_mut() {
        *first = volume.messages - given;
    }
    shares
}

async fn open(
    bulk: &mut Bulk,
    org: OrgId,
    volume: &Volume,
    fleet: &Fleet,
    asked: &[PlannedApproval],
    random: &mut Random,
) -> anyhow::Result<Vec<Thread>> {
    let mut waiting = vec![false; volume.conversations as usize];
    for asked in asked.iter().filter(|asked| asked.waits()) {
        asked.conversation.into_iter().for_each(|place| waiting[place] = true);
    }
    let mut sheet = Sheet::new(
        "conversations",
        &[
            "organization_id",
            "id",
            "ref",
            "title",
            "title_folded",
            "status",
            "agent_id",
            "contact_id",
            "channel_id",
            "transport",
            "model",
            "context_tokens",
            "opened_at",
            "last_activity_at",
            "resolved_at",
            "archived_at",
            "created_at",
            "updated_at",
        ],
    );
    let ids = bulk.ids("conversations", volume.conversations as usize).await?;
    let mut threads = Vec::with_capacity(ids.len());
    for (place, (id, messages)) in ids.into_iter().zip(shares(volume)).enumerate() {
        let outside = place == 0 || random.chance(88);
        let contact =
            outside.then(|| if place == 0 { 0 } else { random.below(fleet.contacts.len() as u64) as usize });
        let channel = contact.map(|contact| &fleet.channels[fleet.contacts[contact].channel]);
        let agent =
            channel.map_or_else(|| random.below(fleet.agents.len() as u64) as usize, |channel| channel.agent);
        let count = messages.cast_signed().max(1);
        let span = (count * 40_000).min(300 * DAY_MS);
        // Most of them recently, a few long ago.
        let ago = random.below(1_000) * random.below(1_000) * 60;
        let opened_at = volume.until.0 - span - 60_000 * ago.cast_signed() / 1_000;
        let status = match (waiting[place], place) {
            (true, _) => "PENDING",
            (false, 0) => "OPEN",
            _ => random.weighted(&[(5, "OPEN"), (4, "RESOLVED"), (1, "ARCHIVED")]),
        };
        let title = random.pick(fleet.agents[agent].topic.titles);
        let title = Facts::new(random).fill(title);
        sheet.push([
            org.0.into(),
            id.into(),
            reference(id).into(),
            title.clone().into(),
            folding::name(&title).into(),
            status.into(),
            fleet.agents[agent].id.into(),
            contact.map(|contact| fleet.contacts[contact].id).into(),
            channel.map(|channel| channel.id).into(),
            channel.map_or("INTERNAL", |channel| channel.transport).into(),
            fleet.agents[agent].model.into(),
            (2_000 + count.min(400) * 300).into(),
            opened_at.into(),
            opened_at.into(),
            matches!(status, "RESOLVED" | "ARCHIVED").then_some(opened_at).into(),
            (status == "ARCHIVED").then_some(opened_at).into(),
            opened_at.into(),
            opened_at.into(),
        ]);
        threads.push(Thread { id, agent, contact, messages, opened_at, pace: span / count });
    }
    bulk.write(&mut sheet).await?;
    Ok(threads)
}

/// Eight Crockford base32 characters; different for different ids.
fn reference(id: i64) -> String {
    const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    // An odd factor permutes the 40-bit numbers.
    let mut bits = id.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15) & ((1 << 40) - 1);
    (0..8)
        .map(|_| {
            let digit = ALPHABET[(bits & 31) as usize];
            bits >>= 5;
            char::from(digit)
        })
        .collect()
}

pub(super) struct Writer<'a> {
    db: &'a Db,
    pub(super) org: OrgId,
    pub(super) fleet: &'a Fleet,
    pub(super) threads: &'a [Thread],
    drafts: Vec<Draft>,
    approvals: Sheet,
}

impl Writer<'_> {
    /// Generates one conversation. Returns the number of its messages.
    async fn write_conversation(
        &mut self,
        place: usize,
        asked: &[&PlannedApproval],
        volume: &Volume,
        random: &Random,
    ) -> anyhow::Result<u64> {
        let thread = &self.threads[place];
        let mut talk = Talk {
            place,
            topic: self.fleet.agents[thread.agent].topic,
            outside: thread.contact.is_some(),
            random: Random::new(&[random.clone().number(), place as u64]),
            seq: 0,
            turns: 0,
            at: thread.opened_at,
            until: volume.until.0,
            pace: thread.pace,
        };
        let total = thread.messages.cast_signed();
        let (waiting, decided): (Vec<&PlannedApproval>, Vec<&PlannedApproval>) =
            asked.iter().partition(|asked| asked.waits());
        // A pending approval is the last message.
        let turns_end = total - waiting.len().cast_signed() as i64;
        let every = total / (decided.len().cast_signed() as i64 + 1);
        let mut decided = decided.into_iter();
        let mut next = every;
        while talk.seq < turns_end {
            let before = self.drafts.len();
            if talk.seq >= next
                && let Some(asked) = decided.next()
            {
                let seq = talk.push_approval(&mut self.drafts, asked.id);
                self.approve(asked, thread, Some(seq), &mut talk);
                next += every;
                continue;
            }
            talk.turn(&mut self.drafts);
            let surplus = (talk.seq - turns_end).max(0);
            self.drafts.truncate(self.drafts.len() - surplus as usize);
            talk.seq -= surplus;
            if let Some(last) = self.drafts[before..].last() {
                talk.at = last.at;
            }
            // Messages written and committed together.
            if self.drafts.len() >= 25_000 {
                self.flush().await?;
            }
        }
        for asked in decided {
            self.approve(asked, thread, None, &mut talk);
        }
        for asked in waiting {
            let seq = (talk.seq < total).then(|| talk.push_approval(&mut self.drafts, asked.id));
            self.approve(asked, thread, seq, &mut talk);
        }
        Ok(talk.seq.cast_unsigned())
    }

    fn approve(&mut self, asked: &PlannedApproval, thread: &Thread, seq: Option<i64>, talk: &mut Talk) {
        let place = ApprovalOrigin { conversation: Some((thread.id, seq)), agent: thread.agent, at: talk.at };
        asked::push(&mut self.approvals, self.org, asked, self.fleet, &place, &mut talk.random);
    }

    /// Writes the waiting rows, with the summaries of their conversations.
    async fn flush(&mut self) -> anyhow::Result<()> {
        let drafts = std::mem::take(&mut self.drafts);
        let mut bulk = Bulk::begin(self.db).await?;
        bulk.write(&mut self.approvals).await?;
        let turns = self.turns(&mut bulk, &drafts).await?;
        let ids = bulk.ids("messages", drafts.len()).await?;
        let postgres = bulk.is_postgres();
        let mut messages = Sheet::new("messages", MESSAGE);
        let mut index =
            if postgres { Sheet::new("message_search", SEARCH) } else { Sheet::new("messages_fts", FTS) };
        let mut deliveries = Sheet::new("deliveries", DELIVERY);
        let mut last: BTreeMap<usize, (Summary, i64)> = BTreeMap::new();
        for (draft, id) in drafts.into_iter().zip(ids) {
            let text = text_of(draft.kind, &draft.content);
            let thread = &self.threads[draft.conversation];
            self.index(&mut index, postgres, thread, (id, draft.seq), &text);
            let summary =
                Summary { role: draft.role.as_str(), kind: draft.kind.as_str(), text, at: draft.at };
            last.insert(draft.conversation, (summary, draft.seq));
            let turn = draft.turn.and_then(|turn| turns.get(&(draft.conversation, turn)).copied());
            messages.push(self.row((id, turn), thread, &draft));
            if let Some(row) = self.delivery(id, thread, &draft) {
                deliveries.push(row);
            }
        }
        bulk.write(&mut messages).await?;
        bulk.write(&mut deliveries).await?;
        bulk.write(&mut index).await?;
        for (place, (summary, seq)) in last {
            self.summarize(&mut bulk, self.threads[place].id, &summary, seq).await?;
        }
        bulk.commit().await
    }

    fn row(&self, (id, turn): (i64, Option<i64>), thread: &Thread, draft: &Draft) -> [Cell; 18] {
        let contact = thread.contact.map(|place| &self.fleet.contacts[place]).filter(|_| draft.outside);
        let theirs = draft.role.as_str() == "USER";
        let (status, attempts, error) = match draft.delivery {
            Some((status, attempts, error)) => (Some(status), attempts, error),
            None => (None, 0, None),
        };
        let sent = status.is_some() && error.is_none();
        [
            self.org.0.into(),
            id.into(),
            thread.id.into(),
            draft.seq.into(),
            turn.into(),
            draft.role.as_str().into(),
            draft.kind.as_str().into(),
            contact.map(|contact| self.fleet.channels[contact.channel].id).into(),
            contact.map(|contact| contact.identity).into(),
            Cell::Null,
            contact.filter(|_| theirs).map(|contact| contact.name.clone()).into(),
            "DELIVERED".into(),
            status.into(),
            attempts.into(),
            error.into(),
            sent.then_some(draft.at + 350).into(),
            draft.content.to_string().into(),
            draft.at.into(),
        ]
    }

    /// The only part of a message that went through a channel: without its text, unless it failed.
    fn delivery(&self, id: i64, thread: &Thread, draft: &Draft) -> Option<[Cell; 14]> {
        let (status, attempts, error) = draft.delivery?;
        let channel = &self.fleet.channels[self.fleet.contacts[thread.contact?].channel];
        let text = error.map(|_| draft.content["text"].as_str().unwrap_or_default().to_owned());
        Some([
            self.org.0.into(),
            channel.id.into(),
            thread.id.into(),
            id.into(),
            1.into(),
            status.into(),
            text.clone().into(),
            text.into(),
            attempts.into(),
            draft.at.into(),
            error.map(|_| "gave_up").into(),
            error.into(),
            draft.at.into(),
            error.is_none().then_some(draft.at + 350).into(),
        ])
    }

    fn index(&self, sheet: &mut Sheet, postgres: bool, thread: &Thread, (id, seq): (i64, i64), text: &str) {
        let mut tokens = tokens(text);
        tokens.extend(place_tokens(
            self.org,
            AgentId(self.fleet.agents[thread.agent].id),
            ConversationId(thread.id),
        ));
        if postgres {
            // Tokens consist of letters, digits and `#`, which a vector's text form does not escape.
            sheet.push([self.org.0.into(), id.into(), thread.id.into(), seq.into(), quoted(&tokens).into()]);
        } else {
            sheet.push([id.into(), tokens.join(" ").into()]);
        }
    }

    async fn summarize(&self, bulk: &mut Bulk, id: i64, last: &Summary, seq: i64) -> anyhow::Result<()> {
        let sql = installation_sql!(
            "UPDATE conversations SET message_count = $3, last_seq = $3, last_message_seq = $3, \
             last_message_role = $4, last_message_kind = $5, last_message_preview = $6, \
             last_message_created_at = $7, last_activity_at = $7, updated_at = $7, \
             resolved_at = CASE WHEN resolved_at IS NULL THEN NULL ELSE $7 END, \
             archived_at = CASE WHEN archived_at IS NULL THEN NULL ELSE $7 END \
             WHERE organization_id = $1 AND id = $2"
        );
        let values = [
            self.org.0.into(),
            id.into(),
            seq.into(),
            last.role.into(),
            last.kind.into(),
            preview(&last.text).into(),
            last.at.into(),
        ];
        bulk.run(sql, values).await
    }
}

/// A conversation's summary of its last message.
struct Summary {
    role: &'static str,
    kind: &'static str,
    text: String,
    at: i64,
}

const MESSAGE: &[&str] = &[
    "organization_id",
    "id",
    "conversation_id",
    "seq",
    "turn_id",
    "role",
    "kind",
    "via_channel_id",
    "via_identity_id",
    "author_user_id",
    "author_name",
    "status",
    "delivery_status",
    "delivery_attempts",
    "delivery_error",
    "delivery_sent_at",
    "content",
    "created_at",
];
const DELIVERY: &[&str] = &[
    "organization_id",
    "channel_id",
    "conversation_id",
    "message_id",
    "part",
    "status",
    "text",
    "plain",
    "attempts",
    "available_at",
    "code",
    "error",
    "created_at",
    "sent_at",
];
const SEARCH: &[&str] = &["organization_id", "message_id", "conversation_id", "seq", "tokens"];
const FTS: &[&str] = &["rowid", "tokens"];

/// A vector's text form: `'word' 'other'`.
fn quoted(tokens: &[String]) -> String {
    let mut out = String::with_capacity(tokens.len() * 10);
    for token in tokens {
        out.push('\'');
        out.push_str(token);
        out.push_str("' ");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Volume, reference, shares};
    use crate::base::time::Timestamp;

    #[test]
    fn all_messages_are_given_out() {
        for one_conversation in [false, true] {
            for (conversations, messages) in [(1, 0), (1, 10), (7, 3), (40, 1_000)] {
                let volume = Volume {
                    agents: 1,
                    conversations,
                    messages,
                    approvals: 0,
                    members: 0,
                    one_conversation,
                    at_rest: false,
                    until: Timestamp(0),
                };
                let shares = shares(&volume);
                assert_eq!(shares.iter().sum::<u64>(), messages);
                assert!(shares[0] >= *shares.last().unwrap());
            }
        }
    }

    #[test]
    fn references_differ() {
        let references: std::collections::HashSet<String> = (1..5_000).map(reference).collect();
        assert_eq!(references.len(), 4_999);
        assert!(references.iter().all(|text| text.len() == 8));
    }
}
