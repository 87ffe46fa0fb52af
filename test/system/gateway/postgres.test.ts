import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  chat,
  type GatewayProcess,
  lookUp,
  post,
  runToExit,
  startGatewayProcess,
} from '../../support/gateway-process.ts'
import { type PostgresServer, startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'

let server: PostgresServer
let url: string
const running: GatewayProcess[] = []
const cleanUp = cleaningUp()
before(async () => {
  if (WITHOUT_POSTGRES) return
  server = await startPostgres()
  cleanUp.after(() => server.close())
  url = await server.createDatabase()
})

async function start(): Promise<GatewayProcess> {
  const gateway = await startGatewayProcess({ DATABASE_URL: url })
  cleanUp.after(() => gateway.stop())
  running.push(gateway)
  return gateway
}

async function call(gateway: GatewayProcess, headers: Record<string, string> = {}): Promise<Response> {
  const response = await post(gateway.url, chat(), headers)
  await response.arrayBuffer()
  return response
}

async function readiness(gateway: GatewayProcess): Promise<number> {
  const response = await fetch(`${gateway.url}/readyz`)
  await response.arrayBuffer()
  return response.status
}

async function untilReady(gateway: GatewayProcess, status: 200 | 503): Promise<void> {
  const deadline = performance.now() + 30_000
  while ((await readiness(gateway)) !== status) {
    assert.ok(performance.now() < deadline, `/readyz answers ${status}`)
    await sleep(50)
  }
}

describe('two gateways on one Postgres', { skip: WITHOUT_POSTGRES }, () => {
  it('start at once on an empty database; each finds the calls of the other, keys run once', async () => {
    const [first, second] = await Promise.all([start(), start()])
    const response = await call(first, { 'idempotency-key': 'one' })
    assert.equal(response.status, 200)
    const id = response.headers.get('x-request-id')
    assert.equal((await lookUp(second.url, id)).outcome, 'completed')
    const again = await call(second, { 'idempotency-key': 'one' })
    assert.equal(again.status, 409)
    assert.equal((await lookUp(first.url, again.headers.get('x-request-id'))).original_request_id, id)
  })

  it('say that they are not ready while it is frozen or gone, and are again when it is back', async () => {
    const gateway = running[0] as GatewayProcess
    assert.equal(await readiness(gateway), 200)
    server.freeze()
    try {
      await untilReady(gateway, 503)
    } finally {
      server.thaw()
    }
    await untilReady(gateway, 200)
    await server.stop()
    await untilReady(gateway, 503)
    await server.start()
    await untilReady(gateway, 200)
    const response = await call(gateway)
    assert.equal(response.status, 200)
    await lookUp((running[1] as GatewayProcess).url, response.headers.get('x-request-id'))
  })

  it('end in good order, and start again with all that was written', async () => {
    const gateway = running[0] as GatewayProcess
    const id = (await call(gateway)).headers.get('x-request-id')
    gateway.kill('SIGTERM')
    const { code, stderr } = await gateway.exited
    assert.equal(code, 0)
    assert.equal(stderr, '')
    assert.equal((await lookUp((await start()).url, id)).outcome, 'completed')
  })

  it('do not start where it is not: one line, without the password', async () => {
    await server.stop()
    const exit = await runToExit({ DATABASE_URL: url.replace('postgres@', 'postgres:hunter2@') })
    await server.start()
    assert.equal(exit.code, 1)
    assert.match(exit.stderr, /^DATABASE_URL: the database cannot be opened \(.*ECONNREFUSED.*\)\n$/)
    assert.doesNotMatch(exit.stderr + exit.stdout, /hunter2/)
  })
})
