import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { loopFigures, uncalibratedFigures, WITH_LOOP_FIGURES } from '../../support/loop-figures.ts'
import { chatAnswer } from '../../support/scripted-upstream.ts'
import { slownessIn } from './cost-meter.ts'
import { guardedGateway, KEY } from './guarded-gateway.ts'
import { CHAT, filled } from './hostile-rows.ts'

/** No header may hold the event loop for longer, on a machine as fast as the limit was set on. */
const MAX_HELD_MS = 50
const TRIES = 4
const SIZE = 14_000

/** Headers that frame the request itself. */
const FRAMING = ['content-length', 'transfer-encoding', 'connection', 'host', 'expect', 'upgrade']

/** All headers of requests that the code reads by their names. */
const NAMES = new Set(
  globSync(['lib/**/*.ts', 'examples/gateway/**/*.ts'])
    .flatMap((file) => [
      ...readFileSync(file, 'utf8').matchAll(
        /(?:[hH]eaders\[|\.get\(|\.header\()'([a-z][a-z-]+)'|\{ '([a-z]+-[a-z-]+)':/gi,
      ),
    ])
    .map(([, read, taken]) => `${read ?? taken}`.toLowerCase())
    .filter((name) => !FRAMING.includes(name))
    .concat('authorization', 'accept', 'cookie', 'origin', 'x-forwarded-for', 'x-gateway-user'),
)

/** The beginning of a value, so that it is read on. */
const BEGINS: Readonly<Record<string, readonly string[]>> = {
  'content-type': [
    'multipart/form-data',
    'multipart/form-data; boundary=a',
    'multipart/form-data; charset=a',
    'application/json',
    'application/json; charset=',
  ],
  'x-gateway-tags': ['a=', 'a=b,'],
  'x-gateway-provider': ['{"order":["'],
  authorization: ['Bearer ', 'Basic '],
}
const REPEATED = [
  ' ',
  'a ',
  '=',
  ' =',
  ',',
  ', ',
  ';',
  '; ',
  '"',
  '\\"',
  '[',
  '.',
  '1',
  '0',
  '/',
  '*',
  '-',
  ':',
  '%41',
]

describe('no header takes longer than its bytes', async () => {
  const { gateway } = await guardedGateway(
    WITH_LOOP_FIGURES,
    (res) => chatAnswer(res, 'Hello'),
    () => ({
      passThrough: [{ path: '/v1/files', methods: ['POST'], lines: ['line-openai'], keeps: 'file' }],
    }),
  )
  const body = JSON.stringify({ model: 'chat', messages: [{ role: 'user', content: 'Hi' }] })

  const send = async (path: string, name: string, value: string): Promise<void> => {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', [name]: value }
    const answer = await fetch(`${gateway.url}${path}`, { method: 'POST', body, headers })
    await answer.text().catch(() => {})
    assert.ok(answer.status < 500, `${answer.status}`)
  }

  const valueFrom = (begin: string, part: string): string => `${begin}${filled(part, SIZE)}!`

  /** Sends all values, and returns those to be looked at one by one: none where no one of them takes long. */
  const suspects = async (path: string, name: string, begin: string): Promise<readonly string[]> => {
    await uncalibratedFigures(gateway)
    for (const part of REPEATED) await send(path, name, valueFrom(begin, part))
    const { heldMs } = await uncalibratedFigures(gateway)
    return heldMs < MAX_HELD_MS ? [] : REPEATED
  }

  // What is passed on reads few headers itself.
  for (const path of [CHAT, '/v1/files'])
    for (const name of NAMES)
      it(`${name}, of ${path}`, async () => {
        for (const begin of path === CHAT ? ['', 'x,', ...(BEGINS[name] ?? [])] : [''])
          for (const part of await suspects(path, name, begin)) {
            const value = valueFrom(begin, part)
            let heldMs = Number.POSITIVE_INFINITY
            for (let i = 0; i < TRIES && heldMs >= MAX_HELD_MS; i++) {
              await uncalibratedFigures(gateway)
              await send(path, name, value)
              const { heldMs: held } = await uncalibratedFigures(gateway)
              heldMs = held < MAX_HELD_MS ? held : held / slownessIn(await loopFigures(gateway))
            }
            assert.ok(heldMs < MAX_HELD_MS, `${heldMs} ms: ${begin}${part}${part}${part}…!`)
          }
      })
})
