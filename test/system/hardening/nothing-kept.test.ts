import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { cleaningUp } from '../../support/clean-up.ts'
import { temporaryFolder } from '../../support/gateway-process.ts'
import { answerJson } from '../../support/scripted-upstream.ts'
import { ADMIN_TOKEN, guardedGateway, KEY } from './guarded-gateway.ts'

/** The marker in every prompt, which must be nowhere else. It holds no letters that errors are made of by chance. */
const MARKER = `qzx${randomBytes(6).toString('hex')}zxq`

const codes = (text: string, write: (code: number) => string, between = '') =>
  Array.from(text, (character) => write(character.charCodeAt(0))).join(between)
const ESCAPED: readonly string[] = [
  MARKER,
  MARKER.toUpperCase(),
  Array.from(MARKER).reverse().join(''),
  codes(MARKER, (code) => `\\u00${code.toString(16)}`),
  codes(MARKER, (code) => `&#${code};`),
  codes(MARKER, (code) => `%${code.toString(16)}`),
  codes(MARKER, String, ' '),
  Buffer.from(MARKER).toString('base64'),
  Buffer.from(MARKER).toString('hex'),
  MARKER.slice(0, 9),
]
/** Parts of any of these are traces of the prompt. */
const TRACES = ESCAPED.map((text) => text.slice(0, 9))

const LONG = '"\\\u0001é語😀'.repeat(3000)
const HOSTILE: readonly [path: string, headers: Record<string, string>, body: object][] = [
  ['/v1/chat/completions', {}, { model: LONG }],
  ['/v1/chat/completions', {}, { model: 'chat', messages: LONG, user: LONG }],
  [
    '/v1/chat/completions',
    {},
    { model: 'chat', provider: { only: Array.from({ length: 400 }, () => LONG.slice(0, 40)) } },
  ],
  ['/v1/chat/completions', { 'x-gateway-provider': JSON.stringify({ only: ['n'.repeat(4000)] }) }, {}],
  ['/v1/chat/completions', { 'idempotency-key': 'k'.repeat(8000) }, {}],
  ['/v1/chat/completions', { 'idempotency-key': '"'.repeat(255), 'x-request-id': '\\'.repeat(9000) }, {}],
  ['/v1/chat/completions', { 'x-forwarded-for': 'f'.repeat(9000), traceparent: 't'.repeat(5000) }, {}],
  [`/v1/chat/completions/${'p'.repeat(12_000)}`, {}, {}],
  [`/v1/${'%22'.repeat(4000)}`, {}, {}],
  ['/v1/messages', {}, { model: 'chat', max_tokens: 1, metadata: { user_id: LONG }, messages: [] }],
  ['/v1/responses', {}, { model: 'chat', input: 1, previous_response_id: LONG, metadata: { [LONG]: LONG } }],
  ['/v1/embeddings', {}, { model: 'chat', input: LONG }],
  ['/v1/videos', {}, { model: 'chat', prompt: LONG, size: LONG }],
  ['/api/v3/contents/generations/tasks', {}, { model: LONG, content: [] }],
  ['/v1/tickets', {}, { request_id: LONG, message: LONG }],
]

describe('the stored part of requests', async () => {
  const cleanUp = cleaningUp()
  const folder = await temporaryFolder()
  cleanUp.after(() => folder.remove())
  let turn = 0
  const { gateway } = await guardedGateway({ DATABASE_URL: `sqlite:${join(folder.path, 'g.db')}` }, (res) => {
    const quoted = ESCAPED[turn++ % ESCAPED.length] as string
    const status = [400, 401, 403, 404, 413, 422, 429, 500, 503][turn % 9] as number
    const message = `Invalid request: ${quoted} (${quoted}) is not supported`
    answerJson(res, status, { error: { message, type: quoted, code: quoted, param: quoted } })
  })

  const send = (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(gateway.url + path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
    })
  const operator = (path: string) => {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
    return fetch(gateway.url + path, { headers }).then((answer) => answer.text())
  }
  const bytesOnDisk = async () => {
    const files = await readdir(folder.path)
    return (await Promise.all(files.map((name) => stat(join(folder.path, name))))).reduce(
      (sum, { size }) => sum + size,
      0,
    )
  }

  it('is at most 16 KiB a call, whatever a refused caller sends', async () => {
    await sleep(300)
    const before = await bytesOnDisk()
    let calls = 0
    for (let round = 0; round < 4; round++) {
      for (const [path, headers, body] of HOSTILE) {
        const { status } = await send(path, body, headers)
        assert.ok(status >= 400 && status < 500, `${path.slice(0, 60)}: ${status}`)
        calls++
      }
    }
    await sleep(500)
    const grown = (await bytesOnDisk()) - before
    // A page of the write-ahead log holds each page of the database once more.
    assert.ok(grown <= 2 * calls * 16 * 1024, `${grown} bytes for ${calls} calls`)
    const { data } = JSON.parse(await operator('/admin/calls?limit=100'))
    assert.ok(data.length > HOSTILE.length)
    for (const entry of data) {
      const bytes = Buffer.byteLength(JSON.stringify(entry))
      assert.ok(bytes <= 16 * 1024, `${entry.path.slice(0, 60)}: ${bytes} bytes`)
    }
  })

  it('is no prompt, in no escaping in which an upstream quotes it: not in the database, the log or the metrics', async () => {
    for (let i = 0; i < 3 * ESCAPED.length; i++) {
      await send('/v1/chat/completions', {
        model: 'chat',
        messages: [{ role: 'user', content: `my ${MARKER}` }],
      })
      await send('/v1/messages', {
        model: 'chat',
        max_tokens: 5,
        messages: [{ role: 'user', content: MARKER }],
      })
    }
    assert.ok(turn > ESCAPED.length, 'the upstream was asked')
    await sleep(500)
    const files = await Promise.all(
      (await readdir(folder.path)).map((name) => readFile(join(folder.path, name), 'latin1')),
    )
    const all = {
      disk: files.join(''),
      log: gateway.stdout + gateway.stderr,
      metrics: await operator('/metrics'),
    }
    for (const [where, text] of Object.entries(all)) {
      assert.ok(text.length > 1000)
      for (const trace of TRACES) assert.ok(!text.includes(trace), `${trace} in ${where}`)
    }
  })

  it('is no metric series for each name of a model', async () => {
    for (let i = 0; i < 50; i++)
      await send('/v1/chat/completions', { model: `model-${i}-${MARKER}`, messages: [] })
    assert.doesNotMatch(await operator('/metrics'), /model-\d+-/)
  })
})
