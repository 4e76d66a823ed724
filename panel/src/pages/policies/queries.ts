// The queries of the policies page.
import { graphql, type ResultOf } from '../../api/graphql'

export const PoliciesQuery = graphql(`
  query Policies($orgId: Id!) {
    policy(orgId: $orgId) {
      version text tokenCap
      files { file text editable }
      roles { role permissions }
      problems { file line reason }
      expectations { line subject permission allowed met }
    }
    permissions { permission group meaning }
    general: proposePolicy(orgId: $orgId, text: "") {
      ok
      changes { subject permission allowed decidedBy { file line text } }
    }
  }
`)

export const ProposeQuery = graphql(`
  query ProposePolicy($orgId: Id!, $text: String!) {
    proposePolicy(orgId: $orgId, text: $text) {
      ok
      problems { file line reason }
      changes { subject permission allowed decidedBy { file line text } }
      expectations { line met }
    }
  }
`)

export const SimulateQuery = graphql(`
  query SimulatePolicy($orgId: Id!, $text: String!, $days: Int!) {
    simulatePolicy(orgId: $orgId, text: $text, days: $days) {
      days calls flipped
      flips { subject tokenId operation permission allowed count decidedBy { file line text } }
      unusedLines { file line text }
    }
  }
`)

/** The recorded calls, which are the same for every text. */
export const UsesQuery = graphql(`
  query PolicyUses($orgId: Id!, $days: Int!) {
    simulatePolicy(orgId: $orgId, text: "", days: $days) { uses { subject permission allowed refused } }
  }
`)

export const MembersQuery = graphql(`
  query PolicyMembers($orgId: Id!) {
    members(orgId: $orgId, page: 1, limit: 200, sort: NAME) {
      total
      data { userId organizationId name role }
    }
  }
`)

export const HistoryQuery = graphql(`
  query PolicyHistory($orgId: Id!, $page: Int!, $limit: Int!) {
    policyHistory(orgId: $orgId, page: $page, limit: $limit) {
      total
      data { id at authorKind authorName reason revertsTo }
    }
  }
`)

type Found = ResultOf<typeof PoliciesQuery>
export type Policy = NonNullable<Found['policy']>
export type Permissions = NonNullable<Found['permissions']>
export type General = Found['general']
export type Proposal = NonNullable<ResultOf<typeof ProposeQuery>['proposePolicy']>
export type CellChange = Proposal['changes'][number]
export type Simulation = NonNullable<ResultOf<typeof SimulateQuery>['simulatePolicy']>
export type CellUse = NonNullable<ResultOf<typeof UsesQuery>['simulatePolicy']>['uses'][number]
export type Version = NonNullable<ResultOf<typeof HistoryQuery>['policyHistory']>['data'][number]
