// The addresses that the service refuses although they look complete. Pure, tested.

/** Why mail can't reach an address: its domain has no dot. */
export function addressRefusal(email: string): string | null {
  const domain = /^[^\s@]+@([^\s@]+)$/.exec(email.trim())?.[1]
  return domain && !domain.includes('.') ? `“${domain}” has no ending, such as .com.` : null
}
