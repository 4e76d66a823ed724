// The state of the log's hash chain: up to which entry changes would be detected.
import { Link2 } from 'lucide-react'
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { Badge } from '../../ui/badge'

const SealQuery = graphql(`
  query AuditSeal($orgId: Id!) {
    auditSeal(orgId: $orgId) { chainSeq sealedAt }
  }
`)

export function Seal() {
  const { data } = useLive({ query: SealQuery, variables: { orgId: useOrg().id }, on: ['AUDIT_ENTRY'] })
  const seal = data?.auditSeal
  if (!seal) return null
  return (
    <Badge
      icon={Link2}
      tip="Each entry contains the hash of the one before. “muster audit verify” checks them all."
    >
      Sealed up to {seal.chainSeq}
    </Badge>
  )
}
