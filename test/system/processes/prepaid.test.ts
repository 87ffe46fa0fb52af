import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterEach, before, beforeEach, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { inflateSync } from 'node:zlib'
import { formatAmount, parseAmount } from '../../../lib/core/catalog/index.ts'
import { openDatabase, SqlLedger } from '../../../lib/stores/sql/index.ts'
import { envelopeOf, jsonOf } from '../../support/answer-bodies.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { temporaryFolder } from '../../support/gateway-process.ts'
import { untilAsync } from '../../support/until.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const SERVER = join(ROOT, 'examples', 'prepaid', 'server.ts')
/** With Node's compile cache, where the tests have one, a start takes half the time. */
const { PATH, NODE_COMPILE_CACHE } = process.env

/** The example in a process of its own. */
interface PrepaidProcess {
  readonly url: string
  /** Sends a signal and waits until the process has ended; answers its exit code. */
  end(signal: NodeJS.Signals): Promise<number | null>
}

async function startPrepaid(databaseUrl: string): Promise<PrepaidProcess> {
  const child = spawn(process.execPath, ['--conditions=@express-model-gateway/source', SERVER], {
    cwd: ROOT,
    env: { PATH, NODE_COMPILE_CACHE, PORT: '0', DATABASE_URL: databaseUrl, ADMIN_TOKEN: 'change-me' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  let said = ''
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text
      const [, origin] = /for sale at (http:\S+)\n/.exec(said) ?? []
      if (origin !== undefined) resolve(origin)
    })
    exited.then(([code]) => reject(new Error(`it ended with ${code}: ${said}`)), reject)
  })
  return {
    url,
    async end(signal) {
      child.kill(signal)
      const [code] = await exited
      return code
    },
  }
}

describe('a paid API of one’s own', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  let databaseUrl = ''
  let app: PrepaidProcess
  let run = 0
  const cleanUp = cleaningUp()
  before(async () => {
    folder = await temporaryFolder()
    cleanUp.after(() => folder.remove())
  })
  const cleanUpEach = cleaningUp(afterEach)
  beforeEach(async () => {
    databaseUrl = `sqlite:${join(folder.path, `prepaid-${run++}.db`)}`
    app = await startPrepaid(databaseUrl)
    cleanUpEach.after(() => app.end('SIGKILL'))
  })

  const get = (path: string, key = 'sk-ann') =>
    fetch(`${app.url}${path}`, { headers: { authorization: `Bearer ${key}` } })
  const deposit = (amount: string, reference: string, { account = 'ann', token = 'change-me' } = {}) =>
    fetch(`${app.url}/accounts/${account}/deposits`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ amount, reference }),
    })
  const balance = async () => (await jsonOf<{ balance: string }>(await get('/balance'))).balance
  /** Buys a tile and answers its price in nano-units. */
  const buy = async (path = '/tiles/0/0/0.png') => {
    const answer = await get(path)
    assert.equal(answer.status, 200)
    await answer.arrayBuffer()
    return parseAmount(answer.headers.get('x-price') ?? '')
  }
  const refusal = async (answer: Response) => {
    const { error } = await envelopeOf(answer)
    return [answer.status, error.code]
  }

  it('sells a tile that can be looked at, for what drawing it took', async () => {
    const answer = await get('/tiles/0/0/0.png')
    assert.equal(answer.headers.get('content-type'), 'image/png')
    const png = Buffer.from(await answer.arrayBuffer())
    assert.equal(png.subarray(1, 4).toString(), 'PNG')
    const length = png.readUInt32BE(33)
    const rows = inflateSync(png.subarray(41, 41 + length))
    assert.equal(rows.length, 256 * 257)
    // The middle of the heart is black, the far corner is not.
    assert.equal(rows[128 * 257 + 1 + 192], 0)
    assert.notEqual(rows[1], 0)
    assert.equal(answer.headers.get('x-price'), '0.001496059')
    assert.equal(await balance(), '0.008503941')
  })

  it('refuses when the balance does not cover a tile any more, and sells again after a deposit', async () => {
    for (let i = 0; i < 5; i++) await buy()
    const left = await balance()
    const refused = await get('/tiles/0/0/0.png')
    assert.equal(refused.headers.get('x-price'), null)
    assert.deepEqual(await refusal(refused), [402, 'insufficient_balance'])
    const coarse = await buy('/tiles/0/0/0.png?detail=20')
    assert.equal(await balance(), formatAmount(parseAmount(left) - coarse))
    assert.equal((await deposit('5.00', 'invoice-1001')).status, 201)
    const price = await buy()
    assert.equal(await balance(), formatAmount(parseAmount(left) - coarse + parseAmount('5') - price))
  })

  it('does not charge who leaves before the tile is drawn, and does not keep his money either', async () => {
    // All of it lies within the set, so that drawing it takes long.
    const dear = '/tiles/4/10/7.png?detail=600'
    const leaving = new AbortController()
    const headers = { authorization: 'Bearer sk-ann' }
    const left = fetch(`${app.url}${dear}`, { headers, signal: leaving.signal })
    await untilAsync(async () => (await jsonOf<{ leased: string }>(await get('/balance'))).leased !== '0')
    leaving.abort()
    await assert.rejects(left, { name: 'AbortError' })
    assert.equal(await balance(), '0.01')
    // Nearly all of it is wanted again: 503 for as long as it is held for the tile that nobody waits for (5 minutes).
    await untilAsync(async () => (await get(dear)).ok, 'a second tile', 30_000)
  })

  it('lets a key spend no more than its quota', async () => {
    assert.equal((await get('/tiles/0/0/0.png', 'sk-trial')).status, 200)
    const refused = await get('/tiles/0/0/0.png', 'sk-trial')
    assert.deepEqual(await refusal(refused), [402, 'key_quota_exhausted'])
    await buy()
  })

  it('asks for a key, and charges nothing for what is no tile', async () => {
    assert.equal((await get('/tiles/0/0/0.png', 'sk-nobody')).status, 401)
    for (const path of ['/tiles/0/1/0.png', '/tiles/a/0/0.png', '/tiles/0/0/0.png?detail=9999'])
      assert.deepEqual(await refusal(await get(path)), [400, 'invalid_request'])
    assert.equal(await balance(), '0.01')
  })

  it('takes a deposit once, from the operator only, for an account that is there', async () => {
    assert.equal((await deposit('5.00', 'invoice-1001')).status, 201)
    const again = await deposit('5.00', 'invoice-1001')
    assert.equal(again.status, 200)
    assert.deepEqual(await again.json(), { account: 'ann', balance: '5.01', leased: '0' })
    assert.deepEqual(await refusal(await deposit('6.00', 'invoice-1001')), [409, 'conflict'])
    assert.deepEqual(await refusal(await deposit('-1', 'x')), [400, 'invalid_request'])
    assert.equal((await deposit('5.00', 'invoice-1002', { token: 'sk-ann' })).status, 401)
    assert.equal((await deposit('5.00', 'invoice-1002', { account: 'bob' })).status, 404)
    assert.equal(await balance(), '5.01')
  })

  it('has charged what was seen, once, when it is killed and started again', async () => {
    await deposit('5.00', 'invoice-1001')
    const paths = ['/tiles/0/0/0.png', '/tiles/1/0/0.png', '/tiles/2/1/1.png', '/tiles/2/2/1.png']
    const prices = await Promise.all(paths.map(buy))
    await app.end('SIGKILL')
    app = await startPrepaid(databaseUrl)
    const spent = prices.reduce((sum, price) => sum + price, 0n)
    assert.equal(await balance(), formatAmount(parseAmount('5.01') - spent))
    const price = await buy()
    assert.equal(await balance(), formatAmount(parseAmount('5.01') - spent - price))
    const db = await openDatabase(databaseUrl, { readOnly: true, logger: recordingLogger() })
    const { violations, charges } = await new SqlLedger(db).check()
    await db.destroy()
    assert.deepEqual([violations, charges], [[], 5])
  })

  it('gives back what it has set aside when it is asked to end', async () => {
    await deposit('5.00', 'invoice-1001')
    await buy()
    assert.equal(await app.end('SIGTERM'), 0)
    app = await startPrepaid(databaseUrl)
    const { leased } = await jsonOf<{ leased: string }>(await get('/balance'))
    assert.equal(leased, '0')
  })
})
