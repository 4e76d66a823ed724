// Scroll positions per browser history entry: Back returns to the same line.
export interface Place {
  /** The top message and its distance from the edge; null: at the end. */
  seq: number | null
  offset: number
}

const MAX_PLACES = 50
const places = new Map<string, Place>()

export const placeOf = (entry: string): Place | undefined => places.get(entry)

export function keepPlace(entry: string, place: Place): void {
  places.delete(entry)
  places.set(entry, place)
  if (places.size > MAX_PLACES) places.delete(places.keys().next().value as string)
}
