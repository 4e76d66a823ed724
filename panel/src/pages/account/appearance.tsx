// Theme, density, time zone and shortcuts, stored with the account.
import { usePreferences } from '../../app/preferences'
import { RadioGroup, Switch } from '../../ui/choices'
import { useNow } from '../../ui/now'
import { Panel } from '../../ui/panel'
import { absolute } from '../../ui/time-format'

export function Appearance() {
  const [preferences, change] = usePreferences()
  const { theme = 'system', density = 'comfortable', timeZone = 'local', singleKeys = true } = preferences
  const now = useNow(60_000)
  return (
    <>
      <Panel title="Theme">
        <div className="rounded-card border border-line p-4">
          <RadioGroup
            label="Theme"
            hideLabel
            row
            value={theme}
            onValue={(next) => void change({ theme: next })}
            options={[
              { value: 'system', label: 'As the system' },
              { value: 'light', label: 'Light' },
              { value: 'dark', label: 'Dark' },
            ]}
          />
        </div>
      </Panel>
      <Panel title="Density" about="How close together the rows of lists are.">
        <div className="rounded-card border border-line p-4">
          <RadioGroup
            label="Density"
            hideLabel
            row
            value={density}
            onValue={(next) => void change({ density: next })}
            options={[
              { value: 'comfortable', label: 'Comfortable' },
              { value: 'compact', label: 'Compact' },
            ]}
          />
        </div>
      </Panel>
      <Panel title="Times" about="All pages show times in this zone. Hover over a time to see it in full.">
        <div className="rounded-card border border-line p-4">
          <RadioGroup
            label="Time zone"
            hideLabel
            value={timeZone}
            onValue={(next) => void change({ timeZone: next })}
            options={[
              { value: 'local', label: 'This computer’s', hint: absolute(now, undefined) },
              { value: 'utc', label: 'UTC', hint: absolute(now, 'UTC') },
              { value: 'organization', label: 'The organization’s', hint: 'As set in its settings.' },
            ]}
          />
        </div>
      </Panel>
      <Panel
        title="Keyboard shortcuts"
        about="“Keyboard shortcuts”, in the menu with your name, lists those of the page."
      >
        <div className="rounded-card border border-line p-4">
          <Switch
            label="Single-key shortcuts"
            hint="Letters and signs such as J, A and ?. Switch them off if you use speech input or hit keys by mistake. Ctrl or ⌘ with a key, arrows, Enter and Esc always work."
            checked={singleKeys}
            onChecked={(on) => void change({ singleKeys: on })}
          />
        </div>
      </Panel>
    </>
  )
}
