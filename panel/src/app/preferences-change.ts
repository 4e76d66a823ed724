// Changes preferences as they are with the account now: another tab may have changed them, too. One change waits for the other.
import type { Client } from '@urql/core'
import { wordsOf } from '../api/errors'
import { graphql, type Json } from '../api/graphql'
import { readAnew } from '../api/requests'
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

/** Sets a part, and leaves the rest as it is. A toast says why, if the service refuses. */
export const changePreferences = (client: Client, to: (before: Preferences) => Preferences): Promise<void> =>
  inTurn(async () => {
    const now = await readAnew(client, PreferencesNow, {})
    if (!now.data?.viewer) return void sayProblem(wordsOf(now.error))
    const before = read(now.data.viewer.preferences)
    const preferences = { ...before, ...to(before) } as Json
    const { error } = await client.mutation(SetPreferences, { preferences }, once()).toPromise()
    if (error) sayProblem(wordsOf(error))
  })
