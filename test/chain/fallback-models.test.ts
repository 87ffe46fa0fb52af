import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { beforeEach, describe, it } from 'node:test'
import type { CallLogEntry } from '../../lib/core/call/index.ts'
import { envelopeOf, jsonOf } from '../support/answer-bodies.ts'
import { assembledGateway } from '../support/assembled-gateway.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { chatBody, messageBody } from '../support/gateway.ts'
import {
  answerJson,
  chatAnswer,
  chatChunk,
  chatEvents,
  messageAnswer,
  type ReceivedRequest,
  startUpstream,
  stream,
} from '../support/scripted-upstream.ts'
import { until, untilAsync } from '../support/until.ts'

const CHAT = '/v1/chat/completions'
const ADMIN = 'admin-token-of-the-test'

type Answer = (res: ServerResponse, request: ReceivedRequest) => void | Promise<void>

const price = (amount: string) => ({ inputPerMillion: amount, outputPerMillion: amount })
const chat = { kind: 'chat', maxOutputTokens: 1000 }

/** Never rests and never opens, so that no test depends on the one before. */
const CALM = { circuit: { minimumCalls: 1000 } }

describe('fallback models', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream((res, request) => answers.get(request.json.model)?.(res, request))
  cleanUp.after(() => upstream.close())
  /** What the upstream does for each of its models. */
  const answers = new Map<string, Answer>()

  const line = (id: string, more: object = {}, protocol = 'openai') => ({
    id: `line-${id}`,
    provider: 'scripted',
    protocol,
    baseUrl: `${upstream.url}/v1`,
    models: { [id]: `up-${id}` },
    endpoints: [protocol === 'anthropic' ? 'messages' : 'chat/completions'],
    ...CALM,
    ...more,
  })
  const gateway = await assembledGateway(
    cleanUp,
    {
      accounts: [
        { id: 'acme', balance: '100' },
        { id: 'poor', balance: '0.008' },
        { id: 'limited', limits: { rpm: 2 } },
      ],
      keys: [
        { id: 'key_acme', account: 'acme', secret: 'sk-test-1' },
        { id: 'key_large', account: 'acme', secret: 'sk-large', allowModels: ['large'] },
        { id: 'key_poor', account: 'poor', secret: 'sk-poor' },
        { id: 'key_limited', account: 'limited', secret: 'sk-limited' },
      ],
      models: [
        { id: 'large', ...chat, price: price('5'), fallbacks: ['small', 'dear'] },
        { id: 'small', ...chat, price: price('1') },
        { id: 'dear', ...chat, price: price('100') },
        { id: 'plain', ...chat, features: [], fallbacks: ['small'] },
        { id: 'narrow', ...chat, contextWindow: 20, fallbacks: ['small'] },
        { id: 'alone', ...chat, price: price('5') },
        { id: 'claude', ...chat },
        { id: 'slow', ...chat, fallbacks: ['hasty', 'patient'] },
        { id: 'hasty', ...chat },
        { id: 'patient', ...chat },
        { id: 'tired', ...chat, fallbacks: ['small'] },
        { id: 'vectors', kind: 'embedding' },
      ],
      lines: [
        ...['large', 'small', 'dear', 'plain', 'narrow', 'alone', 'patient', 'tired'].map((id) => line(id)),
        line('claude', {}, 'anthropic'),
        line('slow', { timeouts: { totalMs: 300 } }),
        line('hasty', { timeouts: { totalMs: 200 } }),
        { ...line('vectors'), endpoints: ['embeddings'] },
      ],
    },
    { adminToken: ADMIN },
  )

  beforeEach(() => {
    answers.clear()
    upstream.requests.length = 0
  })

  const unavailable: Answer = (res) => answerJson(res, 503, { error: { message: 'overloaded' } })
  const refused =
    (error: object): Answer =>
    (res) =>
      answerJson(res, 400, { error })
  const says =
    (text: string): Answer =>
    (res) =>
      chatAnswer(res, text)
  const answersAs = (rows: Record<string, Answer>): void => {
    for (const [model, answer] of Object.entries(rows)) answers.set(`up-${model}`, answer)
  }
  const asked = (): string[] => upstream.requests.map(({ json }) => json.model)
  const post = (body: object, secret = 'sk-test-1', path = CHAT): Promise<Response> =>
    gateway.send(path, body, { headers: { authorization: `Bearer ${secret}` } })
  const tried = ({ routing }: CallLogEntry) => routing?.attempts.map(({ line, model }) => [line, model])

  describe('of the config', () => {
    it('serve a call whose own model has no line that can, at their own price', async () => {
      answersAs({ large: unavailable, small: says('from small') })
      const response = await post(chatBody({ model: 'large' }))
      assert.equal(response.status, 200)
      assert.match(await response.text(), /from small/)
      assert.deepEqual(asked(), ['up-large', 'up-small'])
      const entry = await gateway.entryOf(response)
      assert.equal(entry.model, 'small')
      assert.deepEqual(tried(entry), [
        ['line-large', 'large'],
        ['line-small', 'small'],
      ])
      // 10 tokens at 1 per million.
      assert.equal(entry.billing?.charged, '0.00001')
      // 1,000 tokens of output, and some of input, of the dearest model that could have served.
      assert.ok(Number(entry.billing?.reserved) > 0.1, entry.billing?.reserved ?? '')
    })

    it('are not asked, nor named in the trace of a model without any, while a line serves the call', async () => {
      answersAs({ large: says('from large'), alone: says('from alone') })
      const entry = await gateway.entryOf(await post(chatBody({ model: 'large' })))
      assert.deepEqual(asked(), ['up-large'])
      assert.deepEqual([entry.model, entry.billing?.charged], ['large', '0.00005'])
      assert.deepEqual(tried(await gateway.entryOf(await post(chatBody({ model: 'alone' })))), [
        ['line-alone', undefined],
      ])
    })

    it('serve streams that have not begun', async () => {
      answersAs({ large: unavailable, small: (res) => stream(res, chatEvents(['from ', 'small'])) })
      const response = await post(chatBody({ model: 'large', stream: true }))
      assert.match(await response.text(), /from .*small.*\[DONE\]/s)
      const entry = await gateway.entryOf(response)
      assert.deepEqual(
        [entry.model, entry.outcome, entry.billing?.charged],
        ['small', 'completed', '0.000009'],
      )
    })

    it('do not continue a stream that has begun', async () => {
      let breakOff = (): void => {}
      answersAs({
        large: (res) => {
          breakOff = () => res.destroy()
          return stream(res, [chatChunk({ role: 'assistant', content: 'Once' })], { end: false })
        },
        small: says('from small'),
      })
      const response = await post(chatBody({ model: 'large', stream: true }))
      breakOff()
      await response.text().catch(() => {})
      assert.deepEqual(asked(), ['up-large'])
      const entry = await gateway.entryOf(response)
      assert.deepEqual([entry.model, entry.outcome], ['large', 'interrupted'])
    })

    it('serve messages and responses in the protocol of the caller', async () => {
      answersAs({ large: unavailable, small: says('from small') })
      for (const [path, body] of [
        ['/v1/messages', messageBody({ model: 'large' })],
        ['/v1/responses', { model: 'large', input: 'hi' }],
      ] as const) {
        const response = await post(body, undefined, path)
        assert.equal(response.status, 200)
        assert.match(await response.text(), /from small/)
        assert.equal((await gateway.entryOf(response)).model, 'small')
      }
    })

    it('never serve a key that may not use them', async () => {
      answersAs({ large: unavailable, small: says('from small') })
      const response = await post(chatBody({ model: 'large' }), 'sk-large')
      assert.deepEqual([response.status, (await refusalOf(response)).code], [503, 'upstream_overloaded'])
      assert.deepEqual(asked(), ['up-large'])
      const entry = await gateway.entryOf(response)
      assert.ok(Number(entry.billing?.reserved) < 0.01, 'they are not held for')
    })

    it('do not serve a caller who wants its first choice or none', async () => {
      answersAs({ large: unavailable, small: says('from small') })
      const response = await post(chatBody({ model: 'large', provider: { allow_fallbacks: false } }))
      assert.equal(response.status, 503)
      assert.deepEqual(asked(), ['up-large'])
    })

    it('serve what their model lacks a feature or a window for', async () => {
      answersAs({ small: says('from small') })
      const tools = [{ type: 'function', function: { name: 'f' } }]
      const long = [{ role: 'user', content: ' the'.repeat(100) }]
      for (const [body, reason] of [
        [chatBody({ model: 'plain', tools }), 'feature'],
        [chatBody({ model: 'narrow', messages: long }), 'context_window'],
      ] as const) {
        const response = await post(body)
        assert.equal(response.status, 200)
        const entry = await gateway.entryOf(response)
        assert.deepEqual(
          entry.routing?.eliminated.map(({ line, model, reason }) => [line, model, reason]),
          [[`line-${body.model}`, body.model, reason]],
        )
        assert.deepEqual(tried(entry), [['line-small', 'small']])
      }
    })

    it('serve calls while the lines of their model rest', async () => {
      const tired: Answer = (res) => answerJson(res, 429, { error: {} }, { 'retry-after': '50' })
      answersAs({ tired, small: says('from small') })
      assert.equal((await post(chatBody({ model: 'tired' }))).status, 200)
      const response = await post(chatBody({ model: 'tired' }))
      assert.equal(response.status, 200)
      assert.deepEqual(asked(), ['up-tired', 'up-small', 'up-small'])
      const { routing } = await gateway.entryOf(response)
      assert.deepEqual(
        routing?.eliminated.map(({ line, model, reason }) => [line, model, reason]),
        [['line-tired', 'tired', 'resting']],
      )
      answersAs({ small: refused({ message: 'bad', param: 'temperature' }) })
      const refusal = await post(chatBody({ model: 'tired', temperature: 1 }))
      assert.deepEqual([refusal.status, (await refusalOf(refusal)).code], [429, 'upstream_rate_limited'])
      assert.ok(Number(refusal.headers.get('retry-after')) > 1)
    })

    it('are held for: a call whose dearest model the balance does not cover is refused', async () => {
      answersAs({ large: says('from large'), alone: says('from alone') })
      assert.equal((await post(chatBody({ model: 'alone' }), 'sk-poor')).status, 200)
      const response = await post(chatBody({ model: 'large' }), 'sk-poor')
      assert.deepEqual([response.status, (await refusalOf(response)).code], [402, 'insufficient_balance'])
      assert.deepEqual(asked(), ['up-alone'])
    })

    it('count once against the limits', async () => {
      answersAs({ large: unavailable, small: unavailable, dear: says('from dear') })
      const response = await post(chatBody({ model: 'large' }), 'sk-limited')
      assert.equal(response.status, 200)
      assert.equal(response.headers.get('x-ratelimit-remaining-requests'), '1')
    })
  })

  describe('that a request names in "models"', () => {
    it('serve it in their order, and no line gets the list', async () => {
      answersAs({ alone: unavailable, claude: (res) => messageAnswer(res, 'from claude') })
      const body = chatBody({ model: 'alone', models: ['alone', 'claude', 'small'] })
      const response = await post(body)
      assert.match(await response.text(), /from claude/)
      assert.deepEqual(asked(), ['up-alone', 'up-claude'])
      assert.equal(
        upstream.requests.some(({ json }) => 'models' in json),
        false,
      )
    })

    it('need no "model" beside them', async () => {
      answersAs({ alone: unavailable, small: says('from small') })
      for (const [path, body] of [
        [CHAT, { messages: chatBody().messages }],
        ['/v1/responses', { input: 'hi' }],
      ] as const) {
        const response = await post({ models: ['alone', 'small'], ...body }, undefined, path)
        assert.match(await response.text(), /from small/)
      }
    })

    it('take the place of those of the config', async () => {
      answersAs({ large: unavailable, alone: unavailable, small: says('from small') })
      const response = await post(chatBody({ model: 'large', models: ['large', 'alone'] }))
      assert.deepEqual([response.status, asked()], [503, ['up-large', 'up-alone']])
    })

    it('must exist, be of the kind, and be open to the key', async () => {
      for (const [models, param] of [
        [['small', 'nope'], 'models[1]'],
        [['small', 'vectors'], 'models[1]'],
        [['small', 7], 'models[1]'],
        ['small', 'models'],
        [Array(11).fill('small'), 'models'],
      ] as const) {
        const response = await post(chatBody({ model: 'large', models }))
        const refusal = await refusalOf(response)
        assert.deepEqual([response.status, refusal.code, refusal.param], [400, 'invalid_request', param])
      }
      const response = await post(chatBody({ model: 'large', models: ['large', 'small'] }), 'sk-large')
      const refusal = await refusalOf(response)
      assert.deepEqual([response.status, refusal.code], [403, 'model_not_allowed'])
      assert.match(refusal.message, /models\[1\]/)
      assert.deepEqual(asked(), [])
    })
  })

  describe('do not hide why a call is refused', () => {
    it('that a line finds at fault: no other model is asked', async () => {
      for (const [error, code] of [
        [{ message: 'bad parameter', param: 'temperature' }, 'invalid_request'],
        [{ message: 'flagged', code: 'content_filter' }, 'content_filtered'],
      ] as const) {
        answersAs({ large: refused(error), small: says('from small') })
        const response = await post(chatBody({ model: 'large', temperature: 1 }))
        assert.deepEqual([response.status, (await refusalOf(response)).code], [400, code])
        assert.equal((await gateway.entryOf(response)).model, 'large')
      }
      assert.deepEqual(asked(), ['up-large', 'up-large'])
    })

    it('that no model serves: the log names the first', async () => {
      answersAs({ large: unavailable, small: unavailable, dear: unavailable })
      const response = await post(chatBody({ model: 'large' }))
      assert.deepEqual([response.status, (await refusalOf(response)).code], [503, 'upstream_overloaded'])
      const entry = await gateway.entryOf(response)
      assert.deepEqual([entry.model, entry.billing?.charged], ['large', null])
      assert.equal(entry.routing?.attempts.length, 3)
    })

    it('that models fail in different ways', async () => {
      answersAs({ alone: unavailable, small: (res) => answerJson(res, 500, {}) })
      const response = await post(chatBody({ model: 'alone', models: ['small'] }))
      assert.equal((await refusalOf(response)).code, 'all_candidates_failed')
    })

    it('that may be served later, though a fallback model finds fault with the request', async () => {
      answersAs({ alone: unavailable, small: refused({ message: 'bad', param: 'temperature' }) })
      const response = await post(chatBody({ model: 'alone', models: ['small'], temperature: 1 }))
      assert.deepEqual([response.status, (await refusalOf(response)).code], [503, 'upstream_overloaded'])
    })
  })

  describe('share the deadline of the call', () => {
    it('which is that of the line that waits longest', async () => {
      const late: Answer = (res) => void setTimeout(() => chatAnswer(res, 'from hasty'), 150)
      answersAs({ slow: () => {}, hasty: late, patient: says('from patient') })
      const response = await post(chatBody({ model: 'slow', models: ['slow', 'hasty'] }))
      assert.deepEqual([response.status, (await refusalOf(response)).code], [504, 'upstream_timeout'])
      const served = await post(chatBody({ model: 'slow', models: ['slow', 'patient'] }))
      assert.match(await served.text(), /from patient/)
    })
  })

  it('a caller that leaves during a fallback pays that model for its input, and nothing stays held', async () => {
    answersAs({ large: unavailable, small: () => {} })
    const leaving = new AbortController()
    const sent = gateway
      .send(CHAT, chatBody({ model: 'large', user: 'leaver' }), { signal: leaving.signal })
      .catch(() => {})
    await until(() => asked().length === 2, 'the fallback was asked')
    leaving.abort()
    await sent
    let entry: CallLogEntry | undefined
    await untilAsync(async () => {
      const { data } = await jsonOf<{ data: CallLogEntry[] }>(await gateway.send('/v1/calls?user=leaver'))
      entry = data[0]
      return entry !== undefined
    }, 'the call is logged')
    assert.deepEqual(
      [entry?.model, entry?.outcome, entry?.routing?.attempts.length],
      ['small', 'interrupted', 2],
    )
    assert.deepEqual(entry?.billing?.items, [
      { unit: 'input', quantity: entry?.usage?.input_tokens, price: '1' },
    ])
  })

  it('leave nothing held, and the ledger consistent', async () => {
    answersAs({ alone: unavailable, small: says('from small') })
    // The balance covers one such call at a time.
    for (let i = 0; i < 4; i++) {
      const response = await post(chatBody({ model: 'alone', models: ['small'] }), 'sk-poor')
      assert.equal(response.status, 200)
      await response.arrayBuffer()
    }
    const headers = { authorization: `Bearer ${ADMIN}` }
    const checked = await fetch(`${gateway.url}/admin/ledger/check`, { headers })
    assert.deepEqual((await jsonOf<{ violations: unknown[] }>(checked)).violations, [])
  })
})

async function refusalOf(response: Response) {
  return (await envelopeOf(response)).error
}
