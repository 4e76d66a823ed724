// Warns that the page may be out of date. Hidden while connected, and during the first seconds of an interruption.
import { WifiOff } from 'lucide-react'
import { useSyncExternalStore } from 'react'
import { connectionNow, onConnection } from '../api/connection'
import { useNow } from '../ui/now'
import { Time } from '../ui/time'

const PATIENCE_MS = 1500

export default function ConnectionBanner() {
  const connection = useSyncExternalStore(onConnection, connectionNow)
  const now = useNow(1000)
  const isLost = connection.state === 'lost' && now - connection.since > PATIENCE_MS - 1000
  return (
    <div role="status" aria-live="polite">
      {isLost && (
        <div className="flex items-center gap-2 bg-warn-soft px-4 py-1.5 text-sm text-warn-text sm:px-6">
          <WifiOff size={14} aria-hidden />
          <p>
            No connection since <Time at={connection.since} as="stamp" />. What you see may be out of date;
            Muster reconnects by itself.
          </p>
        </div>
      )}
    </div>
  )
}
