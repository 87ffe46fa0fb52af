import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Catalog, Line } from '../../../lib/core/catalog/index.ts'
import { observeStates } from '../../../lib/middleware/telemetry/gateway-states.ts'
import { collectingMeter } from './collected.ts'

const LINE = 'model_gateway.line'
const STATE = 'model_gateway.circuit.state'
const AVAILABILITY = 'model_gateway.availability'
const STORE = 'model_gateway.store'

const catalogOf = (...ids: string[]) => ({ lines: ids.map((id) => ({ id })) }) as unknown as Catalog

const MAIN = { 'db.client.connection.pool.name': 'main' }

test('every state is reported with its unit, as it is when metrics are collected', async (t) => {
  const { meter, collect } = collectingMeter(t)
  const reading = {
    inFlight: 3,
    connections: 2,
    availability: 'down' as const,
    failure: null,
    circuit: 'half_open' as const,
    circuitChanges: { closed: 1, open: 2, half_open: 4 },
  }
  const stats = {
    outages: 5,
    queued: 6,
    queuedBytes: 60,
    queuedMs: 1500,
    setAside: 7,
    waiting: 8,
    leases: 9,
    leasesLost: 10,
    overruns: 11,
    leasesSwept: 12,
    lockedAccounts: 13,
  }
  const pool = { away: true, stats }
  const callLog = { queued: 13, queuedBytes: 130, dropped: 14 }
  const database = { connections: () => ({ main: { used: 2, idle: 1, waiting: 4 } }) }
  const outcomes = { delivered: 1, failed: 2, given_up: 3, dropped: 4 }
  const webhooks = { stats: { outcomes, waitingMs: 3000 } }
  const budgets = { refusals: { tag: 5 } }
  const admin = { wrongTokens: 16 }
  const readiness = { ready: async () => false }
  const stores = { limits: { away: false, outages: 15 } }
  let catalog: Catalog | undefined = catalogOf('line-0')
  const asked: string[] = []
  const lines = {
    reading: ({ id }: Line) => {
      asked.push(id)
      return reading
    },
  }
  observeStates(
    meter,
    { lines, pool, callLog, admin, database, webhooks, budgets, readiness, stores },
    () => catalog,
  )
  assert.deepEqual(asked, [], 'at no other time')

  const told = await collect()
  const name = (short: string) => (short.startsWith('db.') ? short : `model_gateway.${short}`)
  const expected: [short: string, unit: string, points: unknown[]][] = [
    ['line.in_flight', '{attempt}', [[{ [LINE]: 'line-0' }, 3]]],
    ['line.connections', '{connection}', [[{ [LINE]: 'line-0' }, 2]]],
    ['ready', '1', [[{}, 0]]],
    ['admin.wrong_tokens', '{request}', [[{}, 16]]],
    ['webhook.age', 's', [[{}, 3]]],
    [
      'webhook.deliveries',
      '{delivery}',
      Object.entries(outcomes).map(([outcome, count]) => [{ 'model_gateway.outcome': outcome }, count]),
    ],
    ['budget.refusals', '{call}', [[{ 'model_gateway.budget.scope': 'tag' }, 5]]],
    [
      'line.availability',
      '1',
      [
        [{ [LINE]: 'line-0', [AVAILABILITY]: 'up' }, 0],
        [{ [LINE]: 'line-0', [AVAILABILITY]: 'down' }, 1],
        [{ [LINE]: 'line-0', [AVAILABILITY]: 'unknown' }, 0],
      ],
    ],
    [
      'line.circuit.state',
      '1',
      [
        [{ [LINE]: 'line-0', [STATE]: 'closed' }, 0],
        [{ [LINE]: 'line-0', [STATE]: 'open' }, 0],
        [{ [LINE]: 'line-0', [STATE]: 'half_open' }, 1],
      ],
    ],
    [
      'line.circuit.changes',
      '{change}',
      [
        [{ [LINE]: 'line-0', [STATE]: 'closed' }, 1],
        [{ [LINE]: 'line-0', [STATE]: 'open' }, 2],
        [{ [LINE]: 'line-0', [STATE]: 'half_open' }, 4],
      ],
    ],
    ['call_log.queued', '{entry}', [[{}, 13]]],
    [
      'db.client.connection.count',
      '{connection}',
      [
        [{ ...MAIN, 'db.client.connection.state': 'used' }, 2],
        [{ ...MAIN, 'db.client.connection.state': 'idle' }, 1],
      ],
    ],
    ['db.client.connection.pending_requests', '{request}', [[MAIN, 4]]],
    ['call_log.size', 'By', [[{}, 130]]],
    ['settlements.size', 'By', [[{}, 60]]],
    ['settlements.age', 's', [[{}, 1.5]]],
    ['bodies.held', 'By', [[{}, 0]]],
    ['call_log.dropped', '{entry}', [[{}, 14]]],
    ['settlements.queued', '{settlement}', [[{}, 6]]],
    ['settlements.set_aside', '{settlement}', [[{}, 7]]],
    ['settlements.held_accounts', '{account}', [[{}, 13]]],
    ['admissions.waiting', '{call}', [[{}, 8]]],
    ['leases.open', '{lease}', [[{}, 9]]],
    ['leases.lost', '{lease}', [[{}, 10]]],
    ['leases.overruns', '{charge}', [[{}, 11]]],
    ['leases.swept', '{lease}', [[{}, 12]]],
    [
      'store.away',
      '1',
      [
        [{ [STORE]: 'limits' }, 0],
        [{ [STORE]: 'ledger' }, 1],
      ],
    ],
    [
      'store.outages',
      '{outage}',
      [
        [{ [STORE]: 'limits' }, 15],
        [{ [STORE]: 'ledger' }, 5],
      ],
    ],
  ]
  assert.deepEqual([...told.keys()].sort(), expected.map(([short]) => name(short)).sort())
  for (const [short, unit, points] of expected) {
    const { unit: own, points: found } = told.get(name(short)) ?? assert.fail(short)
    assert.equal(own, unit, short)
    assert.deepEqual(
      found.map(([attributes, value]) => [{ ...attributes }, value]),
      points,
      short,
    )
  }

  catalog = undefined
  asked.length = 0
  await collect()
  assert.deepEqual(asked, [], 'no lines without a catalogue')
  catalog = catalogOf('line-1', 'line-2')
  pool.away = false
  stats.outages = 6
  const later = await collect()
  assert.deepEqual(asked, ['line-1', 'line-2'])
  assert.deepEqual(
    later.get(name('store.away'))?.points.map(([, value]) => value),
    [0, 0],
  )
  assert.deepEqual(
    later.get(name('store.outages'))?.points.map(([, value]) => value),
    [15, 6],
  )
})

test('states that are left out have no metrics', async (t) => {
  const { meter, collect } = collectingMeter(t)
  observeStates(meter, {}, () => catalogOf('line-0'))
  // That of bodies belongs to the process.
  assert.deepEqual([...(await collect()).keys()], ['model_gateway.bodies.held'])
  observeStates(meter, { stores: { keys: { away: false, outages: 0 } } }, () => undefined)
  const names = [...(await collect()).keys()].filter((name) => name !== 'model_gateway.bodies.held')
  assert.deepEqual(names, ['model_gateway.store.away', 'model_gateway.store.outages'])
})
