import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { chat, startGatewayProcess, temporaryFolder } from '../../support/gateway-process.ts'
import { startUpstream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

/** Fewer than the gateway and the connections of the test need together. */
const DESCRIPTORS = 250
/** Within this time a changed file has been looked at for the last time. */
const LOOKS_MS = 3000

it('a process without descriptors blames no line, and all works when it has some again', async (t) => {
  const [known, unknown] = [await startUpstream(), await startUpstream()]
  const folder = await temporaryFolder()
  const config = join(folder.path, 'config.json')
  const line = (id: string, { url }: { url: string }) => ({
    ...{ id, provider: 'p', protocol: 'openai', baseUrl: `${url}/v1`, models: { [id]: 'u' } },
  })
  const write = (more: object) =>
    writeFile(
      config,
      JSON.stringify({
        accounts: [{ id: 'acme' }],
        keys: [{ id: 'k', account: 'acme', secret: 'sk-demo' }],
        models: ['known', 'unknown'].map((id) => ({ id, kind: 'chat' })),
        lines: [line('known', known), line('unknown', unknown)],
        passThrough: [{ path: '/v1/bytes', lines: ['known'] }],
        ...more,
      }),
    )
  await write({})
  const limited = ['sh', '-c', `ulimit -n ${DESCRIPTORS}; exec "$@"`, 'sh']
  const gateway = await startGatewayProcess({ GATEWAY_CONFIG: config }, limited)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(async () => {
    agent.destroy()
    await gateway.stop()
    await Promise.all([known.close(), unknown.close(), folder.remove()])
  })
  /** Asks over the one connection of this test, which it has already when there are no more. */
  const ask = (model: string, path = '/v1/chat/completions', method = 'POST') =>
    new Promise<string>((resolve, reject) => {
      const headers = { authorization: 'Bearer sk-demo', 'content-type': 'application/json' }
      const options = { agent, port: gateway.port, path, method, headers }
      const asked = request({ host: '127.0.0.1', ...options }, async (answer) => {
        const text = (await answer.toArray()).join('')
        resolve(answer.statusCode === 200 ? 'whole' : JSON.parse(text).error.code)
      })
      asked.on('error', reject).end(method === 'POST' ? JSON.stringify(chat(model)) : undefined)
    })

  assert.equal(await ask('known'), 'whole')
  const idle = Array.from({ length: 2 * DESCRIPTORS }, () =>
    connect(gateway.port, '127.0.0.1').on('error', () => {}),
  )
  t.after(() => idle.forEach((socket) => void socket.destroy()))
  const free = () => DESCRIPTORS - readdirSync(`/proc/${gateway.pid}/fd`).length
  await until(() => free() <= 1, 'the shortage')
  for (let i = 0; i < 10; i++) assert.equal(await ask('unknown'), 'upstream_error')
  assert.equal(await ask('known'), 'whole')
  assert.equal(unknown.requests.length, 0)
  // Both read files when they are asked for first; one that is not passed on ends its connection.
  const first = async () => [await ask('', '/console', 'GET'), await ask('known', '/v1/bytes')]
  assert.deepEqual(await first(), ['internal_error', 'upstream_error'])
  const told = (message: string) => gateway.logged.filter(({ msg }) => msg === message).length
  await write({ routing: { maxAttempts: 2 } })
  await until(() => told('config not reloaded, all stays as it is') === 1, 'the fault')
  await sleep(LOOKS_MS)
  for (const socket of idle) socket.destroy()
  await until(() => free() > 150, 'the end of the shortage')
  assert.equal(await ask('unknown'), 'whole')
  assert.deepEqual(await first(), ['whole', 'whole'])
  await until(() => told('config reloaded') === 1, 'the config')
})
