/** Opens a store for `npm run contract -- limit-store examples/own-store/contract.ts`. */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SqliteLimitStore } from './sqlite-limit-store.ts'

/** Opens a store in a new file, with the clock of the contract. */
export default async function open() {
  const folder = await mkdtemp(join(tmpdir(), 'limits-'))
  let now = Date.now()
  const store = new SqliteLimitStore({ file: join(folder, 'limits.db'), now: () => now })
  return {
    store,
    advance(ms: number) {
      now += ms
    },
    renew: async () => store.renew(),
    async close() {
      store.close()
      await rm(folder, { recursive: true })
    },
  }
}
