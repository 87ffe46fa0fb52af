import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { chat, temporaryFolder } from '../../support/gateway-process.ts'
import {
  answerJson,
  chatAnswer,
  chatEvents,
  messageAnswer,
  stream,
  type UpstreamScript,
} from '../../support/scripted-upstream.ts'
import { ADMIN_TOKEN, guardedGateway, KEY, OTHER_KEY } from './guarded-gateway.ts'

const LINE_KEY = 'sk-provider-TOPSECRET-1'
const HEADER_SECRET = 'tenant-TOPSECRET-2'
const SIGNING_SECRET = 'signing-TOPSECRET-3-0123456789abcdef'
const WRONG_KEY = 'sk-guess-TOPSECRET-4'
const WRONG_TOKEN = 'token-guess-TOPSECRET-5'
const PROMPT = 'My bank PIN is PROMPTTEXT-7391'
const SYSTEM = 'Never say PROMPTTEXT-5520'

/** Each is a secret, or somebody's words; none of it belongs anywhere but where it was sent. */
const SECRETS = [
  ...[LINE_KEY, HEADER_SECRET, SIGNING_SECRET, WRONG_KEY, WRONG_TOKEN, KEY, OTHER_KEY, ADMIN_TOKEN],
  ...['TOPSECRET', 'PROMPTTEXT'],
]

/** Fails in each way that it is asked for, and says all it knows while it does. */
const script: UpstreamScript = async (res, { headers, json, path }) => {
  const told = `${headers.authorization} ${headers['x-api-key']} ${headers['x-tenant']} said ${JSON.stringify(json.messages)}`
  const error = { message: told, type: 'e', code: 'c' }
  const [, how = ''] = /how:(\w+)/.exec(JSON.stringify(json.metadata ?? {})) ?? []
  const leaks = { 'x-api-key-used': LINE_KEY, 'set-cookie': `session=${LINE_KEY}`, server: LINE_KEY }
  if (/^\d+$/.test(how)) answerJson(res, Number(how), { error }, leaks)
  else if (how === 'cut') res.destroy()
  else if (how === 'nojson') res.writeHead(200, { 'content-type': 'application/json' }).end(told)
  else if (how === 'page') res.writeHead(502, { 'content-type': 'text/html' }).end(`<html>${told}`)
  else if (how === 'midstream')
    await stream(res, [...chatEvents(['a ', 'b ']).slice(0, 3), `data: ${JSON.stringify({ error })}\n\n`])
  else if (json.stream) await stream(res, chatEvents(['Hi']))
  else if (path.endsWith('/messages')) messageAnswer(res)
  else chatAnswer(res)
}

const lineOf = (url: string, protocol: string) => ({
  id: `line-${protocol}`,
  provider: 'p',
  protocol,
  baseUrl: `${url}/v1`,
  apiKey: 'env:LINE_KEY',
  headers: { 'x-tenant': HEADER_SECRET },
  models: { chat: 'upstream-chat' },
  // No circuit opens: each failure reaches the upstream.
  circuit: { minimumCalls: 10_000 },
})

/** How the upstream ends a call. */
const ENDINGS = [
  'well',
  '400',
  '401',
  '403',
  '404',
  '408',
  '413',
  '422',
  '429',
  '500',
  '503',
  '504',
  'cut',
  'nojson',
  'page',
  'midstream',
]

describe('a whole run of successes and failures', async () => {
  const folder = await temporaryFolder()
  const env = {
    LOG_LEVEL: 'trace',
    DATABASE_URL: `sqlite:${join(folder.path, 'gateway.db')}`,
    LINE_KEY,
    URL_SIGNING_SECRET: SIGNING_SECRET,
  }
  const { gateway, upstream } = await guardedGateway(env, script, (url) => ({
    urlSigningSecret: 'env:URL_SIGNING_SECRET',
    lines: ['openai', 'anthropic'].map((protocol) => lineOf(url, protocol)),
  }))

  /** Everything that came back, heads included. */
  const answers: string[] = []
  async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const response = await fetch(gateway.url + path, {
      method,
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text().catch(() => 'broken off')
    answers.push(`${method} ${path}: ${response.status} ${JSON.stringify([...response.headers])} ${text}`)
    return response.status
  }
  const chatOf = (how: string, extra: object = {}) => ({
    ...chat('chat', PROMPT, { metadata: { how: `how:${how}` }, max_tokens: 50, ...extra }),
  })
  const admin = { authorization: `Bearer ${ADMIN_TOKEN}` }

  it('calls succeed and fail in every way', async () => {
    let served = 0
    for (const path of ['/v1/chat/completions', '/v1/messages']) {
      for (const how of ENDINGS) {
        for (const extra of [{}, { stream: true }]) {
          const key = { 'idempotency-key': `${path} ${how} ${JSON.stringify(extra)}` }
          const system = path.endsWith('messages') ? { system: SYSTEM } : {}
          const status = await ask('POST', path, chatOf(how, { ...extra, ...system }), key)
          if (status === 200) served++
          await ask('POST', path, chatOf(how, { ...extra, ...system }), key)
        }
      }
    }
    assert.ok(served >= 4, `${served} calls were served`)
    assert.ok(upstream.requests.length > 40, `${upstream.requests.length} calls reached the upstream`)
    assert.match(String(upstream.requests[0]?.headers.authorization), /TOPSECRET/, 'which is sent its key')
  })

  it('and are refused in every way', async () => {
    const post = (body: unknown, headers = {}) => ask('POST', '/v1/chat/completions', body, headers)
    const guess = { authorization: `Bearer ${WRONG_KEY}` }
    assert.equal(await post(chatOf('well'), guess), 401)
    assert.equal(await post(chatOf('well'), { 'x-api-key': WRONG_KEY }), 401)
    assert.equal(await post({ ...chatOf('well'), model: 'nowhere' }), 404)
    assert.equal(await post({ ...chatOf('well'), temperature: 'hot' }), 400)
    assert.equal(await post({ model: 'chat', messages: { PROMPTTEXT: PROMPT } }), 400)
    assert.equal(await post({ model: 'chat', messages: [{ role: PROMPT, content: PROMPT }] }), 400)
    assert.equal(await post(`{"model":"chat","messages":[{"content":"${PROMPT}`), 400)
    assert.equal(await post({ ...chatOf('well'), provider: { only: ['nobody'] } }), 503)
    assert.equal(await ask('GET', '/v1/models', undefined, guess), 401)
    for (const path of [
      '/v1/models',
      '/v1/models/chat',
      '/v1/models/chat/routing',
      '/v1/calls',
      '/nowhere',
    ]) {
      await ask('GET', path)
    }
    assert.equal(
      await ask('GET', '/admin/accounts', undefined, { authorization: `Bearer ${WRONG_TOKEN}` }),
      401,
    )
    for (const path of ['accounts', 'accounts/acme', 'leases', 'ledger/check', 'keys', 'lines', 'calls']) {
      await ask('GET', `/admin/${path}`, undefined, admin)
    }
    const { length } = answers
    const ids = answers.flatMap((answer) => /"x-request-id","(req_\w+)"/.exec(answer)?.[1] ?? [])
    for (const id of ids.slice(0, 80)) await ask('GET', `/v1/calls/${id}`)
    const found = answers.slice(length).filter((answer) => answer.includes('"object":"call"'))
    assert.ok(found.length > 50, `${found.length} entries of the call log`)
  })

  it('and leave no secret and no prompt in answers, logs or files', async () => {
    gateway.kill('SIGTERM')
    assert.equal((await gateway.exited).code, 0)
    const places = new Map([
      ['standard output', gateway.stdout],
      ['standard error', gateway.stderr],
      ...answers.map((answer, i) => [`answer ${i}`, answer] as const),
    ])
    const files = await readdir(folder.path)
    assert.ok(files.includes('gateway.db'))
    for (const file of files) places.set(file, await readFile(join(folder.path, file), 'latin1'))
    assert.ok(gateway.stdout.includes('"msg":"call"'), 'there is a log')
    assert.ok((places.get('gateway.db') ?? '').includes('upstream-chat'), 'there are rows')
    const leaks = [...places].flatMap(([place, text]) =>
      SECRETS.filter((secret) => text.includes(secret)).map((secret) => {
        const at = text.indexOf(secret)
        return `${secret} in ${place}: ${text.slice(Math.max(0, at - 300), at + 60)}`
      }),
    )
    assert.deepEqual(leaks.slice(0, 5), [])
    await folder.remove()
  })
})
