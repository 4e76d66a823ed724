// The menu of the signed-in user.
import { useNavigate } from '@tanstack/react-router'
import { Keyboard, LogOut, Monitor, Moon, Settings, Sun } from 'lucide-react'
import { runNamed } from '../keys/registry'
import { Avatar } from '../ui/avatar'
import { Menu } from '../ui/menu'
import type { Theme } from '../ui/theme'
import { useSignOut } from './person'
import { usePreferences } from './preferences'
import { useViewer } from './viewer'

const THEMES: { theme: Theme; label: string; icon: typeof Sun }[] = [
  { theme: 'light', label: 'Light', icon: Sun },
  { theme: 'dark', label: 'Dark', icon: Moon },
  { theme: 'system', label: 'As the system', icon: Monitor },
]

export function PersonMenu() {
  const { user } = useViewer()
  const navigate = useNavigate()
  const signOut = useSignOut()
  const [{ theme = 'system' }, change] = usePreferences()
  return (
    <Menu
      align="start"
      entries={[
        {
          label: 'Your account',
          icon: Settings,
          keys: 'g y',
          onSelect: () => void navigate({ to: '/account' }),
        },
        { label: 'Keyboard shortcuts', icon: Keyboard, keys: '?', onSelect: () => runNamed('panel.keys') },
        'line',
        ...THEMES.map(({ theme: value, label, icon }) => ({
          label,
          icon,
          checked: theme === value,
          onSelect: () => void change({ theme: value }),
        })),
        'line',
        { label: 'Sign out', icon: LogOut, onSelect: () => void signOut() },
      ]}
      trigger={
        <button
          type="button"
          className="flex h-10 w-full min-w-0 items-center gap-2.5 rounded-control px-1.5 hover:bg-hover"
        >
          <span className="sr-only">You: </span>
          <Avatar name={user.name} url={user.avatarUrl} />
          <span className="min-w-0 grow truncate text-left">{user.name}</span>
        </button>
      }
    />
  )
}
