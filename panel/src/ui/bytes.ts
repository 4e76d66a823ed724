/** "340 bytes", "1.2 MB". */
export function bytes(size: number): string {
  if (size < 1000) return `${size} byte${size === 1 ? '' : 's'}`
  const units = ['KB', 'MB', 'GB']
  let value = size
  let unit = -1
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000
    unit += 1
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`
}
