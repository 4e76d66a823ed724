// A usage bar. The text beside it says the same.
interface Props {
  label: string
  value: number
  most: number
  /** The value in words. */
  text: string
}

export function Meter({ label, value, most, text }: Props) {
  const share = most > 0 ? value / most : 1
  return (
    <div
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={most}
      aria-valuenow={Math.min(value, most)}
      aria-valuetext={text}
      className="h-2 overflow-hidden rounded-full bg-line"
      data-outlined
    >
      <div
        data-filled
        className={share > 0.9 ? 'h-full bg-danger' : 'h-full bg-accent'}
        style={{ width: `${Math.min(100, share * 100)}%` }}
      />
    </div>
  )
}
