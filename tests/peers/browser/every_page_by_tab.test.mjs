import { test } from 'node:test'
import { BEFORE, PAGES } from './pages.mjs'
import { walksThrough } from './walk.mjs'

test('Tab goes through every page and leaves it; the focus is seen everywhere', (t) => walksThrough(t, [...PAGES, ...BEFORE]))
