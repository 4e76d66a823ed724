// The steps that make an agent useful after its first answer. Pure, tested.
import type { LinkProps } from '@tanstack/react-router'

export interface Facts {
  /** It answers by the demo's rules until it gets another model. */
  isOfDemo: boolean
  hasModelCredential: boolean
  hasAssignedSkill: boolean
  hasApprovalRules: boolean
  hasChannel: boolean
  /** Besides the viewer, including open invitations. */
  hasOthers: boolean
}

export interface NextStep {
  id: string
  title: string
  about: string
  action: string
  isDone: boolean
  link: LinkProps
}

export function nextSteps(facts: Facts, org: number, agent: number | undefined): NextStep[] {
  const to = (path: string, search: object, params = {}) =>
    ({ to: path, search, params: { org, ...params } }) as LinkProps
  const settings = agent
    ? to('/o/$org/agents/$id', { tab: 'settings' }, { id: agent })
    : to('/o/$org/agents', {})
  return [
    {
      id: 'key',
      title: 'Give it a model',
      about: facts.isOfDemo
        ? 'It answers by rules so far. Name a model, and give it a key.'
        : 'A key of a provider, which agents use without seeing it.',
      action: facts.isOfDemo ? 'Choose a model' : 'Add a model key',
      isDone: facts.hasModelCredential && !facts.isOfDemo,
      link: facts.isOfDemo ? settings : to('/o/$org/settings', { tab: 'money' }),
    },
    {
      id: 'skill',
      title: 'Tell it how to work',
      about: 'A skill holds instructions. Write one, and assign it to the agent.',
      action: 'Write a skill',
      isDone: facts.hasAssignedSkill,
      link: to('/o/$org/skills', facts.hasAssignedSkill ? {} : { open: 'new' }),
    },
    {
      id: 'ask',
      title: 'Decide what it must ask',
      about: 'The risk from which it asks a person, and the actions it may never take.',
      action: 'Set its approvals',
      isDone: facts.hasApprovalRules,
      link: settings,
    },
    {
      id: 'channel',
      title: 'Connect a channel',
      about: 'People then reach it from a chat, for example.',
      action: 'Connect a channel',
      isDone: facts.hasChannel,
      link: to('/o/$org/channels', facts.hasChannel ? {} : { open: 'new' }),
    },
    {
      id: 'invite',
      title: 'Invite someone',
      about: 'Others can then talk to it and decide what it asks.',
      action: 'Invite a member',
      isDone: facts.hasOthers,
      link: to('/o/$org/members', facts.hasOthers ? {} : { open: 'new' }),
    },
  ]
}
