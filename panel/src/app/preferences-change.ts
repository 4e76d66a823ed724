// Changes preferences based on the account's current state, which another tab may have changed. Changes run one by one.
import type { Client } from '@urql/core'
import { wordsOf } from '../api/errors'
import { graphql, type Json } from '../api/graphql'
import { readFresh } from '../api/requests'
import { once, queue } from '../api/use-act'
import { sayProblem } from '../ui/toast-store'
import { type Preferences, read } from './preferences'

const PreferencesNow = graphql(`
  query ShellPreferences { viewer { preferences } }
`)
const SetPreferences = graphql(`
  mutation SetPreferences($preferences: JSON!) {
    setPreferences(preferences: $preferences) { preferences }
  }
`)

const inTurn = queue()

/** Changes a part of the preferences and keeps the rest. A toast explains a refusal. */
export const changePreferences = (client: Client, to: (before: Preferences) => Preferences): Promise<void> =>
  inTurn(async () => {
    const now = await readFresh(client, PreferencesNow, {})
    if (!now.data?.viewer) return void sayProblem(wordsOf(now.error))
    const before = read(now.data.viewer.preferences)
    const preferences = { ...before, ...to(before) } as Json
    const { error } = await client.mutation(SetPreferences, { preferences }, once()).toPromise()
    if (error) sayProblem(wordsOf(error))
  })
