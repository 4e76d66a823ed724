//! The prompt of a turn in the form that hosts receive.

use muster_protocol::plan::{Part, TurnPlan};

use crate::{
    base::{
        ids::{AgentId, TurnId},
        problem::Result,
    },
    core::access::Scope,
    domain::{
        agents, approvals, channels,
        conversations::{
            self,
            turns::{self, Briefing, prompt},
        },
    },
};

/// The beginning of the prompt for an agent whose turn a limit had interrupted. Its session may have the messages, or
/// not.
const AGAIN: &str =
    "You had to stop because a limit was reached. You can continue now. These were the messages:";

/// The plan of a turn. A host that asks again gets the same.
///
/// # Errors
/// `AGENT_NOT_RUNNING` for a launch that is not the agent's current one; as [`turns::brief`].
pub async fn turn_plan(scope: &Scope, agent: AgentId, generation: i64, turn: TurnId) -> Result<TurnPlan> {
    let tx = scope.begin().await?;
    let agent = agents::lock_present(&tx, agent, generation).await?;
    let Briefing { id, conversation, mut said, is_again } = turns::brief(&tx, &agent, turn).await?;
    approvals::describe_answers(&tx, &mut said).await?;
    let is_shared = conversations::is_shared(&tx, id, &said).await?;
    let given = prompt::given_files(&said);
    conversations::load_files(&tx, &mut said, &given).await?;
    let of_agent = agents::instructions(&tx, agent.id).await?;
    let of_channel = match conversation.channel {
        Some(channel) => channels::instructions(&tx, channel).await?,
        None => None,
    };
    tx.commit().await?;
    let mut prompt = prompt::parts(said, is_shared);
    if is_again {
        prompt.insert(0, Part::Note { text: AGAIN.to_owned() });
    }
    let session = conversation.session;
    let instructions = [of_agent, of_channel].into_iter().flatten().collect::<Vec<_>>().join("\n\n");
    Ok(TurnPlan { conversation_id: id.0, session, instructions, prompt, is_shared })
}
