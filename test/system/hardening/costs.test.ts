import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { WITH_LOOP_FIGURES } from '../../support/loop-figures.ts'
import type { UpstreamScript } from '../../support/scripted-upstream.ts'
import { costOf, judge } from './cost-meter.ts'
import { ADMIN_TOKEN, guardedGateway, KEY } from './guarded-gateway.ts'
import { filled, prompt, said } from './hostile-rows.ts'

/** Requests that are measured together, and what they may cost however small they are. */
const AT_ONCE = 20
const ALLOWED_MICROS = 15_000
const SIZE = 2 * 1024 * 1024
const SEED = Number(process.env.SEED ?? 20260101)

const sample = <T>(arbitrary: fc.Arbitrary<T>, numRuns: number): T[] =>
  fc.sample(arbitrary, { numRuns, seed: SEED })

/** Pieces of JSON that stand in lists, and of text that stand in strings. */
const item = fc.constantFrom(
  '[]',
  '{}',
  '""',
  '1',
  'null',
  '1e9',
  '{"a":1}',
  '{"":[]}',
  '[[[[]]]]',
  '"\\"\\""',
  '{"role":"user","content":"a"}',
)
const letters = fc.constantFrom(
  'a',
  '\\n',
  '\\"',
  '\\\\',
  '\\u0041',
  'é',
  '漢',
  '😀',
  'aB3',
  ' ',
  '.,',
  '{"',
  '[',
  'data: ',
)
const list = fc
  .array(item, { minLength: 1, maxLength: 5 })
  .map((items) => `[${filled(`${items.join(',')},`, SIZE)}1]`)
const text = fc.array(letters, { minLength: 1, maxLength: 6 }).map((units) => filled(units.join(''), SIZE))
const member = fc.constantFrom(
  'messages',
  'tools',
  'brand_new',
  'provider',
  'metadata',
  'stream_options',
  'stop',
)
const body = fc.oneof(
  text.map(prompt),
  text.map((written) => `{"model":"chat",${said},"${written}":1}`),
  fc.tuple(member, list).map(([name, written]) => `{"model":"chat",${said},"${name}":${written}}`),
)

describe('no input costs more than its bytes are worth', async () => {
  let script: UpstreamScript = (res) => void res.end('{}')
  const { gateway } = await guardedGateway(WITH_LOOP_FIGURES, (...call) => script(...call))
  const authorization = `Bearer ${KEY}`

  const post = async (sent: string): Promise<void> => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: sent,
    })
    await response.text().catch(() => {})
    assert.notEqual(response.status, 500)
  }

  it('bodies', async () => {
    const costs = []
    for (const sent of sample(body, 24))
      costs.push(await costOf(gateway, Buffer.byteLength(sent), () => post(sent), sent))
    judge(costs)
  })

  it('queries and headers, many at a time', async () => {
    const names = [
      'cursor',
      'limit',
      'model',
      'from',
      'x-forwarded-for',
      'accept-encoding',
      'anthropic-beta',
      'idempotency-key',
      'x-gateway-provider',
      'traceparent',
    ]
    const unit = fc.constantFrom(',', '1,', ', ', '[', '{"a":', '*', '%41', 'a*', '::', '=', '-')
    const costs = []
    for (const [name, part] of sample(fc.tuple(fc.constantFrom(...names), unit), 16)) {
      const value = filled(part, 10_000).trim() || '0'
      const isQuery = names.indexOf(name) < 4
      const url = `${gateway.url}/v1/calls${isQuery ? `?${name}=${encodeURI(value)}` : ''}`
      const act = async (): Promise<void> => {
        for (let i = 0; i < AT_ONCE; i++)
          await (
            await fetch(url.slice(0, 14_000), {
              headers: { authorization, ...(!isQuery && { [name]: value }) },
            })
          ).text()
      }
      costs.push(await costOf(gateway, AT_ONCE * 10_000, act, `${name}: ${value}`, ALLOWED_MICROS))
    }
    judge(costs)
  })

  it('cursors of lists, many at a time', async () => {
    const lists: readonly (readonly [path: string, secret: string, ...members: string[]])[] = [
      ['/v1/calls', KEY, 'cursor', 'model'],
      ['/v1/videos', KEY, 'after', 'limit', 'order'],
      ['/api/v3/contents/generations/tasks', KEY, 'page_num', 'filter.task_ids', 'filter.status'],
      ['/admin/calls', ADMIN_TOKEN, 'cursor', 'account'],
      ['/admin/tickets', ADMIN_TOKEN, 'cursor', 'account', 'status'],
      ['/admin/video-tasks', ADMIN_TOKEN, 'cursor', 'account', 'status'],
    ]
    const values = [
      Buffer.from('\u6f22'.repeat(3000)).toString('base64url'),
      Buffer.from(`req_${'0'.repeat(26)}`).toString('base64url'),
      '9'.repeat(10_000),
      'task-1,'.repeat(1500),
      '%00'.repeat(3000),
    ]
    const costs = []
    for (const [path, secret, ...members] of lists) {
      for (const member of members) {
        for (const value of values) {
          const url = `${gateway.url}${path}?${member}=${value}`.slice(0, 14_000)
          const act = async (): Promise<void> => {
            for (let i = 0; i < AT_ONCE; i++) {
              const response = await fetch(url, { headers: { authorization: `Bearer ${secret}` } })
              await response.text()
              assert.ok(response.status < 500, `${path}: ${response.status}`)
            }
          }
          const what = `${path}?${member}=${value}`
          costs.push(await costOf(gateway, AT_ONCE * url.length, act, what, ALLOWED_MICROS))
        }
      }
    }
    judge(costs)
  })

  it('answers of an upstream, whole and as an event in pieces', async () => {
    const costs = []
    for (const [written, pieces] of sample(fc.tuple(text, fc.constantFrom(1, 50, 1000)), 12)) {
      for (const isStream of [false, true]) {
        const choice = `"choices":[{"index":0,"${isStream ? 'delta' : 'message'}":{"content":"${written}"},"finish_reason":"stop"}]`
        const bytes = Buffer.from(isStream ? `data: {${choice}}\n\ndata: [DONE]\n\n` : `{${choice}}`)
        script = async (res) => {
          res.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' })
          const size = Math.ceil(bytes.length / pieces)
          for (let at = 0; at < bytes.length && !res.destroyed; at += size) {
            res.write(bytes.subarray(at, at + size))
            await nextTurn()
          }
          res.end()
        }
        const sent = `{"model":"chat","stream":${isStream},${said}}`
        costs.push(
          await costOf(
            gateway,
            bytes.length,
            () => post(sent),
            `${pieces} pieces: ${bytes.toString('utf8', 0, 150)}`,
          ),
        )
      }
    }
    judge(costs)
  })
})
