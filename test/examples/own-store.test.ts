import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import open from '../../examples/own-store/contract.ts'
import { SqliteLimitStore } from '../../examples/own-store/sqlite-limit-store.ts'
import { createApp } from '../../examples/rate-limit-only/app.ts'
import { StoreAway } from '../../lib/core/store-guard/index.ts'
import { limitCounterContract } from '../contracts/limit-counter.ts'
import { slotStoreContract } from '../contracts/slot-store.ts'
import { demand, limit } from '../middleware/rate-limit/demands.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { listen } from '../support/gateway.ts'
import { temporaryFolder } from '../support/gateway-process.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const CONDITION = '--conditions=@express-model-gateway/source'
const IMPORT = `import { SqliteLimitStore } from '${new URL('../../examples/own-store/sqlite-limit-store.ts', import.meta.url)}'`

/** Runs a module in a process of its own. */
const runNode = (code: string) =>
  spawn(process.execPath, [CONDITION, '--input-type=module', '--eval', code], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  })

limitCounterContract('the example on SQLite', open)
slotStoreContract('the example on SQLite', open)

describe('a limit store in a file that processes share', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  let file = ''
  const cleanUp = cleaningUp()
  before(async () => {
    folder = await temporaryFolder()
    cleanUp.after(() => folder.remove())
    file = join(folder.path, 'limits.db')
  })

  it('counts for two apps together', async (t) => {
    const servers: Server[] = []
    for (let i = 0; i < 2; i++) {
      const store = new SqliteLimitStore({ file })
      t.after(() => store.close())
      servers.push(await listen(createApp({ store })))
    }
    t.after(() => {
      for (const server of servers) server.close()
      for (const server of servers) server.closeAllConnections()
    })
    const seen: number[] = []
    for (let i = 0; i < 6; i++) {
      const { port } = servers[i % 2]!.address() as AddressInfo
      seen.push((await fetch(`http://127.0.0.1:${port}/search`, { headers: { 'x-user': 'ann' } })).status)
    }
    assert.deepEqual(seen, [200, 200, 200, 200, 200, 429])
  })

  it('takes the slots of a killed process back when their lease ends', async (t) => {
    const slot = limit('concurrency', 'of a killed process', 1)
    const holder = runNode(
      `${IMPORT}
       new SqliteLimitStore({ file: ${JSON.stringify(file)} }).admit(${JSON.stringify(demand([slot]))})
       console.log('held')
       setInterval(() => {}, 1000)`,
    )
    await once(holder.stdout!, 'data')
    let now = Date.now()
    const store = new SqliteLimitStore({ file, now: () => now })
    t.after(() => store.close())
    assert.deepEqual((await store.admit(demand([slot]))).refusedBy, slot)
    holder.kill('SIGKILL')
    await once(holder, 'exit')
    assert.deepEqual((await store.admit(demand([slot]))).refusedBy, slot)
    now += 31_000
    assert.equal((await store.admit(demand([slot]))).refusedBy, undefined)
  })

  it('opens in several processes at once, and admits exactly as many as it may of all that they ask', async () => {
    const fresh = join(folder.path, 'fresh.db')
    const asks = Array.from({ length: 2 }, () =>
      runNode(
        `${IMPORT}
         const store = new SqliteLimitStore({ file: ${JSON.stringify(fresh)} })
         const charges = ${JSON.stringify([limit('rpm', 'of many processes', 200)])}
         let admitted = 0
         for (let i = 0; i < 150; ) {
           const demand = { id: process.pid + '-' + i, sender: 's', windowMs: 60000, charges, slots: [] }
           // A process that waited too long for the others asks again: nothing of the demand stands.
           const verdict = await Promise.resolve(store.admit(demand)).catch(() => undefined)
           if (!verdict) continue
           if (!verdict.refusedBy) admitted++
           i++
         }
         process.stdout.write(String(admitted))`,
      ),
    )
    const admitted = await Promise.all(
      asks.map(async ({ stdout }) => Number((await once(stdout!, 'data'))[0])),
    )
    assert.equal(
      admitted.reduce((sum, each) => sum + each, 0),
      200,
    )
  })

  it('says by rejecting that it is away, and lets nothing of the demand stand', async (t) => {
    const store = new SqliteLimitStore({ file })
    t.after(() => store.close())
    const locked = new DatabaseSync(file)
    const asked = demand([
      limit('rpm', 'while it is locked', 1),
      limit('concurrency', 'while it is locked', 1),
    ])
    locked.exec('begin immediate')
    await assert.rejects(async () => store.admit(asked), StoreAway)
    store.release(asked)
    locked.exec('rollback')
    locked.close()
    assert.equal((await store.admit(demand([...asked.charges, ...asked.slots]))).refusedBy, undefined)
  })
})

it('the contracts run over a file by `npm run contract`', async () => {
  const file = join(ROOT, 'examples/own-store/contract.ts')
  const run = spawn(process.execPath, [CONDITION, 'test/contracts/run.ts', 'limit-store', file], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    // Of a test runner that this would else take for its own.
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE },
  })
  let said = ''
  run.stdout?.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const [code] = await once(run, 'close')
  assert.equal(code, 0, said)
  assert.match(said, /pass [1-9]/)
  assert.match(said, /fail 0/)
})
