// Whether a service token is valid.
import { Badge } from '../../ui/badge'

interface Props {
  token: { revokedAt: string | null; expiresAt: string | null; previousExpiresAt: string | null }
}

export function TokenState({ token: { revokedAt, expiresAt, previousExpiresAt } }: Props) {
  if (revokedAt) return <Badge>Revoked</Badge>
  if (expiresAt && new Date(expiresAt) <= new Date()) return <Badge tone="danger">Expired</Badge>
  if (previousExpiresAt && new Date(previousExpiresAt) > new Date()) {
    return (
      <Badge tone="info" tip="The previous secret still works.">
        Two secrets
      </Badge>
    )
  }
  return <Badge tone="ok">Active</Badge>
}
