import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ELSEWHERE, OF_RECORDS, OF_WORK } from './layers.mjs'
import { sweep } from './sweep.mjs'
import { openers } from './table.mjs'

test('every file that opens something over a page is in the table', () => {
  const listed = new Set([...OF_WORK, ...OF_RECORDS].map(({ of }) => of).concat(Object.keys(ELSEWHERE)))
  assert.deepEqual(openers().sort(), [...listed].sort())
})

sweep(OF_RECORDS)
