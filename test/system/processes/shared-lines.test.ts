import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { LineRegistry, LineSharing } from '../../../lib/middleware/route/index.ts'
import { RedisLineStateStore } from '../../../lib/stores/redis/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { exchange, gatewayFor } from '../../support/exchange.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { answerJson, chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

const RESET_MS = 1200

function lineOf(circuit: object = {}, apiKey = 'a') {
  const [line] = loadConfig({
    models: ['m', 'n'].map((id) => ({ id, kind: 'chat' })),
    lines: [
      {
        id: 'l',
        provider: 'p',
        protocol: 'openai',
        baseUrl: 'http://localhost/v1',
        apiKey,
        models: { m: 'u', n: 'u' },
        circuit: { minimumCalls: 4, resetMs: RESET_MS, ...circuit },
      },
    ],
  }).catalog.lines
  assert.ok(line)
  return line
}

async function redisFor(t: TestContext): Promise<RedisServer> {
  const redis = await startRedis()
  t.after(() => redis.close())
  return redis
}

/** One process, as far as its lines are concerned. */
async function processOn(t: TestContext, redis: RedisServer, line = lineOf()) {
  const lines = new LineRegistry()
  const logger = recordingLogger()
  const store = new RedisLineStateStore({ redis: redis.client() })
  const sharing = new LineSharing({ store, lines, logger })
  t.after(async () => {
    sharing.close()
    await lines.close()
  })
  await sharing.refresh()
  const state = lines.stateOf(line)
  const model = state.modelState('m')
  const enter = (account: string) => {
    assert.ok(model.circuit.admits(account), `${account} is let through`)
    const attempt = model.circuit.begin(account)
    return {
      fail: () => model.circuit.end(attempt, account, 'failure'),
      succeed: () => model.circuit.end(attempt, account, 'success'),
    }
  }
  return {
    lines,
    line,
    sharing,
    model,
    logger,
    enter,
    fails: (account: string, times = 1) => {
      for (let i = 0; i < times; i++) enter(account).fail()
    },
    succeeds: (account: string) => enter(account).succeed(),
    admitted: () => ['x', 'y'].filter((account) => model.circuit.admits(account)).join(''),
    restMs: () => lines.status(line).rest_ms,
  }
}

/** Fails unless a condition comes true within the second that all processes have to learn of it, and what a busy machine adds. */
const soon = (condition: () => boolean, what: string) => until(condition, what, 3000)

describe('processes that share their lines', { skip: WITHOUT_REDIS }, () => {
  it('find a dead line together, and all see it recover', async (t) => {
    const redis = await redisFor(t)
    const dead = await startUpstream((res) => answerJson(res, 500, {}))
    t.after(() => dead.close())
    const lines = [{ url: dead.url, circuit: { resetMs: RESET_MS } }]
    const gateways = await Promise.all(Array.from({ length: 8 }, () => gatewayFor(t, { lines })))
    for (const gateway of gateways) {
      const store = new RedisLineStateStore({ redis: redis.client() })
      const sharing = new LineSharing({ store, lines: gateway.lines })
      t.after(() => sharing.close())
      await sharing.refresh()
    }
    const served = gateways.map(() => false)
    const refused: string[] = []
    const startedAt = performance.now()
    const load = gateways.map(async (gateway, i) => {
      while (performance.now() - startedAt < 20_000 && !served[i]) {
        await sleep(30 + 30 * Math.random())
        const got = await exchange(gateway)
        served[i] = got.status === 200
        if (got.errorCode === 'circuit_open') refused.push(`${got.headers.get('retry-after')}`)
      }
    })
    await until(() => refused.length > 0, 'open')
    await sleep(RESET_MS / 2)
    const found = dead.requests.length
    // Each process finds it by five failures at most, and most of them know of it before.
    assert.ok(found <= 5 * gateways.length, `${found} attempts`)
    dead.script = (res) => chatAnswer(res, 'Hello')
    await Promise.all(load)
    assert.deepEqual([...new Set(served)], [true])
    assert.deepEqual([...new Set(refused)].sort(), ['1', '2'])
  })

  it('never close a line to accounts that did not fail, until another one fails, anywhere', async (t) => {
    const redis = await redisFor(t)
    const [one, other] = [await processOn(t, redis), await processOn(t, redis)]
    other.fails('x', 4)
    await soon(() => one.admitted() === 'y', 'open for the account in the other process')
    assert.equal(one.model.circuit.onlyOpenFor, 'x')
    assert.equal(one.lines.stateOf(one.line).modelState('n').circuit.admits('x'), true)
    one.fails('y', 4)
    await soon(() => one.admitted() + other.admitted() === '', 'open for all')
    const late = await processOn(t, redis)
    assert.equal(late.admitted(), '', 'as it is known at its start')
    assert.ok(late.model.circuit.retryAfterMs('z') <= RESET_MS)
    const elsewhere = await processOn(t, redis, lineOf({}, 'another key'))
    assert.equal(elsewhere.admitted(), 'xy', 'the same line with another key')
  })

  it('that find it ill for one account each at the same time close it to all', async (t) => {
    const redis = await redisFor(t)
    const [one, other] = [await processOn(t, redis), await processOn(t, redis)]
    one.fails('x', 4)
    other.fails('y', 4)
    await soon(() => one.admitted() + other.admitted() === '', 'open for all')
  })

  it('do not follow one whose own way to the line is out of order', async (t) => {
    const redis = await redisFor(t)
    const [sick, well, idle] = [
      await processOn(t, redis),
      await processOn(t, redis),
      await processOn(t, redis),
    ]
    const serving = setInterval(() => well.succeeds('z'), 5)
    t.after(() => clearInterval(serving))
    sick.fails('x', 2)
    sick.fails('y', 2)
    await sleep(50)
    sick.fails('x', 2)
    sick.fails('y', 2)
    await soon(() => idle.admitted() === '', 'open where nothing says otherwise')
    assert.equal(well.admitted(), 'xy')
  })

  it('rest together, and end a rest together', async (t) => {
    const redis = await redisFor(t)
    const [one, other] = [await processOn(t, redis), await processOn(t, redis)]
    one.model.rest(20_000)
    await soon(() => other.restMs() > 18_000, 'as long as the upstream said')
    for (const { lines } of [one, other]) lines.liftRests('l')
    await Promise.all([one.sharing.refresh(), other.sharing.refresh()])
    assert.deepEqual([one.restMs(), other.restMs(), (await processOn(t, redis)).restMs()], [0, 0, 0])
    other.model.rest(undefined)
    await soon(() => one.restMs() > 0, 'a rest of its own')
    await until(() => one.restMs() === 0)
    one.model.rest(undefined)
    assert.ok(one.restMs() > 3900, 'the next one is twice as long, whoever began the first')
  })

  it('go on alone while Redis is away, and agree afterwards', async (t) => {
    const redis = await redisFor(t)
    const line = lineOf({ resetMs: 300 })
    const [one, other] = [await processOn(t, redis, line), await processOn(t, redis, line)]
    redis.pause()
    one.fails('x', 4)
    one.fails('y', 4)
    await until(() => one.admitted() === '', 'what it finds itself')
    await until(() => one.logger.lines.length > 0, 'the outage is noticed')
    assert.equal(other.admitted(), 'xy')
    await until(() => one.admitted() === 'xy', 'a trial of its own')
    one.fails('x')
    await sleep(1)
    one.fails('y')
    await redis.restart()
    await until(() => one.admitted() === 'xy', 'half open again')
    one.succeeds('x')
    await until(() => one.logger.lines.length > 1, 'it is back')
    await until(() => other.admitted() === 'xy', 'half open there')
    other.succeeds('x')
    await until(() => other.model.circuit.state === 'closed')
    other.fails('z', 4)
    await until(() => !one.model.circuit.admits('z'), 'what the other knows')
    assert.deepEqual(
      one.logger.lines.map(({ message }) => message),
      ['store is away', 'store is back'],
    )
  })
})
