// A form section with its own Save, which appears after a change; Mod+Enter saves too. Inside a Gate that denies, it
// shows the stored values greyed out and explains why they can't be changed.
import { useBlocker } from '@tanstack/react-router'
import { cloneElement, createContext, type ReactElement, type ReactNode, useContext, useEffect } from 'react'
import { useRefusal } from '../permissions/refusal'
import { Button } from './button'
import { Switch } from './choices'
import { DocLink, type DocPart } from './doc-link'
import { Field } from './field'
import { LeaveDialog, leaves } from './leave'
import { Notice } from './notice'
import { NotEditable } from './panel'
import { useListed } from './section-form-list'
import { Time } from './time'
import type { Section, Values } from './use-section'

interface Props<V extends Values> {
  title: string
  about?: ReactNode
  /** The part of the documentation: `agents.md#backups`. */
  doc?: string
  form: Section<V>
  children: ReactNode
}

/** Whether the page says above its sections that they can't be changed. */
const SaidAbove = createContext(false)

/** Several sections inside one gate, which says once why they can't be changed. */
export function Sections({ children }: { children: ReactNode }) {
  const refusal = useRefusal()
  return (
    <SaidAbove value={refusal !== null}>
      {refusal && (
        <div className="mb-4">
          <NotEditable explain={refusal.explain} />
        </div>
      )}
      {children}
    </SaidAbove>
  )
}

export function SectionForm<V extends Values>({ title, about, doc, form, children }: Props<V>) {
  const refusal = useRefusal()
  const isSaidAbove = useContext(SaidAbove)
  const id = useListed(title, form.dirty)
  const leaving = useBlocker({
    shouldBlockFn: ({ current, next }) => leaves(current, next),
    // The browser itself asks when the tab closes.
    enableBeforeUnload: true,
    disabled: !form.dirty,
    withResolver: true,
  })
  return (
    <form
      id={id}
      className="mb-8 scroll-mt-6"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        void form.save()
      }}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
          event.preventDefault()
          void form.save()
        }
      }}
    >
      <div className="flex items-center gap-2">
        <h2 className="font-semibold">{title}</h2>
        {doc && <DocLink to={doc} about={title} />}
      </div>
      {about && <p className="text-sm text-muted">{about}</p>}
      <div className="mt-3 space-y-4 rounded-card border border-line p-4">
        {form.conflict && (
          <Notice tone="warn">
            {form.conflict.changedBy ?? 'Someone'} changed this{' '}
            <Time at={form.conflict.changedAt} none="meanwhile" />. Yours is kept below; check what differs
            and save again.
          </Notice>
        )}
        {refusal && !isSaidAbove && <NotEditable explain={refusal.explain} />}
        {/* Disables inputs, choices and pickers together. */}
        <fieldset disabled={refusal !== null} className="min-w-0 space-y-4">
          {children}
        </fieldset>
        {form.problem && <Notice>{form.problem}</Notice>}
        {form.dirty && (
          <div className="arrive flex items-center justify-end gap-2 border-t border-line pt-3">
            <Button look="quiet" onClick={form.discard}>
              Discard
            </Button>
            <Button type="submit" look="primary" busy={form.saving} keys="mod+enter">
              {form.conflict ? 'Save mine' : 'Save'}
            </Button>
          </div>
        )}
      </div>
      <LeaveDialog title={title} leaving={leaving} save={form.save} />
    </form>
  )
}

interface PartProps<V extends Values> {
  form: Section<V>
  name: keyof V & string
  /** Formats a value, to display someone else's change. */
  asText?: (value: unknown) => string
  /** One control with its own label. */
  children: ReactElement<{ error?: string | null }>
}

/** A part of a section, with its error and any concurrent change by someone else. */
export function SectionPart<V extends Values>({ form, name, asText = inWords, children }: PartProps<V>) {
  const { place } = form
  useEffect(() => place(name), [place, name])
  const theirs = form.theirsOf(name)
  return (
    <div>
      {cloneElement(children, { error: form.errorOf(name) })}
      {theirs && (
        <div className="mt-1.5 flex flex-wrap items-center gap-2 rounded-control bg-warn-soft px-2.5 py-1.5 text-sm text-warn-text">
          <span className="min-w-0 grow">
            {theirs.by ?? 'Someone'} wrote:{' '}
            <strong className="font-semibold">
              {theirs.value === null ? 'nothing' : asText(theirs.value)}
            </strong>
          </span>
          <Button size="sm" onClick={theirs.take}>
            Use theirs
          </Button>
        </div>
      )}
    </div>
  )
}

/** Formats a value by its option's label, for `asText`. */
export const labelIn = (options: readonly { value: string; label: string }[]) => (value: unknown) =>
  options.find((option) => option.value === value)?.label ?? String(value)

const inWords = (value: unknown) => (value === true ? 'yes' : value === false ? 'no' : String(value))

interface FieldProps<V extends Values> extends Omit<PartProps<V>, 'children'> {
  label: ReactNode
  hint?: ReactNode
  optional?: boolean
  doc?: DocPart
  /** The control that the label belongs to. */
  children: ReactElement<{ id?: string }>
}

/** A labelled part of a section. */
export function SectionField<V extends Values>({ form, name, asText, ...field }: FieldProps<V>) {
  return (
    <SectionPart form={form} name={name} asText={asText}>
      <Field {...field} />
    </SectionPart>
  )
}

interface SwitchProps<V extends Values> extends Pick<PartProps<V>, 'form' | 'name'> {
  label: string
  hint?: string
}

/** An on/off part of a section. */
export function SectionSwitch<V extends Values>({ form, name, label, hint }: SwitchProps<V>) {
  return (
    <SectionPart form={form} name={name}>
      <Switch
        label={label}
        hint={hint}
        checked={form.values[name] === true}
        onChecked={(on) => form.set(name, on as V[typeof name])}
      />
    </SectionPart>
  )
}
