import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/*
 * The system gives connections ports from 32768 on, which one may take between the search and its use. A Redis of a cluster
 * also listens 10000 above its port.
 */
const FIRST = 12_000
const BEHIND_LAST = 22_000

/** Returns a port that was free a moment ago. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, BEHIND_LAST)
    if (await isFree(port)) return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
