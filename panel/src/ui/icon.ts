// The frame of every icon, in place of the one of lucide-react (vite.config.ts).
import { createElement, type SVGProps } from 'react'

interface Drawing {
  node: [tag: string, attributes: object][]
}

export default function createIcon({ node }: Drawing) {
  const parts = node.map(([tag, attributes]) => createElement(tag, attributes))
  return ({ size = 24, ...rest }: { size?: number } & SVGProps<SVGSVGElement>) =>
    createElement(
      'svg',
      {
        width: size,
        height: size,
        viewBox: '0 0 24 24',
        fill: 'none',
        stroke: 'currentColor',
        strokeWidth: 2,
        strokeLinecap: 'round',
        strokeLinejoin: 'round',
        'aria-hidden': !rest['aria-label'],
        ...rest,
      },
      ...parts,
    )
}
