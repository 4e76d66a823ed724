// Tells buttons inside a gate that they are denied. Separate from the gate to keep buttons small.
import { createContext, useContext } from 'react'

export interface Refusal {
  /** Explains the denial and who can change it. */
  explain: () => void
}

export const RefusalContext = createContext<Refusal | null>(null)

export const useRefusal = () => useContext(RefusalContext)
