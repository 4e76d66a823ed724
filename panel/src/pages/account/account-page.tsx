// The user's own account, in tabs: profile, security, notifications, appearance.
import { useSearch } from '@tanstack/react-router'
import { PageBody, PageHeader } from '../../ui/page'
import { Tabs } from '../../ui/tabs'
import { Appearance } from './appearance'
import { NotificationsTab } from './notifications'
import { Profile } from './profile'
import { Security } from './security'

const TABS = [
  { id: 'profile', label: 'Profile', Part: Profile },
  { id: 'security', label: 'Security', Part: Security },
  { id: 'notifications', label: 'Notifications', Part: NotificationsTab },
  { id: 'appearance', label: 'Appearance', Part: Appearance },
]

export function AccountPage() {
  const { tab } = useSearch({ from: '/inside/account' })
  const { id, Part } = TABS.find((each) => each.id === tab) ?? { id: 'profile', Part: Profile }
  return (
    <>
      <PageHeader title="Your account" doc="accounts.md#ones-own-account">
        <Tabs label="Parts of your account" tabs={TABS} current={id} />
      </PageHeader>
      <PageBody narrow>
        <Part />
      </PageBody>
    </>
  )
}
