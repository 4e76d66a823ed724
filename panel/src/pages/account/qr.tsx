// A QR code as an SVG path: dark on light in both themes, because scanners need that.
import { useMemo } from 'react'
import { encode } from 'uqr'

export function Qr({ text, label }: { text: string; label: string }) {
  const { size, path } = useMemo(() => {
    const { data, size } = encode(text, { ecc: 'M', border: 4 })
    const rows = data
      .map((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : '')).join(''))
      .join('')
    return { size, path: rows }
  }, [text])
  return (
    <svg
      viewBox={`0 0 ${size} ${size}`}
      role="img"
      aria-label={label}
      className="mx-auto size-48 rounded-control bg-[#fff] forced-color-adjust-none"
      shapeRendering="crispEdges"
    >
      <path d={path} fill="#000" />
    </svg>
  )
}
