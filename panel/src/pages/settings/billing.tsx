// Invoice details.
import { RadioGroup } from '../../ui/choices'
import { TextInput } from '../../ui/inputs'
import { labelIn, SectionField, SectionForm, SectionPart } from '../../ui/section-form'
import type { Settings } from './settings-page'
import { useOrganizationSection } from './use-organization-section'

const FIELDS = [
  ['taxName', 'Name on invoices'],
  ['taxAddress', 'Street and house number'],
  ['taxPostalCode', 'Postal code'],
  ['taxCity', 'City'],
  ['taxCountry', 'Country'],
  ['taxId', 'Tax ID'],
] as const
const CUSTOMERS = [
  { value: 'BUSINESS', label: 'a business' },
  { value: 'INDIVIDUAL', label: 'a private person' },
] as const

export function Billing({ settings }: { settings: Settings }) {
  const form = useOrganizationSection(settings, [
    'customerType',
    'taxName',
    'taxAddress',
    'taxPostalCode',
    'taxCity',
    'taxCountry',
    'taxId',
  ])
  return (
    <SectionForm title="Invoices" form={form}>
      <SectionPart form={form} name="customerType" asText={labelIn(CUSTOMERS)}>
        <RadioGroup
          label="The customer is"
          row
          value={form.values.customerType}
          onValue={(value) => form.set('customerType', value)}
          options={CUSTOMERS}
        />
      </SectionPart>
      <div className="grid gap-4 sm:grid-cols-2">
        {FIELDS.map(([name, label]) => (
          <SectionField
            key={name}
            form={form}
            name={name}
            label={label}
            optional
            {...(name === 'taxCountry' && { hint: 'Two letters, such as DE.' })}
          >
            <TextInput
              value={form.values[name] ?? ''}
              onValue={(value) => form.set(name, value)}
              autoComplete="off"
            />
          </SectionField>
        ))}
      </div>
    </SectionForm>
  )
}
