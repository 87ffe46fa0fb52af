import assert from 'node:assert/strict'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { cleaningUp } from '../../support/clean-up.ts'
import { lookUp, runToExit, startGatewayProcess } from '../../support/gateway-process.ts'
import { until } from '../../support/until.ts'
import { type FileGateway, startFileGateway } from './file-gateway.ts'
import { askedChat, keepAliveLoad } from './keep-alive-load.ts'
import { ASKED, answering, CALLERS, says } from './worker-processes.ts'

/** Sends on new connections until so many processes have answered: which takes one is up to the system. */
async function answers(server: FileGateway, processes: number): Promise<void> {
  while (answering(server).size < processes) {
    const asked = Array.from({ length: 8 }, () =>
      // A connection of a worker that was killed may be met once more. Probes are not logged.
      fetch(`${server.gateway.url}/v1/models`, { headers: { connection: 'close' } }).catch(() => {}),
    )
    await Promise.all(asked)
    await sleep(20)
  }
}

/** In the order of the file: each leaves two workers to the next. */
describe('WORKERS', () => {
  const cleanUp = cleaningUp()
  let server: FileGateway
  before(async () => {
    server = await startFileGateway(cleanUp, { WORKERS: '2' })
  })

  it('serve one port, and say once that they are ready', async (t) => {
    const load = keepAliveLoad(t, server.gateway.url, ASKED, CALLERS)
    await load.more(40)
    await load.stop()
    assert.deepEqual(load.failures, [])
    await answers(server, 2)
    assert.ok(!answering(server).has(server.gateway.pid))
    assert.equal(server.gateway.stdout.match(/ is ready at /g)?.length, 1)
  })

  it('count limits together without a Redis, and all of them reload', async () => {
    await server.write({
      ...server.config,
      keys: [{ id: 'limited', account: 'demo', secret: 'sk-limited', limits: { rpm: 10 } }],
    })
    await says(server, 'config reloaded')
    const { path, headers, body } = askedChat()
    const limited = { ...headers, authorization: 'Bearer sk-limited', connection: 'close' }
    const ask = async (): Promise<number> => {
      const response = await fetch(server.gateway.url + path, { method: 'POST', headers: limited, body })
      await response.arrayBuffer()
      return response.status
    }
    const first: number[] = []
    while (first.at(-1) !== 200) first.push(await ask())
    // The other worker may still have the key to come: what it does not know it does not count.
    const seen = await Promise.all(Array.from({ length: 30 }, ask))
    assert.equal(seen.filter((status) => status === 200).length, 9)
  })

  it('go on as they were where the config is broken, SIGHUP or not', async (t) => {
    const broken = 'config not reloaded; the running config stays in effect'
    const load = keepAliveLoad(t, server.gateway.url, ASKED, CALLERS)
    await load.more(CALLERS)
    await server.write({ ...server.config, lines: [] })
    await says(server, broken)
    const since = server.gateway.stdout.length
    server.gateway.kill('SIGHUP')
    await says(server, broken, since)
    await load.more(2 * CALLERS)
    await load.stop()
    assert.deepEqual(load.failures, [])
    await server.write(server.config)
  })

  it('that are asked to end are replaced first', async (t) => {
    const load = keepAliveLoad(t, server.gateway.url, ASKED, CALLERS)
    await load.more(CALLERS)
    const since = server.gateway.stdout.length
    await load.more(CALLERS)
    await until(() => answering(server, since).size > 0, 'their log')
    const known = answering(server)
    const [told] = answering(server, since)
    process.kill(Number(told), 'SIGTERM')
    await answers(server, known.size + 1)
    await load.stop()
    assert.deepEqual(load.failures, [])
  })

  it('that are killed are replaced, the others go on, and the ledger stays in order', async (t) => {
    const load = keepAliveLoad(t, server.gateway.url, ASKED, CALLERS)
    await load.more(CALLERS)
    const since = server.gateway.stdout.length
    await load.more(CALLERS)
    await until(() => answering(server, since).size > 0, 'their log')
    const known = answering(server)
    const [victim] = answering(server, since)
    process.kill(Number(victim), 'SIGKILL')
    await answers(server, known.size + 1)
    await load.stop()
    assert.ok(load.failures.length <= CALLERS, 'at most one call of each caller')
    const died = server.gateway.logged.find(({ msg }) => msg === 'a worker died')
    assert.deepEqual([died?.worker, died?.signal], [victim, 'SIGKILL'])
    assert.deepEqual((await server.ledger()).violations, [])
  })

  it('drain on SIGTERM: no request received fails, exit 0', async (t) => {
    const load = keepAliveLoad(t, server.gateway.url, ASKED, CALLERS)
    await load.more(CALLERS)
    server.gateway.kill('SIGTERM')
    // As callers behind a balancer do.
    while ((await fetch(`${server.gateway.url}/readyz`)).status === 200) await sleep(5)
    await load.stop()
    assert.deepEqual(load.failures, [])
    const { code, stderr } = await server.gateway.exited
    assert.equal(code, 0, stderr)
    assert.equal(stderr, '')
    const again = await startGatewayProcess(server.env)
    t.after(() => again.stop())
    for (const id of load.ids) assert.equal((await lookUp(again.url, id)).outcome, 'completed')
  })
})

describe('WORKERS that lose the process above them', () => {
  it('finish their calls and end', async (t) => {
    const server = await startFileGateway(t, { WORKERS: '1' })
    const told = Promise.withResolvers<void>()
    const answer = server.upstream.script
    server.upstream.script = async (...received) => {
      await told.promise
      await answer(...received)
    }
    const { path, ...init } = askedChat()
    const running = fetch(server.gateway.url + path, { method: 'POST', ...init })
    await until(() => server.upstream.requests.length === 1, 'the request')
    server.gateway.kill('SIGKILL')
    const refused = async (): Promise<boolean> =>
      fetch(`${server.gateway.url}/healthz`).then(
        () => false,
        () => true,
      )
    while (!(await refused())) await sleep(20)
    told.resolve()
    assert.equal((await running).status, 200)
    await server.gateway.exited
  })
})

describe('WORKERS that die again and again', () => {
  it('end the whole with exit 1 where none serves, and say why', async (t) => {
    const server = await startFileGateway(t, { WORKERS: '1' })
    assert.equal((await fetch(`${server.gateway.url}/v1/models`)).status, 401)
    await until(() => answering(server).size === 1, 'the worker')
    const [worker] = answering(server)
    // Where its database was is something that cannot be one.
    await rm(join(server.folder, 'data'), { recursive: true, force: true })
    await writeFile(join(server.folder, 'data'), '')
    process.kill(Number(worker), 'SIGKILL')
    const { code, stderr } = await server.gateway.exited
    assert.equal(code, 1)
    const [why, ...more] = stderr.trimEnd().split('\n')
    assert.match(why ?? '', /^DATABASE_URL: the database cannot be opened/)
    assert.equal(more.at(-1), 'the workers die as soon as they are started')
  })
})

describe('WORKERS that cannot start', () => {
  it('refuse a database of one process, and what is no number, with one line', async () => {
    for (const [env, fault] of [
      [
        { WORKERS: '2' },
        'WORKERS: several processes need a shared database; "memory:" works with one process only\n',
      ],
      [{ WORKERS: 'two' }, 'WORKERS: must be a whole number from 1 to 256\n'],
    ] as const) {
      const { code, stderr } = await runToExit(env)
      assert.deepEqual([code, stderr], [1, fault])
    }
  })

  it('say once why, exit 1', async (t) => {
    const { gateway, env } = await startFileGateway(t)
    const { code, stderr, stdout } = await runToExit({ ...env, WORKERS: '3', PORT: `${gateway.port}` })
    assert.deepEqual(
      [code, stderr],
      [1, `PORT: ${gateway.port} is in use on 127.0.0.1; choose another one\n`],
    )
    assert.doesNotMatch(stdout, /ready/)
  })
})
