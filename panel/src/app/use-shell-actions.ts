// Actions available everywhere: open a page, switch the organization, the account, the theme.
import { useNavigate } from '@tanstack/react-router'
import { useActions } from '../keys/use-actions'
import { setTheme, themeNow } from '../ui/theme'
import { useOrgIfAny } from './organization'
import { useSignOut } from './person'
import { NAV_ITEMS } from './places'
import { useViewer } from './viewer'

export function useShellActions(): void {
  const org = useOrgIfAny()
  const navigate = useNavigate()
  const { memberships } = useViewer()
  const signOut = useSignOut()
  const places = org ? NAV_ITEMS.filter(({ needs }) => org.can(needs)) : []
  useActions([
    ...places.map(({ id, label, keys, to }) => ({
      id: `go.${id}`,
      label,
      group: 'Go to',
      keys,
      run: () => void navigate({ to, params: { org: org?.id } } as never),
    })),
    ...memberships
      .filter(({ organizationId }) => organizationId !== org?.id)
      .map(({ organizationId, organizationName }) => ({
        id: `organization.${organizationId}`,
        label: organizationName,
        group: 'Switch to organization',
        run: () => void navigate({ to: '/o/$org', params: { org: organizationId } }),
      })),
    {
      id: 'go.account',
      label: 'Your account',
      group: 'Go to',
      keys: 'g y',
      run: () => void navigate({ to: '/account' }),
    },
    {
      id: 'panel.theme',
      label: 'Switch between light and dark',
      group: 'Panel',
      also: 'theme',
      run: () => setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'),
    },
    themeNow() !== 'system' && {
      id: 'panel.theme-system',
      label: 'Use the system’s theme',
      group: 'Panel',
      run: () => setTheme('system'),
    },
    { id: 'panel.sign-out', label: 'Sign out', group: 'Panel', run: () => void signOut() },
  ])
}
