import { expect, test } from 'vitest'
import type { ApprovalRecord } from '../../app/approvals/fields'
import { groupAlerts, isQuick, pendingWords, quickOnes, tabOf } from './groups'

const approval = (id: number, change: Partial<ApprovalRecord> = {}) =>
  ({
    id,
    kind: 'ACTION',
    status: 'PENDING',
    outcome: null,
    title: 'Build the shop',
    body: null,
    severity: 'MEDIUM',
    risk: 50,
    category: null,
    channelId: null,
    serverId: null,
    assigneeName: null,
    viewerCan: ['approval.resolve'],
    agent: { id: 1, name: 'Zoë', avatarUrl: null },
    question: null,
    request: { tool: 'execute', input: { command: 'make shop' }, digest: null },
    ...change,
  }) as ApprovalRecord
const alert = (id: number, change: Partial<ApprovalRecord> = {}) =>
  approval(id, {
    kind: 'CHANNEL_ERROR',
    title: 'A channel can’t send',
    agent: null,
    risk: null,
    channelId: 5,
    request: null,
    ...change,
  })

test('decisions come first, and a chosen kind may be of either tab', () => {
  expect(tabOf({})).toBe('decisions')
  expect(tabOf({ tab: 'alerts' })).toBe('alerts')
  expect(tabOf({ tab: 'alerts', kind: ['ACTION'] })).toBe('all')
})

test('equal alerts are one row, and decisions never are', () => {
  const all = [alert(1), approval(2), alert(3), alert(4, { channelId: 6 }), approval(5)]
  const { items, equal } = groupAlerts(all)
  expect(items.map(({ id }) => id)).toEqual([1, 2, 4, 5])
  expect(equal.get(1)?.map(({ id }) => id)).toEqual([1, 3])
  expect(equal.get(2)).toBeUndefined()
})

test('a decided alert is not hidden behind a pending one', () => {
  const all = [alert(1), alert(2, { status: 'RESOLVED', outcome: 'MANUAL' })]
  expect(groupAlerts(all).items).toHaveLength(2)
})

test('only what one press decides is decided with others', () => {
  expect(isQuick(approval(1))).toBe(true)
  expect(isQuick(alert(1))).toBe(true)
  expect(isQuick(approval(1, { risk: 80 }))).toBe(false)
  expect(isQuick(approval(1, { category: 'deletion' }))).toBe(false)
  expect(isQuick(approval(1, { kind: 'QUESTION' }))).toBe(false)
  expect(isQuick(approval(1, { viewerCan: [] }))).toBe(false)
  expect(isQuick(approval(1, { request: { tool: 'network', input: {}, digest: null } }))).toBe(false)
})

test('actions and alerts are not decided together', () => {
  const ids = (all: ApprovalRecord[]) => quickOnes(all).map(({ id }) => id)
  expect(ids([approval(1), alert(2), approval(3)])).toEqual([1, 3])
  expect(ids([alert(2), alert(3)])).toEqual([2, 3])
})

test('the page counts what the navigation counts: decisions and alerts', () => {
  expect(pendingWords({ decisions: 2, alerts: 1 })).toBe('2 wait for a decision, 1 alert is open')
  expect(pendingWords({ decisions: 0, alerts: 3 })).toBe('3 alerts are open')
  expect(pendingWords({ decisions: 0, alerts: 0 })).toBe('0 wait for a decision')
})
