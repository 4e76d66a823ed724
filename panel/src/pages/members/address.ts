// Hints about valid but unusual addresses. Pure, tested.

/** A domain without a dot is valid, and hardly ever meant. */
export function addressHint(email: string): string | undefined {
  const domain = /^[^\s@]+@([^\s@]+)$/.exec(email.trim())?.[1]
  return domain && !domain.includes('.')
    ? `“${domain}” has no ending such as .com: only servers in your own network can have such a name.`
    : undefined
}
