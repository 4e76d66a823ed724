// A server's load over time as lines. Pure, tested.

/** A value that was measured in a period, in milliseconds since 1970. */
export interface Step {
  from: number
  to: number
  value: number | null
}

/** The parts of a line: a period without a value, or one that is missing, ends a part. */
export function partsOf(steps: readonly Step[]): Step[][] {
  const parts: Step[][] = []
  let end: number | undefined
  for (const step of steps) {
    const part = step.from === end ? parts.at(-1) : undefined
    if (step.value === null) {
      end = undefined
      continue
    }
    if (part) part.push(step)
    else parts.push([step])
    end = step.to
  }
  return parts
}

/** The line as a path, level over each period. */
export function pathOf(
  steps: readonly Step[],
  x: (time: number) => number,
  y: (value: number) => number,
): string {
  const level = ({ to, value }: Step) => `V${y(value ?? 0)}H${x(to)}`
  return partsOf(steps)
    .map((part) => `M${x(part[0]?.from ?? 0)},${y(part[0]?.value ?? 0)}${part.map(level).join('')}`)
    .join('')
}
