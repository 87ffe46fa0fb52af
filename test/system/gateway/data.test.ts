import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { readSettings } from '../../../examples/gateway/config/environment.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  chat,
  type GatewayProcess,
  lookUp,
  post,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let running: GatewayProcess | undefined
const cleanUp = cleaningUp(afterEach)
beforeEach(async () => {
  folder = await temporaryFolder()
  cleanUp.after(() => folder.remove())
  cleanUp.after(() => running?.stop())
})

const PROMPT = 'a prompt that nobody may ever read again: cerulean-otter-417'

const database = () => ({ DATABASE_URL: `sqlite:${join(folder.path, 'deep', 'gateway.db')}` })

async function start(env: Record<string, string> = {}): Promise<GatewayProcess> {
  running = await startGatewayProcess({ ...database(), ...env })
  return running
}

async function call(url: string, key: string, model = 'chat-small'): Promise<Response> {
  const response = await post(url, chat(model), { authorization: `Bearer ${key}` })
  await response.arrayBuffer()
  return response
}

/** A config whose only line is one that nobody listens on: what is asked is who may come in. */
async function configWith(keys: object[], extra: object = {}): Promise<Record<string, string>> {
  const path = join(folder.path, 'config.json')
  const line = {
    id: 'l',
    provider: 'p',
    protocol: 'openai',
    baseUrl: 'http://127.0.0.1:9/v1',
    models: { m: 'u' },
  }
  const models = [{ id: 'm', kind: 'chat' }]
  await writeFile(path, JSON.stringify({ accounts: [{ id: 'acme' }], keys, models, lines: [line], ...extra }))
  return { GATEWAY_CONFIG: path }
}

describe('the stored data of the gateway', () => {
  it('the key of the demo config, which everybody knows, does not open a gateway with a config of its own', () => {
    const demo = readSettings({}).databaseUrl
    const own = readSettings({ GATEWAY_CONFIG: 'gateway.json' }).databaseUrl
    assert.notEqual(demo, own)
    assert.match(demo, /^sqlite:\.data\//)
    assert.match(own, /^sqlite:\.data\//)
  })

  it('calls and keys survive a regular restart', async () => {
    const first = await start()
    const answer = await call(first.url, 'sk-demo')
    assert.equal(answer.status, 200)
    const id = answer.headers.get('x-request-id')
    const before = await lookUp(first.url, id)
    first.kill('SIGTERM')
    assert.equal((await first.exited).code, 0)
    const second = await start()
    assert.deepEqual(await lookUp(second.url, id), before)
    assert.equal((await call(second.url, 'sk-demo')).status, 200)
  })

  it('kill -9 and a restart on the same file: the calls that were visible still are', async () => {
    const first = await start()
    const ids: (string | null)[] = []
    for (let i = 0; i < 5; i++) ids.push((await call(first.url, 'sk-demo')).headers.get('x-request-id'))
    for (const id of ids) await lookUp(first.url, id)
    const dying = assert.rejects(
      post(first.url, chat('chat-small', 'Hi', { stream: true })).then((response) => response.text()),
    )
    first.kill('SIGKILL')
    assert.equal((await first.exited).signal, 'SIGKILL')
    await dying
    const second = await start()
    for (const id of ids) assert.equal((await lookUp(second.url, id)).outcome, 'completed')
    assert.equal((await call(second.url, 'sk-demo')).status, 200)
  })

  it('seeds each id once: afterwards the database rules', async () => {
    const key = { id: 'k', account: 'acme', secret: 'sk-first' }
    const first = await start(await configWith([key]))
    assert.equal((await call(first.url, 'sk-first', 'm')).status, 502)
    await first.stop()
    // The id is known: neither its new secret nor its being switched off counts. The new id comes in.
    const changed = { ...key, secret: 'sk-second', enabled: false }
    const second = await start(await configWith([changed, { id: 'k2', account: 'acme', secret: 'sk-new' }]))
    assert.equal((await call(second.url, 'sk-first', 'm')).status, 502)
    assert.equal((await call(second.url, 'sk-second', 'm')).status, 401)
    assert.equal((await call(second.url, 'sk-new', 'm')).status, 502)
    await second.stop()
    // A key that the config no longer names stays.
    const third = await start(await configWith([]))
    assert.equal((await call(third.url, 'sk-new', 'm')).status, 502)
  })

  it('GATEWAY_REGION overrides the region of the config', async () => {
    const accounts = [{ id: 'acme', regions: ['local'] }]
    const config = await configWith([{ id: 'k', account: 'acme', secret: 'sk-1' }], {
      accounts,
      region: 'local',
    })
    const here = await start(config)
    assert.equal((await call(here.url, 'sk-1', 'm')).status, 502)
    await here.stop()
    const elsewhere = await start({ ...config, GATEWAY_REGION: 'mars' })
    const refused = await post(elsewhere.url, chat('m'), { authorization: 'Bearer sk-1' })
    assert.equal((await envelopeOf(refused)).error.code, 'region_denied')
    assert.equal(refused.status, 403)
  })
})

describe('the log of the gateway', () => {
  it('has the request id on every line about a call, and no key, upstream key or prompt', async () => {
    const env = { LOG_LEVEL: 'trace', UPSTREAM_KEY: 'sk-upstream-very-secret' }
    const line = {
      id: 'l',
      provider: 'p',
      protocol: 'openai',
      baseUrl: 'http://127.0.0.1:9/v1',
      apiKey: 'env:UPSTREAM_KEY',
      models: { m: 'u' },
    }
    const config = await configWith([{ id: 'k', account: 'acme', secret: 'sk-caller-secret' }], {
      lines: [line],
    })
    const gateway = await start({ ...config, ...env })
    const ids: (string | null)[] = []
    const send = async (body: object | string, key: string) => {
      const response = await fetch(`${gateway.url}/v1/chat/completions?api_key=sk-caller-secret`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      })
      await response.arrayBuffer()
      ids.push(response.headers.get('x-request-id'))
    }
    await send(chat('m', PROMPT), 'sk-caller-secret')
    await send(chat('m', PROMPT, { stream: true }), 'sk-caller-secret')
    await send(chat('nowhere', PROMPT), 'sk-caller-secret')
    await send(chat('m', PROMPT), 'sk-wrong-secret')
    await send(`{"model":"m","messages":[{"role":"user","content":"${PROMPT}`, 'sk-caller-secret')
    gateway.kill('SIGTERM')
    const { code, stdout, stderr } = await gateway.exited
    assert.equal(code, 0)
    assert.equal(stderr, '')
    assert.doesNotMatch(stdout, /cerulean-otter|sk-caller-secret|sk-wrong-secret|very-secret/)
    const calls = gateway.logged.filter(({ msg }) => msg === 'call')
    assert.deepEqual(
      calls.map(({ requestId }) => requestId).sort(),
      [...ids].sort(),
      'one line for each call, with its id',
    )
    assert.deepEqual(
      calls.map(({ status, code: errorCode }) => [status, errorCode]),
      [
        [502, 'upstream_error'],
        [502, 'upstream_error'],
        [404, 'model_not_found'],
        [401, 'invalid_credential'],
        [400, 'invalid_request'],
      ],
    )
    for (const entry of gateway.logged) {
      if ('path' in entry || 'method' in entry || 'model' in entry)
        assert.match(String(entry.requestId), /^req_/)
    }
  })
})
