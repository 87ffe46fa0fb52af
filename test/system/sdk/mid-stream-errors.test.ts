import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { afterEach, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { cleaningUp } from '../../support/clean-up.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import {
  chatEvents,
  messageEvent,
  messageEvents,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../../support/scripted-upstream.ts'
import { anthropicOf, drain, openaiOf, rejection, SDKS, type SdkName, user } from './clients.ts'

const ask = { model: 'chat', max_tokens: 100, messages: user('hi') }
/** The events up to the third word, so that the finish reason never comes. */
const BEGINNING: Record<SdkName, string[]> = {
  openai: chatEvents(['one ', 'two ', 'three']).slice(0, 4),
  anthropic: messageEvents(['one ', 'two ', 'three']).slice(0, 6),
}
const ERROR_EVENT: Record<SdkName, string> = {
  openai: 'data: {"error":{"type":"server_error","code":"boom","message":"UPSTREAM-SECRET"}}\n\n',
  anthropic: messageEvent('error', { error: { type: 'overloaded_error', message: 'UPSTREAM-SECRET' } }),
}

interface Break {
  readonly how: string
  readonly code: 'upstream_error' | 'upstream_timeout'
  readonly breaks: (res: ServerResponse, sdk: SdkName) => void | Promise<void>
}

const BREAKS: readonly Break[] = [
  {
    how: 'resets the connection',
    code: 'upstream_error',
    // The bytes that were sent must have been read: a reset overtakes them.
    breaks: async (res) => {
      await sleep(30)
      res.socket?.resetAndDestroy()
    },
  },
  { how: 'ends without a finish reason', code: 'upstream_error', breaks: (res) => void res.end() },
  {
    how: 'sends an error event',
    code: 'upstream_error',
    breaks: (res, sdk) => void res.end(ERROR_EVENT[sdk]),
  },
  { how: 'goes silent', code: 'upstream_timeout', breaks: () => {} },
]

/** The SDK, and the protocol of the line. */
const PAIRS = SDKS.flatMap((sdk) => SDKS.map((line) => [sdk, line] as const))

describe('an upstream that breaks its stream off raises in the SDK', () => {
  let upstream: ScriptedUpstream
  const gateways = new Map<string, TestGateway>()
  const cleanUp = cleaningUp()
  before(async () => {
    upstream = await startUpstream()
    cleanUp.after(() => upstream.close())
    for (const protocol of SDKS) {
      const line = {
        url: upstream.url,
        protocol,
        timeouts: { idleMs: 1000 },
        circuit: { minimumCalls: 1000 },
      }
      // The second line must not be asked once output has gone out.
      const gateway = await startGateway({ lines: [line, line] })
      cleanUp.after(() => gateway.close())
      gateways.set(protocol, gateway)
    }
  })
  afterEach(() => {
    upstream.requests.length = 0
  })

  for (const [sdk, line] of PAIRS) {
    const pair = sdk === line ? sdk : `${sdk} on a line that speaks ${line}`
    for (const { how, code, breaks } of BREAKS) {
      const breakOff = async (res: ServerResponse): Promise<void> => {
        await stream(res, BEGINNING[line], { end: false })
        await breaks(res, line)
      }

      it(`${how}: the iteration throws behind what was sent (${pair})`, async () => {
        const gateway = gateways.get(line) as TestGateway
        upstream.script = breakOff
        const { text, error } = await iterate(sdk, gateway.url)
        assert.equal(text, 'one two three')
        const { requestId } = assertStreamError(sdk, error, code)
        assert.equal(upstream.requests.length, 1, 'an SDK with retries must not send the request again')
        const entry = await gateway.entry(requestId)
        assert.equal(entry.error_code, code)
        assert.equal(entry.outcome, 'interrupted')
        assert.equal(entry.status, 200)
      })

      it(`${how}: the helper rejects (${pair})`, async () => {
        const { url } = gateways.get(line) as TestGateway
        upstream.script = breakOff
        const error = await rejection(
          sdk === 'openai'
            ? openaiOf(url, { maxRetries: 2 }).chat.completions.stream(ask).finalChatCompletion()
            : anthropicOf(url, { maxRetries: 2 }).messages.stream(ask).finalMessage(),
        )
        assertStreamError(sdk, error, code)
        assert.equal(upstream.requests.length, 1)
      })
    }
  }
})

async function iterate(sdk: SdkName, url: string): Promise<{ text: string; error: unknown }> {
  if (sdk === 'openai') {
    const client = openaiOf(url, { maxRetries: 2 })
    const { items, error } = await drain(await client.chat.completions.create({ ...ask, stream: true }))
    return { text: items.map((chunk) => chunk.choices[0]?.delta.content ?? '').join(''), error }
  }
  const client = anthropicOf(url, { maxRetries: 2 })
  const { items, error } = await drain(await client.messages.create({ ...ask, stream: true }))
  const deltas = items.map((event) =>
    event.type === 'content_block_delta' && event.delta.type === 'text_delta' ? event.delta.text : '',
  )
  return { text: deltas.join(''), error }
}

function assertStreamError(sdk: SdkName, error: unknown, code: string): { requestId: string } {
  assert.ok(error instanceof Error)
  assert.doesNotMatch(error.message, /UPSTREAM-SECRET/)
  if (sdk === 'openai') {
    assert.ok(error instanceof OpenAI.APIError, String(error))
    assert.equal(error.status, undefined, 'the head had said 200')
    assert.equal(error.code, code)
    assert.equal(error.type, 'server_error')
    assert.match(error.requestID ?? '', /^req_/)
    return { requestId: error.requestID ?? '' }
  }
  assert.ok(error instanceof Anthropic.APIError, String(error))
  assert.equal(error.type, code === 'upstream_timeout' ? 'timeout_error' : 'api_error')
  assert.match(error.requestID ?? '', /^req_/)
  const body = error.error as { request_id: string }
  assert.equal(body.request_id, error.requestID)
  return { requestId: error.requestID ?? '' }
}
