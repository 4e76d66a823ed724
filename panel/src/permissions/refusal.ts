// How a gate tells the buttons inside it that they are refused. Apart from the gate, so that buttons stay light.
import { createContext, useContext } from 'react'

export interface Refusal {
  /** Shows why, and who can change it. */
  explain: () => void
}

export const RefusalContext = createContext<Refusal | null>(null)

export const useRefusal = () => useContext(RefusalContext)
