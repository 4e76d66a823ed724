// How far the first run is. Pure, tested.
import type { FirstRun, StartTalk } from './start-page'

/** The progress so far: the first connected server, running agent, and answered conversation. */
export function progressOf(data: FirstRun) {
  const servers = data.servers?.data ?? []
  const agents = data.agentFeed?.data ?? []
  // The viewer's own before the team's, each from the first on: what comes later is not shown here.
  const talks = [...byTeam(data.mine?.data), ...byTeam(data.conversationFeed?.data)]
  const server = servers.find(({ status }) => status === 'ONLINE' || status === 'DEGRADED')
  const running = agents.filter(({ status }) => status === 'RUNNING')
  // Answered: the agent wrote last. Better one that runs, and can be asked again.
  const ended = talks.filter(({ lastMessage }) => lastMessage?.role === 'ASSISTANT')
  const answered = ended.find(({ agentId }) => running.some(({ id }) => id === agentId)) ?? ended[0]
  // The agent that answered, so that all steps refer to the same one.
  const agent = running.find(({ id }) => id === answered?.agentId) ?? running[0]
  return { servers, agents, talks, server, agent, answered }
}

/** Messages from customers, by mail for example, are not tests by the team. */
const byTeam = (talks: readonly StartTalk[] = []) =>
  talks.filter(({ transport }) => transport === 'INTERNAL').sort((a, b) => a.id - b.id)

/** The first question and its answer: how the conversation goes on is shown on its own page. */
export function firstExchange<Message extends { role: string }>(messages: readonly Message[]): Message[] {
  const answer = messages.findIndex(({ role }) => role === 'ASSISTANT')
  const next = messages.findIndex(({ role }, index) => index > answer && role === 'USER')
  return messages.slice(0, answer < 0 || next < 0 ? undefined : next)
}
