// The organization that is shown, as every page below /o/$org knows it.
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
  /** Whether the person may do this anywhere in the organization. */
  can: (permission: Permission) => boolean
}

export const OrganizationContext = createContext<Org | null>(null)

/** The organization that is shown. Only below /o/$org. */
export function useOrg(): Org {
  const org = useContext(OrganizationContext)
  if (!org) throw new Error('useOrg needs a page of an organization')
  return org
}

/** The same, or null: for what stands above the organizations as well. */
export const useOrgIfAny = () => useContext(OrganizationContext)
