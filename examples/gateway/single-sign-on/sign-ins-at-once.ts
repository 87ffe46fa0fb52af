import type { Response } from 'express'

const MAX = 8
const MAX_OF_NETWORK = 2
const RETRY_SECONDS = 5

/**
 * Counts the sign-ins that wait for the provider. Those of one network must not take the places of all others while the
 * provider is slow.
 */
export class SignInsAtOnce {
  readonly #waiting = new Map<string, number>()

  /** Runs a sign-in of a network. Returns the status to refuse it with instead, if too many wait. */
  async run(network: string, signIn: () => Promise<void>): Promise<429 | 503 | undefined> {
    const ofNetwork = this.#waiting.get(network) ?? 0
    if (ofNetwork >= MAX_OF_NETWORK) return 429
    if ([...this.#waiting.values()].reduce((sum, count) => sum + count, 0) >= MAX) return 503
    this.#waiting.set(network, ofNetwork + 1)
    try {
      await signIn()
    } finally {
      const left = (this.#waiting.get(network) ?? 0) - 1
      if (left > 0) this.#waiting.set(network, left)
      else this.#waiting.delete(network)
    }
  }
}

/** Answers a page that asks for patience. The sign-in is not spent: the same address can be loaded again. */
export function sendWait(res: Response, status: 429 | 503): void {
  const who = status === 429 ? 'your network' : 'this gateway'
  res
    .status(status)
    .set({ 'retry-after': `${RETRY_SECONDS}`, 'content-security-policy': "default-src 'none'" })
    .type('html')
    .send(
      `<!doctype html><html lang="en"><title>Please wait</title><h1>Too many sign-ins at once</h1>` +
        `<p>The provider is slow, and others of ${who} wait for it. Reload this page in a few seconds.</p></html>`,
    )
}
