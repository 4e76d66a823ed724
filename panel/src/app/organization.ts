// The current organization, for every page below /o/$org.
import { createContext, useContext } from 'react'
import { graphql, type ResultOf } from '../api/graphql'
import type { Permission } from '../permissions/names'

export const OrganizationQuery = graphql(`
  query ShellOrganization($orgId: Id!) {
    organization(orgId: $orgId) {
      id
      name
      timezone
      currency
      revision
      viewerRole
      viewerPermissions
      viewerCan
      stopped { at by reason userId }
    }
  }
`)

export type OrganizationRecord = NonNullable<ResultOf<typeof OrganizationQuery>['organization']>

export interface Org extends OrganizationRecord {
  /** Whether the user has this permission anywhere in the organization. */
  can: (permission: Permission) => boolean
}

export const OrganizationContext = createContext<Org | null>(null)

/** The current organization. Only below /o/$org. */
export function useOrg(): Org {
  const org = useContext(OrganizationContext)
  if (!org) throw new Error('useOrg needs a page of an organization')
  return org
}

/** The current organization, or null outside of one. */
export const useOrgIfAny = () => useContext(OrganizationContext)
