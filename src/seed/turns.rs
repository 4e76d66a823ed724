//! The turns of the seeded messages: all of them done, with the usage that their agents reported.

use std::collections::BTreeMap;

use super::{
    bulk::{Bulk, Cell, Sheet},
    talk::Draft,
    threads::Writer,
};
use crate::{base::enums::MessageRole, core::store::sql::installation_sql, domain::conversations::text_of};

impl Writer<'_> {
    /// Writes the turns of these messages, and adds their usage to their agents'. Returns their ids.
    pub(super) async fn turns(
        &self,
        bulk: &mut Bulk,
        drafts: &[Draft],
    ) -> anyhow::Result<BTreeMap<(usize, u64), i64>> {
        // A turn's messages are never written in two parts.
        let of_turn = |draft: &Draft| Some((draft.conversation, draft.turn?));
        let turns: Vec<&[Draft]> = drafts
            .chunk_by(|one, next| of_turn(one) == of_turn(next))
            .filter(|drafts| of_turn(&drafts[0]).is_some())
            .collect();
        let ids = bulk.ids("turns", turns.len()).await?;
        let mut sheet = Sheet::new("turns", TURN);
        let mut known = BTreeMap::new();
        let mut used: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for (drafts, id) in turns.into_iter().zip(ids) {
            let (first, last) = (&drafts[0], &drafts[drafts.len() - 1]);
            let thread = &self.threads[first.conversation];
            let agent = &self.fleet.agents[thread.agent];
            let tokens = |of_agent: bool| {
                let texts = drafts.iter().filter(|draft| (draft.role == MessageRole::Assistant) == of_agent);
                texts
                    .map(|draft| text_of(draft.kind, &draft.content).len().cast_signed() as i64 / 4 + 1)
                    .sum::<i64>()
            };
            let (input, output, cached) = (1_500 + tokens(false), tokens(true), 1_200_i64);
            let cost = 4_000 + 15 * output;
            let sum = used.entry(agent.id).or_default();
            *sum = (sum.0 + input + output + cached, sum.1 + cost);
            let row: [Cell; 20] = [
                self.org.0.into(),
                id.into(),
                thread.id.into(),
                agent.id.into(),
                1_i64.into(),
                if thread.contact.is_some() { "CHANNEL" } else { "PANEL" }.into(),
                "DONE".into(),
                agent.model.into(),
                input.into(),
                output.into(),
                cached.into(),
                0_i64.into(),
                cost.into(),
                true.into(),
                first.seq.into(),
                last.seq.into(),
                first.at.into(),
                last.at.into(),
                first.at.into(),
                last.at.into(),
            ];
            sheet.push(row);
            known.extend(of_turn(first).map(|turn| (turn, id)));
        }
        bulk.write(&mut sheet).await?;
        for (agent, (tokens, cost)) in used {
            let sql = installation_sql!(
                "UPDATE agents SET tokens_used = tokens_used + $3, cost_micro = cost_micro + $4 \
                 WHERE organization_id = $1 AND id = $2"
            );
            bulk.run(sql, [self.org.into(), agent.into(), tokens.into(), cost.into()]).await?;
        }
        Ok(known)
    }
}

const TURN: &[&str] = &[
    "organization_id",
    "id",
    "conversation_id",
    "agent_id",
    "generation",
    "cause",
    "state",
    "model",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cost_micro",
    "unmeasured",
    "first_seq",
    "last_seq",
    "started_at",
    "ended_at",
    "created_at",
    "updated_at",
];
