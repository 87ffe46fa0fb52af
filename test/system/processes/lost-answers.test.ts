import assert from 'node:assert/strict'
import { before, describe, it, type TestContext } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { type RetryEvent, withRetries } from '../../../lib/client/index.ts'
import { type CuttingProxy, cuttingProxy, type Fate, inTurn } from '../../client/cutting-proxy.ts'
import { post } from '../../client/scripted-answers.ts'
import { keyedGateway } from '../../middleware/idempotency/keyed-gateway.ts'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { KEY } from '../../support/gateway.ts'
import { chat, type GatewayProcess } from '../../support/gateway-process.ts'
import {
  chatAnswer,
  chatEvents,
  messageAnswer,
  startUpstream,
  stream,
  type UpstreamScript,
} from '../../support/scripted-upstream.ts'
import { booksOf, type PaidGateways, paidGateways } from '../chaos/paid-gateways.ts'

const CONFIG = {
  accounts: [{ id: 'acme', balance: '1000' }],
  keys: [{ id: 'k', account: 'acme' }],
  price: { perRequest: '0.001' },
}

interface World {
  readonly paid: PaidGateways
  readonly proxy: CuttingProxy
  /** The charges of the tests before. */
  readonly earlier: ReadonlySet<string>
}

/** The upstream was asked once, and one charge was made. */
async function assertChargedOnce({ paid, earlier }: World): Promise<string> {
  assert.equal(paid.upstream.requests.length, 1, 'asked upstream')
  const { charged, violations } = await booksOf(paid.databaseUrl)
  assert.deepEqual(violations, [])
  const own = [...charged.keys()].filter((id) => !earlier.has(id))
  assert.equal(own.length, 1, 'one charge')
  return own.join()
}

const answer: UpstreamScript = (res, { json }) =>
  json.stream ? stream(res, chatEvents(['one ', 'two ', 'three'])) : chatAnswer(res, 'Hello')

const headers = { authorization: 'Bearer sk-k' }
const soon = { firstDelayMs: 20 }

for (const { name, url, skip } of BACKENDS) {
  describe(`an answer that is lost on its way from a gateway on ${name}`, { skip }, () => {
    const cleanUp = cleaningUp()
    let paid: PaidGateways
    let gateway: GatewayProcess
    before(async () => {
      paid = await paidGateways(cleanUp, await url(cleanUp), CONFIG, answer)
      gateway = await paid.start()
    })

    /** The gateway behind a connection that breaks. */
    async function brokenConnection(t: TestContext, ...fates: Fate[]): Promise<World> {
      paid.upstream.script = answer
      paid.upstream.requests.length = 0
      const { charged } = await booksOf(paid.databaseUrl)
      const proxy = await cuttingProxy(t, gateway.port)
      proxy.fate = inTurn(...fates)
      return { paid, proxy, earlier: new Set(charged.keys()) }
    }

    it('is fetched from the call log, and charged once', async (t) => {
      const world = await brokenConnection(t, 'answer_lost')
      const events: RetryEvent[] = []
      const send = withRetries(fetch, { ...soon, onRetry: (event) => events.push(event) })
      const response = await send(`${world.proxy.url}/v1/chat/completions`, post(chat('m'), headers))
      const body = (await response.json()) as { choices: { message: { content: string } }[] }
      assert.equal(body.choices[0]?.message.content, 'Hello')
      assert.equal(response.headers.get('idempotent-replayed'), 'true')
      assert.equal(response.headers.get('x-request-id'), await assertChargedOnce(world))
      assert.equal(events[0]?.status, null)
    })

    it('is fetched from the call log where it is a stream, event by event', async (t) => {
      const world = await brokenConnection(t, 'answer_lost')
      // The whole stream comes at once here, so that it ends before the gateway hears of the cut.
      world.paid.upstream.script = (res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' }).end(chatEvents(['one ', 'two']).join(''))
      }
      const openai = new OpenAI({
        baseURL: `${world.proxy.url}/v1`,
        apiKey: 'sk-k',
        maxRetries: 0,
        fetch: withRetries(fetch, soon),
      })
      const messages = [{ role: 'user' as const, content: 'Hello' }]
      const events = await openai.chat.completions.create({ model: 'm', messages, stream: true })
      let said = ''
      for await (const event of events) said += event.choices[0]?.delta.content ?? ''
      assert.equal(said, 'one two')
      await assertChargedOnce(world)
    })

    it('was never made, where the connection broke before the request was there: it runs once', async (t) => {
      const world = await brokenConnection(t, 'refused', 'refused', 'refused')
      const response = await withRetries(fetch, soon)(
        `${world.proxy.url}/v1/chat/completions`,
        post(chat('m'), headers),
      )
      assert.equal(response.status, 200)
      assert.equal(response.headers.get('idempotent-replayed'), null)
      await response.text()
      await assertChargedOnce(world)
    })

    it('in its middle is fetched from the call log, in the place of what was lost', async (t) => {
      const world = await brokenConnection(t, 'answer_cut')
      const openai = new OpenAI({
        baseURL: `${world.proxy.url}/v1`,
        apiKey: 'sk-k',
        maxRetries: 0,
        fetch: withRetries(fetch, soon),
      })
      const messages = [{ role: 'user' as const, content: 'Hello' }]
      const answer = await openai.chat.completions.create({ model: 'm', messages })
      assert.equal(answer.choices[0]?.message.content, 'Hello')
      assert.equal(answer._request_id, await assertChargedOnce(world))
    })

    it('is not fetched with another’s key: a request that is repeated by the caller itself has its answer too', async (t) => {
      const world = await brokenConnection(t)
      const call = post(chat('m'), { ...headers, 'idempotency-key': 'order 7' })
      const send = withRetries(fetch, soon)
      const target = `${world.proxy.url}/v1/chat/completions`
      const [first, second] = [await send(target, call), await send(target, call)]
      assert.equal(await second.text(), await first.text())
      assert.equal(second.headers.get('x-request-id'), first.headers.get('x-request-id'))
      await assertChargedOnce(world)
    })
  })
}

describe('the Anthropic-style protocol, which has no codes', () => {
  it('has its lost answer from the call log too', async (t) => {
    const upstream = await startUpstream((res) => messageAnswer(res, 'Hello'))
    t.after(() => upstream.close())
    const gateway = await keyedGateway(t, { lines: [upstream.url], line: { protocol: 'anthropic' } })
    const proxy = await cuttingProxy(t, Number(new URL(gateway.url).port))
    proxy.fate = inTurn('answer_lost')
    const anthropic = new Anthropic({
      baseURL: proxy.url,
      apiKey: KEY,
      maxRetries: 0,
      fetch: withRetries(fetch, soon),
    })
    const messages = [{ role: 'user' as const, content: 'Hello' }]
    const answer = await anthropic.messages.create({ model: 'chat', max_tokens: 50, messages })
    assert.equal(answer.content[0]?.type === 'text' && answer.content[0].text, 'Hello')
    assert.match(String(answer._request_id), /^req_/)
    assert.equal(upstream.requests.length, 1)
  })
})
