// The second factor: set it up by scanning a code, replace its recovery codes, remove it.
import type { CombinedError } from '@urql/core'
import { ShieldCheck } from 'lucide-react'
import { useState } from 'react'
import { graphql } from '../../api/graphql'
import { resync } from '../../api/live'
import { sessionChanged } from '../../api/session'
import { useAct } from '../../api/use-act'
import { useViewer } from '../../app/viewer'
import { Badge } from '../../ui/badge'
import { Button } from '../../ui/button'
import { Copy } from '../../ui/copy'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { Panel } from '../../ui/panel'
import { ShownOnce } from '../../ui/shown-once'
import { Qr } from './qr'
import { Refused } from './refused'

const Begin = graphql(`
  mutation BeginTotp($password: SecretString) { beginTotp(password: $password) { secret url } }
`)
const ConfirmTotp = graphql(`
  mutation ConfirmTotp($code: SecretString!) { confirmTotp(code: $code) }
`)
const Regenerate = graphql(`
  mutation RegenerateRecoveryCodes($code: SecretString!) { regenerateRecoveryCodes(code: $code) }
`)
const Disable = graphql(`
  mutation DisableTotp($code: SecretString!, $password: SecretString) { disableTotp(code: $code, password: $password) }
`)

/** Organizations that require one become accessible, or inaccessible: no event reports that. */
function changed(): void {
  sessionChanged()
  resync()
}

type Step =
  | { kind: 'password' }
  | { kind: 'scan'; secret: string; url: string }
  | { kind: 'regenerate' }
  | { kind: 'disable' }

export function SecondFactor() {
  const { user, memberships } = useViewer()
  const [isOn, setOn] = useState<boolean | null>(null)
  const on = isOn ?? user.hasSecondFactor
  const [step, setStep] = useState<Step | null>(null)
  const [codes, setCodes] = useState<string[]>([])
  const required = memberships.filter(({ requiresSecondFactor }) => requiresSecondFactor)
  return (
    <Panel
      title="Second factor"
      about="A code from an app on your phone, asked after the password. A stolen password is then not enough."
    >
      <div className="space-y-3 rounded-card border border-line p-4">
        <div className="flex flex-wrap items-center gap-2">
          <Badge tone={on ? 'ok' : 'plain'} icon={ShieldCheck}>
            {on ? 'On' : 'Off'}
          </Badge>
          <span className="grow" />
          {on ? (
            <>
              <Button onClick={() => setStep({ kind: 'regenerate' })}>New recovery codes</Button>
              <Button look="quiet" onClick={() => setStep({ kind: 'disable' })}>
                Remove
              </Button>
            </>
          ) : (
            <Button look="primary" onClick={() => setStep({ kind: 'password' })}>
              Set up
            </Button>
          )}
        </div>
        {!on && required.length > 0 && (
          <Notice tone="warn">
            {required.map(({ organizationName }) => organizationName).join(' and ')} can only be opened with a
            second factor.
          </Notice>
        )}
      </div>
      {step && (
        <Steps
          step={step}
          onStep={setStep}
          onCodes={(next) => {
            setStep(null)
            setOn(true)
            setCodes(next)
          }}
          onRemoved={() => {
            setStep(null)
            setOn(false)
            changed()
          }}
        />
      )}
      <ShownOnce
        open={codes.length > 0}
        title="Your recovery codes"
        about="Each works once instead of a code from your app: if the phone is lost, they are the way in."
        secrets={[{ label: 'Recovery codes', text: codes.join('\n') }]}
        onDone={() => {
          setCodes([])
          changed()
        }}
      />
    </Panel>
  )
}

interface StepsProps {
  step: Step
  onStep: (step: Step | null) => void
  onCodes: (codes: string[]) => void
  onRemoved: () => void
}

const TITLES = {
  password: 'Set up the second factor',
  scan: 'Scan the code',
  regenerate: 'New recovery codes',
  disable: 'Remove the second factor?',
}

function Steps({ step, onStep, onCodes, onRemoved }: StepsProps) {
  const [begin, confirm, regenerate, disable] = [
    useAct(Begin),
    useAct(ConfirmTotp),
    useAct(Regenerate),
    useAct(Disable),
  ]
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const [refused, setRefused] = useState<CombinedError | undefined>()
  const busy = begin.pending || confirm.pending || regenerate.pending || disable.pending

  const submit = async () => {
    setRefused(undefined)
    const quiet = { quiet: true }
    if (step.kind === 'password') {
      const { data, error } = await begin({ password: password || null }, quiet)
      if (data?.beginTotp) onStep({ kind: 'scan', ...data.beginTotp })
      else setRefused(error)
    } else if (step.kind === 'scan') {
      const { data, error } = await confirm({ code: code.trim() }, quiet)
      if (data?.confirmTotp) onCodes(data.confirmTotp)
      else setRefused(error)
    } else if (step.kind === 'regenerate') {
      const { data, error } = await regenerate({ code: code.trim() }, quiet)
      if (data?.regenerateRecoveryCodes) onCodes(data.regenerateRecoveryCodes)
      else setRefused(error)
    } else {
      const { error } = await disable(
        { code: code.trim(), password: password || null },
        { quiet: true, said: 'The second factor is removed' },
      )
      if (error) setRefused(error)
      else onRemoved()
    }
  }
  const asksPassword = step.kind === 'password' || step.kind === 'disable'
  return (
    <FormDialog
      title={TITLES[step.kind]}
      about={step.kind === 'regenerate' ? 'The old ones stop working.' : undefined}
      action={step.kind === 'disable' ? 'Remove' : 'Continue'}
      look={step.kind === 'disable' ? 'danger' : 'primary'}
      busy={busy}
      onSubmit={submit}
      onClose={() => onStep(null)}
    >
      {step.kind === 'scan' && <Scan secret={step.secret} url={step.url} />}
      {asksPassword && (
        <Field label="Your password" hint="Leave it empty if your account has none.">
          <TextInput
            type="password"
            autoComplete="current-password"
            maxLength={256}
            value={password}
            onValue={setPassword}
          />
        </Field>
      )}
      {step.kind !== 'password' && (
        <Field
          label="Code"
          hint={
            step.kind === 'scan' ? 'The six digits that the app shows.' : 'From your app, or a recovery code.'
          }
        >
          <TextInput
            // The dialog stays open across steps: move the focus.
            autoFocus={step.kind === 'scan'}
            autoComplete="one-time-code"
            maxLength={40}
            spellCheck={false}
            className="font-mono"
            value={code}
            onValue={setCode}
          />
        </Field>
      )}
      {refused && <Refused error={refused} />}
    </FormDialog>
  )
}

function Scan({ secret, url }: { secret: string; url: string }) {
  return (
    <div className="space-y-3">
      <p className="text-muted">Scan this with an authenticator app, then type the code that it shows.</p>
      <Qr text={url} label="Code for the authenticator app" />
      <div className="flex items-center justify-center gap-1 text-sm">
        <span className="text-muted">Or type it in:</span>
        <code className="font-mono break-all">{secret}</code>
        <Copy text={secret} label="Copy the secret" />
      </div>
    </div>
  )
}
