import { expect, test } from 'vitest'
import { joinLine, serviceLine } from './join-line'

test('a line asks for the token, and the folder is the server’s own', () => {
  expect(joinLine(7, 'https://muster.example.org')).toBe(
    'muster host join --url https://muster.example.org --token-stdin --dir ~/muster-host-7 && muster host run --dir ~/muster-host-7',
  )
})

test('a service has a user of its own, and joins as this user', () => {
  const line = serviceLine(7, 'https://muster.example.org')
  expect(line).toContain('useradd --system --create-home muster-host')
  expect(line).toContain(
    'runuser -u muster-host -- muster host join --url https://muster.example.org --token-stdin --dir /var/lib/muster-host-7 && ',
  )
  expect(line).toMatch(/ && systemctl enable --now muster-host-7$/)
})

test('plain http to another machine has to be allowed, to this one not', () => {
  for (const line of [joinLine, serviceLine]) {
    expect(line(1, 'http://192.0.2.7:8080')).toContain(' --insecure-http ')
    expect(line(1, 'http://127.0.0.1:8080')).not.toContain('--insecure-http')
    expect(line(1, 'http://localhost:8080')).not.toContain('--insecure-http')
  }
})
