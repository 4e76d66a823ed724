// Exports the audit log: asks for the period, starts the download, and names its contents.
import { useState } from 'react'
import { useOrg } from '../../app/organization'
import { useZone } from '../../ui/clock'
import { download } from '../../ui/download'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { Select, TextInput } from '../../ui/inputs'
import { dated } from '../../ui/time-format'
import { say } from '../../ui/toast-store'
import { type Choice, exportPath, type Period, periodOf } from './export'

const CHOICES: { value: Choice; label: string }[] = [
  { value: 'DAY', label: 'The last 24 hours' },
  { value: 'WEEK', label: 'The last 7 days' },
  { value: 'MONTH', label: 'The last 30 days' },
  { value: 'YEAR', label: 'The last 365 days' },
  { value: 'ALL', label: 'Everything' },
  { value: 'DATES', label: 'Between two dates' },
]
const SHOWN: (typeof CHOICES)[number] = { value: 'SHOWN', label: 'The period of the list' }

export function ExportDialog({ from, to, onClose }: Period & { onClose: () => void }) {
  const org = useOrg()
  const { timeZone } = useZone()
  const isLimited = from !== undefined || to !== undefined
  const [choice, choose] = useState<Choice>(isLimited ? 'SHOWN' : 'MONTH')
  const [dates, setDates] = useState({ first: '', last: '' })
  const isBackwards =
    choice === 'DATES' && dates.first !== '' && dates.last !== '' && dates.last < dates.first
  const submit = () => {
    if (isBackwards) return
    const period = periodOf(choice, { from, to }, dates, Date.now())
    download(exportPath(org.id, period), `audit-${org.id}.jsonl`)
    const at = (time: string) => dated(Date.parse(time), timeZone)
    const begin = period.from ? `from ${at(period.from)}` : 'from the first entry'
    say(`Exporting the audit log ${begin} ${period.to ? `to ${at(period.to)}` : 'to now'}: see the downloads`)
    onClose()
  }
  return (
    <FormDialog
      title="Export the audit log"
      about="All entries of the period, regardless of the other filters, as JSON Lines: one entry per line, signed for “muster audit verify”. The export is logged."
      action="Export"
      busy={false}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label="Period">
        <Select value={choice} onValue={choose} options={isLimited ? [SHOWN, ...CHOICES] : CHOICES} />
      </Field>
      {choice === 'DATES' && (
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label="First day" optional>
            <TextInput type="date" value={dates.first} onValue={(first) => setDates({ ...dates, first })} />
          </Field>
          <Field label="Last day" optional error={isBackwards ? 'It is before the first day.' : undefined}>
            <TextInput type="date" value={dates.last} onValue={(last) => setDates({ ...dates, last })} />
          </Field>
        </div>
      )}
    </FormDialog>
  )
}
