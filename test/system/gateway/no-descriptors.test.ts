import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { chat, startGatewayProcess, temporaryFolder } from '../../support/gateway-process.ts'
import { startUpstream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

/** Fewer than the connections of the test. */
const DESCRIPTORS = 250
/** Within this time a changed file has been looked at for the last time. */
const LOOKS_MS = 3000
const ADMIN_TOKEN = 'admin-token-of-the-tests'

type Gateway = Awaited<ReturnType<typeof startGateway>>

/** A gateway with a line that has been asked, and two that have not, one of them by its name. */
async function startGateway(t: TestContext, through: readonly string[] = []) {
  const upstreams = [await startUpstream(), await startUpstream(), await startUpstream()] as const
  const folder = await temporaryFolder()
  const config = join(folder.path, 'config.json')
  const ids = ['known', 'unknown', 'named'] as const
  const line = (id: string, i: number) => {
    const url = upstreams[i]?.url.replace('127.0.0.1', id === 'named' ? 'localhost' : '127.0.0.1')
    // One failure would open its circuit.
    const circuit = { minimumCalls: 1, errorPercent: 1 }
    return { id, provider: 'p', protocol: 'openai', baseUrl: `${url}/v1`, models: { [id]: 'u' }, circuit }
  }
  const write = (more: object) =>
    writeFile(
      config,
      JSON.stringify({
        accounts: [{ id: 'acme' }],
        keys: [{ id: 'k', account: 'acme', secret: 'sk-demo' }],
        models: ids.map((id) => ({ id, kind: 'chat' })),
        lines: ids.map(line),
        passThrough: [{ path: '/v1/bytes', lines: ['named'] }],
        ...more,
      }),
    )
  await write({})
  const gateway = await startGatewayProcess({ GATEWAY_CONFIG: config, ADMIN_TOKEN }, through)
  // Another address than that of the idle connections, and one connection, which is there already when there are no more.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(async () => {
    agent.destroy()
    await gateway.stop()
    await Promise.all([...upstreams.map((upstream) => upstream.close()), folder.remove()])
  })
  const ask = (model: string, path = '/v1/chat/completions', method = 'POST') =>
    new Promise<string>((resolve, reject) => {
      const headers = { authorization: 'Bearer sk-demo', 'content-type': 'application/json' }
      const options = { agent, port: gateway.port, path, method, headers, localAddress: '127.0.0.2' }
      const asked = request({ host: '127.0.0.1', ...options }, async (answer) => {
        const text = (await answer.toArray()).join('')
        resolve(answer.statusCode === 200 ? 'whole' : JSON.parse(text).error.code)
      })
      asked.on('error', reject).end(method === 'POST' ? JSON.stringify(chat(model)) : undefined)
    })
  assert.equal(await ask('known'), 'whole')
  const open = () => readdirSync(`/proc/${gateway.pid}/fd`).length
  return { gateway, upstreams, write, ask, open }
}

/** Lets a process have so many descriptors from now on. */
function limit({ gateway }: Gateway, descriptors: number): void {
  execFileSync('prlimit', ['--pid', String(gateway.pid), `--nofile=${descriptors}:`])
}

it('a process without descriptors blames no line, and all works when it has some again', async (t) => {
  const started = await startGateway(t)
  const { gateway, upstreams, write, ask, open } = started
  limit(started, open() - 5)
  for (let i = 0; i < 10; i++)
    for (const model of ['unknown', 'named']) assert.equal(await ask(model), 'upstream_error')
  assert.equal(await ask('known'), 'whole')
  assert.deepEqual(upstreams.map(({ requests }) => requests.length).slice(1), [0, 0])
  // Both read files when they are asked for first; one that is not passed on ends its connection.
  const first = async () => [await ask('', '/console', 'GET'), await ask('named', '/v1/bytes')]
  assert.deepEqual(await first(), ['internal_error', 'upstream_error'])
  const told = (message: string) => gateway.logged.filter(({ msg }) => msg === message).length
  await write({ routing: { maxAttempts: 2 } })
  await until(() => told('config not reloaded; the running config stays in effect') === 1, 'the fault')
  await sleep(LOOKS_MS)
  limit(started, 1000)
  const lines = await fetch(`${gateway.url}/admin/lines`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  })
  const { data } = (await lines.json()) as { data: { id: string; recent_failures: number }[] }
  assert.deepEqual(data.map(({ id, recent_failures }) => [id, recent_failures]).sort(), [
    ['known', 0],
    ['named', 0],
    ['unknown', 0],
  ])
  for (const model of ['unknown', 'named']) assert.equal(await ask(model), 'whole')
  assert.deepEqual(await first(), ['whole', 'whole'])
  await until(() => told('config reloaded') === 1, 'the config')
})

it('idle connections of one caller leave descriptors to others, who keep theirs', async (t) => {
  const { gateway, ask, open } = await startGateway(t, [
    'sh',
    '-c',
    `ulimit -n ${DESCRIPTORS}; exec "$@"`,
    'sh',
  ])
  for (const begun of ['', 'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n']) {
    const idle = Array.from({ length: 2 * DESCRIPTORS }, () => {
      const socket = connect(gateway.port, '127.0.0.1').on('error', () => {})
      return socket.on('connect', () => void socket.write(begun))
    })
    await until(() => idle.every(({ connecting }) => !connecting), 'they are connected')
    for (const model of ['unknown', 'known', 'named']) assert.equal(await ask(model), 'whole')
    assert.ok(open() < DESCRIPTORS - 50, `${open()} are open`)
    for (const socket of idle) socket.destroy()
  }
})
