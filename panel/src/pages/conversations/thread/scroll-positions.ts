// Scroll positions per browser history entry: Back returns to the same line.
export interface Position {
  /** The top message and its distance from the edge; null: at the end. */
  seq: number | null
  offset: number
}

const MAX_POSITIONS = 50
const positions = new Map<string, Position>()

export const positionOf = (entry: string): Position | undefined => positions.get(entry)

export function savePosition(entry: string, position: Position): void {
  positions.delete(entry)
  positions.set(entry, position)
  if (positions.size > MAX_POSITIONS) positions.delete(positions.keys().next().value as string)
}
