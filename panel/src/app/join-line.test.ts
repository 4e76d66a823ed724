import { expect, test } from 'vitest'
import { joinLine } from './join-line'

test('the token goes through standard input, and the folder is the server’s own', () => {
  expect(joinLine('mst_prov_x', 7, 'https://muster.example.org')).toBe(
    "echo 'mst_prov_x' | muster host join --url https://muster.example.org --token-stdin --dir ~/muster-host-7 && muster host run --dir ~/muster-host-7",
  )
})

test('plain http to another machine has to be allowed, to this one not', () => {
  expect(joinLine('t', 1, 'http://192.0.2.7:8080')).toContain(' --insecure-http ')
  expect(joinLine('t', 1, 'http://127.0.0.1:8080')).not.toContain('--insecure-http')
  expect(joinLine('t', 1, 'http://localhost:8080')).not.toContain('--insecure-http')
})
