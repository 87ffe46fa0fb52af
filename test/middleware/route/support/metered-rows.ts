import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { estimateTokens } from '../../../../lib/core/operations/metering/token-estimate.ts'
import { cleaningUp } from '../../../support/clean-up.ts'
import { exchange, gatewayFor, type Mode, modeName } from '../../../support/exchange.ts'
import {
  chatChunk,
  messageEvent,
  startUpstream,
  stream,
  type UpstreamScript,
} from '../../../support/scripted-upstream.ts'

/** The text of the upstream's answer in every row. */
export const TEXT = 'The quick brown fox jumps over the lazy dog.'
export const TOKENS = estimateTokens(TEXT)

/** One answer, and the usage that the call log has of it. */
export interface MeteredRow {
  name: string
  mode: Mode
  script: UpstreamScript
  /** Input, cached, written to the cache, output; null stands for the estimate of the input. */
  tokens: [number | null, number, number, number]
  source: 'measured' | 'estimated'
  /** Further members of the usage. */
  parts?: object
  /** Further members of the request. */
  extra?: Record<string, unknown>
}

export const usageChunk = (usage: unknown): string => `data: ${JSON.stringify({ choices: [], usage })}\n\n`

/** A chat stream that says the text, with its usage in a chunk behind the finish reason. */
export const chatStream =
  (usage?: object): UpstreamScript =>
  (res) =>
    stream(res, [
      chatChunk({ content: TEXT }),
      chatChunk({}, 'stop'),
      ...(usage ? [usageChunk(usage)] : []),
      'data: [DONE]\n\n',
    ])

/** A message stream that says the text. */
export const messageStream =
  (atStart?: object | null, atEnd?: object | null): UpstreamScript =>
  (res) =>
    stream(res, [
      messageEvent('message_start', { message: { type: 'message', usage: atStart } }),
      messageEvent('content_block_delta', { index: 0, delta: { type: 'text_delta', text: TEXT } }),
      messageEvent('message_delta', { delta: { stop_reason: 'end_turn' }, usage: atEnd }),
      messageEvent('message_stop'),
    ])

/** A test of each row: the call is answered, and its log entry has this usage. */
export function describeUsage(title: string, rows: readonly MeteredRow[]): void {
  describe(title, async () => {
    const cleanUp = cleaningUp()
    const upstream = await startUpstream()
    cleanUp.after(() => upstream.close())
    for (const { name, mode, script, tokens, source, parts, extra } of rows) {
      it(`is ${name} (${modeName(mode)})`, async (t) => {
        upstream.script = script
        const gateway = await gatewayFor(t, { lines: [{ url: upstream.url, protocol: mode.protocol }] })
        const got = await exchange(gateway, mode, extra)
        assert.equal(got.status, 200)
        const { usage, request, outcome } = await gateway.entry(got.requestId)
        assert.equal(outcome, 'completed')
        assert.ok(request && request.estimated_input_tokens > 0)
        const [input, cached, written, output] = tokens
        assert.deepEqual(usage, {
          input_tokens: input ?? request.estimated_input_tokens,
          cached_input_tokens: cached,
          cache_write_tokens: written,
          output_tokens: output,
          source,
          ...parts,
        })
      })
    }
  })
}
