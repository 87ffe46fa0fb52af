import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { ERROR_CODES, type ErrorCode } from '../../../lib/core/errors/index.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { anthropicOf, openaiOf, recordingClient, rejection, SDKS } from './clients.ts'
import { SITUATIONS, type SituationGateway, startSituations } from './situations.ts'

/** Both SDKs have their error classes on the client. */
type ErrorClass = Extract<keyof typeof OpenAI & keyof typeof Anthropic, `${string}Error`>

/** The class each SDK raises, and its `type`, which the spec leaves open. */
interface Expected {
  readonly name: ErrorClass
  readonly openai: string
  readonly anthropic: string
}

const BY_STATUS: Readonly<Record<number, Expected>> = {
  400: same('BadRequestError', 'invalid_request_error'),
  401: same('AuthenticationError', 'authentication_error'),
  403: same('PermissionDeniedError', 'permission_error'),
  404: same('NotFoundError', 'not_found_error'),
  413: { name: 'APIError', openai: 'invalid_request_error', anthropic: 'request_too_large' },
  429: same('RateLimitError', 'rate_limit_error'),
  500: { name: 'InternalServerError', openai: 'server_error', anthropic: 'api_error' },
  502: { name: 'InternalServerError', openai: 'server_error', anthropic: 'api_error' },
  503: { name: 'InternalServerError', openai: 'server_error', anthropic: 'overloaded_error' },
  504: { name: 'InternalServerError', openai: 'server_error', anthropic: 'timeout_error' },
}

function same(name: Expected['name'], type: string): Expected {
  return { name, openai: type, anthropic: type }
}

/** This code names figures, in the words of each protocol. */
const CONTEXT_WORDS = {
  openai: /maximum context length is \d+ tokens, but you requested \d+ tokens/,
  anthropic: /^prompt is too long: \d+ tokens > \d+ maximum$/,
}

let all: SituationGateway
const cleanUp = cleaningUp()
before(async () => {
  all = await startSituations()
  cleanUp.after(() => all.close())
  // Opens the circuits of "broken".
  for (const sdk of SDKS) await rejection(recordingClient(sdk, all.gateway.url).ask('broken'))
})

describe('each code raises the right class of each SDK', () => {
  for (const sdk of SDKS) {
    for (const stream of [false, true]) {
      for (const { code, model = 'chat', client, ask, param } of SITUATIONS) {
        it(`${code} (${sdk}, ${stream ? 'streamed' : 'plain'})`, async () => {
          const recording = recordingClient(sdk, all.gateway.url, client)
          const error = await rejection(recording.ask(model, { stream, ...ask?.(sdk) }))
          assertRaised(sdk, error, code, param)
          assert.equal(recording.answers.length, 1)
          const entry = await all.gateway.entry(requestIdOf(error))
          assert.equal(entry.error_code, code)
          assert.equal(entry.status, ERROR_CODES[code].status)
          if (code === 'upstream_rate_limited') await restIsOver(sdk)
        })
      }
    }
  }

  it('not_found (an unknown path)', async () => {
    assertRaised('openai', await rejection(openaiOf(all.gateway.url).post('/nowhere', {})), 'not_found')
    assertRaised(
      'anthropic',
      await rejection(anthropicOf(all.gateway.url).post('/v1/messages/nowhere', {})),
      'not_found',
    )
  })

  it('model_not_found (retrieving a model)', async () => {
    const error = await rejection(openaiOf(all.gateway.url).models.retrieve('nowhere'))
    assertRaised('openai', error, 'model_not_found')
    assert.ok(
      (await rejection(anthropicOf(all.gateway.url).models.retrieve('nowhere'))) instanceof
        Anthropic.NotFoundError,
    )
  })
})

function assertRaised(sdk: 'openai' | 'anthropic', error: unknown, code: ErrorCode, param?: string): void {
  const { status, message } = ERROR_CODES[code]
  const expected = BY_STATUS[status]
  assert.ok(expected)
  assert.match(requestIdOf(error), /^req_/)
  if (sdk === 'openai') {
    assert.ok(error instanceof OpenAI.APIError && error instanceof OpenAI[expected.name], String(error))
    assert.equal(error.status, status)
    assert.equal(error.code, code)
    assert.equal(error.type, expected.openai)
    assert.equal(error.param, param)
  } else {
    assert.ok(error instanceof Anthropic.APIError && error instanceof Anthropic[expected.name], String(error))
    assert.equal(error.status, status)
    assert.equal(error.type, expected.anthropic)
    const body = error.error as { request_id: string; error: { code?: string } }
    assert.equal(body.request_id, error.requestID)
    assert.equal(body.error.code, undefined)
  }
  const told = (error instanceof Anthropic.APIError ? error.apiMessage : error.message) ?? ''
  assert.doesNotMatch(told, /told by the upstream|upstream-key|127\.0\.0\.1/)
  if (code === 'context_too_long') assert.match(told, CONTEXT_WORDS[sdk])
  else if (param === undefined) assert.ok(told.includes(message), told)
}

function requestIdOf(error: unknown): string {
  assert.ok(error instanceof OpenAI.APIError || error instanceof Anthropic.APIError, String(error))
  return error.requestID ?? ''
}

/** The line rests after its 429; the next case must find it awake. */
async function restIsOver(protocol: string): Promise<void> {
  const line = all.gateway.config.catalog.lines.find(({ id }) => id === `${protocol}-limited`)
  assert.ok(line)
  await new Promise((resolve) => setTimeout(resolve, all.gateway.lines.status(line).rest_ms + 1))
}
