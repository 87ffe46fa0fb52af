import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { describe, it } from 'node:test'
import { drained } from '../../support/drained.ts'
import { WITH_LOOP_FIGURES } from '../../support/loop-figures.ts'
import { chatEvents, messageEvents, type UpstreamScript } from '../../support/scripted-upstream.ts'
import { type Cost, judge, streamCostOf } from './cost-meter.ts'
import { guardedGateway, KEY } from './guarded-gateway.ts'
import { CHAT, filled, MESSAGES, RESPONSES } from './hostile-rows.ts'

const SIZE = 1024 * 1024
/** As many events as of the others, and more. */
const TINY_SIZE = SIZE / 4
const WRITTEN_AT_ONCE = 64 * 1024
/** A circuit stands by line and model, and some of these streams count against their line. */
const MODELS = 40

type Protocol = 'openai' | 'anthropic'

/** The unit that a stream repeats, and what comes once before and after. */
interface Repeated {
  readonly unit: string
  readonly before?: string
  readonly after?: string
}

/** Events as small as they can be. */
const TINY: readonly string[] = [
  ':\n\n',
  '\n',
  '\r\n',
  'data:\n\n',
  'id:1\n\n',
  'data: {}\n\n',
  'data:{}\r\n\r\n',
  'event:x\ndata:{}\n\n',
  'data:{"a":[]}\n\n',
]

const event = (data: object): string => `data:${JSON.stringify(data)}\n\n`
const delta = (of: object): string => event({ choices: [{ delta: of }] })
const toolDelta = (of: object, more: object = {}): string =>
  delta({ tool_calls: [{ index: 0, ...more, function: of }] })
const block = (of: object, index = 1): string =>
  event({ type: 'content_block_start', index, content_block: of })
const blockDelta = (of: object, index = 1): string => event({ type: 'content_block_delta', index, delta: of })
const blockEnd = event({ type: 'content_block_stop', index: 1 })

/** Pieces of JSON in the arguments of a tool. */
const PIECES = ['1', '[', '{"', '\\', '"', ' ', '\u0000', '漢', '{"a":1,']

/** Output in very many pieces. */
const OUTPUT: Readonly<Record<Protocol, readonly Repeated[]>> = {
  openai: [
    ...PIECES.map((piece) => ({
      before: toolDelta({ name: 'f', arguments: '' }, { id: 'call_1' }),
      unit: toolDelta({ arguments: piece }),
    })),
    { unit: toolDelta({ name: 'f', arguments: '{}' }, { id: 'call_1' }) },
    { unit: delta({ content: 'a' }) },
    { unit: delta({ content: 'a', reasoning: 'b' }) },
    { unit: delta({ reasoning_content: 'a' }) },
    { unit: delta({ content: 'a' }) + delta({ reasoning_content: 'a' }) },
    { unit: event({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } }) },
  ],
  anthropic: [
    ...PIECES.map((piece) => ({
      before: block({ type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }),
      unit: blockDelta({ type: 'input_json_delta', partial_json: piece }),
      after: blockEnd,
    })),
    { unit: block({ type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }) + blockEnd },
    { unit: block({ type: 'text', text: '' }) + blockEnd },
    { unit: blockDelta({ type: 'text_delta', text: 'a' }, 0) },
    {
      before: block({ type: 'thinking', thinking: '', signature: '' }),
      unit: blockDelta({ type: 'thinking_delta', thinking: 'a' }),
      after: blockEnd,
    },
    {
      before: block({ type: 'thinking', thinking: '', signature: '' }),
      unit: blockDelta({ type: 'signature_delta', signature: 'a' }),
      after: blockEnd,
    },
    { unit: event({ type: 'ping' }) },
  ],
}

describe('no stream of a line costs more than its bytes are worth', async () => {
  let script: UpstreamScript = (res) => void res.end()
  let made = 0
  const { gateway } = await guardedGateway(
    WITH_LOOP_FIGURES,
    (...call) => script(...call),
    (url) => {
      const models = (protocol: Protocol) => Array.from({ length: MODELS }, (_, i) => `${protocol}-${i}`)
      return {
        models: [...models('openai'), ...models('anthropic')].map((id) => ({ id, kind: 'chat' })),
        lines: (['openai', 'anthropic'] as const).map((protocol) => ({
          id: `line-${protocol}`,
          provider: 'p',
          protocol,
          baseUrl: `${url}/v1`,
          models: Object.fromEntries(models(protocol).map((id) => [id, 'u'])),
          ...(protocol === 'openai' && { endpoints: ['chat/completions'] }),
        })),
      }
    },
  )

  async function ask(path: string, protocol: Protocol): Promise<void> {
    const said = [{ role: 'user', content: 'hi' }]
    const model = `${protocol}-${made++ % MODELS}`
    const most = path === CHAT ? { max_completion_tokens: 5 } : { max_tokens: 5 }
    const body = path === RESPONSES ? { input: said } : { messages: said, ...most }
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
    const req = request(gateway.url + path, { method: 'POST', headers })
    req.end(JSON.stringify({ model, stream: true, ...body }))
    const [answer] = (await once(req, 'response')) as [IncomingMessage]
    assert.ok([200, 502, 503].includes(answer.statusCode ?? 0), `${answer.statusCode}`)
    // Decoding what came would take as long as the gateway does.
    answer.resume().on('error', () => {})
    await new Promise((resolve) => answer.once('close', resolve))
  }

  function cost(
    path: string,
    protocol: Protocol,
    repeated: Repeated,
    at: number,
    size = SIZE,
  ): Promise<Cost> {
    const { before = '', unit, after = '' } = repeated
    const events = protocol === 'openai' ? chatEvents(['Hi']) : messageEvents(['Hi'])
    const act = async (filling: number): Promise<void> => {
      const bytes = Buffer.from(events.toSpliced(at, 0, before + filled(unit, filling) + after).join(''))
      script = async (res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        for (let from = 0; from < bytes.length && !res.destroyed; from += WRITTEN_AT_ONCE)
          if (!res.write(bytes.subarray(from, from + WRITTEN_AT_ONCE))) await drained(res)
        res.end()
      }
      await ask(path, protocol)
    }
    const what = `${path} on ${protocol}, event ${at}: ${JSON.stringify(unit)}`
    return streamCostOf(gateway, size, act, what)
  }

  for (const protocol of ['openai', 'anthropic'] as const) {
    /** Behind the first output. */
    const middle = protocol === 'openai' ? 2 : 4
    for (const path of [CHAT, MESSAGES, RESPONSES]) {
      it(`of tiny events: ${path} on ${protocol}`, async () => {
        const costs: Cost[] = []
        // Before the first output they are read alike on the way to every endpoint.
        const places = path === CHAT ? [0, middle] : [middle]
        for (const unit of TINY)
          for (const at of places) costs.push(await cost(path, protocol, { unit }, at, TINY_SIZE))
        judge(costs)
      })

      it(`of output in very many pieces: ${path} on ${protocol}`, async () => {
        const costs: Cost[] = []
        // An answer that stays as it is passes on unread, whatever the pieces are.
        const isTranslated = path !== (protocol === 'openai' ? CHAT : MESSAGES)
        for (const repeated of OUTPUT[protocol].slice(isTranslated ? 0 : PIECES.length - 1))
          costs.push(await cost(path, protocol, repeated, protocol === 'openai' ? 2 : 5))
        judge(costs)
      })
    }
  }
})
