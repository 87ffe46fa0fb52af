import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ChatStreamReader } from '../../../../lib/core/operations/chat/chat-stream.ts'
import { StreamRelay } from '../../../../lib/middleware/route/relay/stream-relay.ts'
import { cpuMsOf } from '../../../support/cpu-time.ts'
import { chatChunk, chatEvents } from '../../../support/scripted-upstream.ts'

const MB = 1024 * 1024
const PIECE = 16 * 1024
const RUNS = 3

const LARGE = chatChunk({ content: 'x'.repeat(4 * MB) })
const LARGE_IN_CRLF = LARGE.replaceAll('\n', '\r\n')
const MANY = Array.from({ length: 8000 }, (_, i) => chatChunk({ content: 'x' }, null, { created: i })).join(
  '',
)

/** Milliseconds of the thread's CPU time that relaying takes; everything must have arrived. */
function cpuOf(stream: Buffer, pieceBytes: number): number {
  let written = 0
  const relay = new StreamRelay(new ChatStreamReader({ answers: 1, relayUsage: true }), '')
  let ends: ReturnType<StreamRelay['push']>
  const ms = cpuMsOf(() => {
    for (let at = 0; at < stream.length; at += pieceBytes) {
      ends = relay.push(stream.subarray(at, at + pieceBytes)) ?? ends
      for (const bytes of relay.take()) written += bytes.length
    }
  })
  const end = ends as ReturnType<StreamRelay['push']>
  assert.equal(end?.kind === 'complete' && written + end.tail.length, stream.length)
  return ms
}

/**
 * The least that relaying takes in one piece and in pieces of 16 KB. They take turns, so that other work on the machine slows
 * both down.
 */
function leastOf(stream: Buffer): { whole: number; pieces: number } {
  let [whole, pieces] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let run = 0; run < RUNS; run++) {
    whole = Math.min(whole, cpuOf(stream, stream.length))
    pieces = Math.min(pieces, cpuOf(stream, PIECE))
  }
  return { whole, pieces }
}

describe('the cost of relaying', () => {
  const ends = chatEvents([]).slice(1).join('')
  const measured = new Map<string, ReturnType<typeof leastOf>>()
  /** The measurement of a stream, which both of its tests share. */
  const costOf = (large: string) => {
    const known = measured.get(large) ?? leastOf(Buffer.from(large + ends))
    measured.set(large, known)
    return known
  }
  for (const [name, large] of [
    ['one event of 4 MB', LARGE],
    ['one whose lines end in CR LF', LARGE_IN_CRLF],
    ['8,000 events that differ in more than their text', MANY],
  ] as const) {
    it(`${name}: in pieces of 16 KB at most three times of what it is in one`, () => {
      const { whole, pieces } = costOf(large)
      assert.ok(pieces <= 3 * whole, `${pieces} ms against ${whole} ms`)
    })
  }

  it('8,000 events in one chunk cost no more than in pieces', () => {
    const { whole, pieces } = costOf(MANY)
    assert.ok(whole <= 3 * pieces, `${whole} ms against ${pieces} ms`)
  })
})
