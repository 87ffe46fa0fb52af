import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ChatStreamReader } from '../../../../lib/core/operations/chat/chat-stream.ts'
import { StreamRelay } from '../../../../lib/middleware/route/relay/stream-relay.ts'

const MOST = 16 * 1024 * 1024

/** The relay of a chat's stream, and what it has written. */
function relay() {
  const written: string[] = []
  const stream = new StreamRelay(new ChatStreamReader({ answers: 1, relayUsage: false }), 'end\n\n')
  const push = (text: string | Buffer) => {
    const end = stream.push(Buffer.from(text))
    written.push(...stream.take().map(String))
    return end
  }
  return { stream, written, push }
}

const detailOf = (end: ReturnType<StreamRelay['push']>) =>
  end?.kind === 'failed' ? end.failure.detail : end?.kind
const event = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`

describe('the part of a stream before anything can be passed on', () => {
  it('is held up to 16 MiB of one event', () => {
    const { push } = relay()
    assert.equal(push(Buffer.alloc(MOST, 'x')), undefined)
    assert.equal(detailOf(push('x')), 'an event of the stream does not end')
  })

  it('is held up to 16 MiB of events without output', () => {
    const { push, written } = relay()
    const empty = event({ role: 'assistant', content: '' })
    const filled = `${empty.slice(0, -2)}${' '.repeat(1024 * 1024 - empty.length)}\n\n`
    for (let i = 0; i < 16; i++) assert.equal(push(filled), undefined, String(i))
    assert.equal(detailOf(push(empty)), 'the stream sends much and no output')
    assert.deepEqual(written, [])
  })

  it('goes out with the first output, in its order', () => {
    const { stream, push, written } = relay()
    const empty = event({ role: 'assistant', content: '' })
    assert.equal(push(empty + empty.slice(0, 9)), undefined)
    assert.deepEqual([written, stream.committed, stream.whole], [[], false, false])
    push(`${empty.slice(9)}${event({ content: 'a' })}`)
    assert.equal(written.join(''), empty + empty + event({ content: 'a' }))
    assert.deepEqual([stream.committed, stream.whole], [true, false])
    push(event({}, 'stop'))
    const end = stream.finish()
    assert.equal(end.kind === 'complete' && String(end.tail), `${event({}, 'stop')}end\n\n`, 'and once')
  })
})

describe('very many small events', () => {
  const comment = `:${'x'.repeat(10)}\n\n`

  it('before the first output go out in few writes', () => {
    const { push, written } = relay()
    assert.equal(push(comment.repeat(100_000)), undefined)
    push(event({ content: 'a' }))
    assert.equal(written.join(''), comment.repeat(100_000) + event({ content: 'a' }))
    assert.ok(written.length < 50, `${written.length} writes`)
  })

  it('of less than 8 bytes on average are a fault of the line, before its output and behind it', () => {
    assert.equal(relay().push(':\n\n'.repeat(4096)), undefined)
    assert.equal(detailOf(relay().push(':\n\n'.repeat(4097))), 'the stream consists of empty events')
    const flowing = relay()
    flowing.push(event({ content: 'a' }))
    assert.equal(detailOf(flowing.push('\n\n'.repeat(5000))), 'the stream consists of empty events')
    assert.equal(relay().push(':xxxxx\n\n'.repeat(100_000)), undefined)
  })

  it('between the pieces of a text end no stream, however long the text is', () => {
    for (const blank of ['\n\n', ':\n\n']) {
      const { stream, push, written } = relay()
      for (let i = 0; i < 10_000; i++)
        assert.equal(push(event({ content: 'a' }) + blank), undefined, String(i))
      push(event({}, 'stop'))
      assert.equal(detailOf(stream.finish()), 'complete')
      assert.equal(written.join('').split('"content"').length, 10_001)
    }
  })
})

describe('a stream that is over', () => {
  it('is whole once its finish reason has come, and ends as its protocol wants', () => {
    const { stream, push, written } = relay()
    push(event({ content: 'a' }) + event({}, 'stop'))
    assert.equal(stream.whole, true)
    const end = stream.finish()
    assert.ok(end.kind === 'complete')
    assert.equal(String(end.tail), `${event({}, 'stop')}end\n\n`)
    assert.equal(written.join(''), event({ content: 'a' }))
  })

  it('may lack the blank line behind its last event', () => {
    const { stream, push } = relay()
    push(event({ content: 'a' }) + event({}, 'stop').trimEnd())
    const end = stream.finish()
    assert.ok(end.kind === 'complete')
    assert.match(String(end.tail), /"stop".*\n\nend\n\n$/)
  })

  it('has broken off without a finish reason, or before it began', () => {
    const flowing = relay()
    flowing.push(event({ content: 'a' }))
    assert.equal(detailOf(flowing.stream.finish()), 'the stream ended without a finish reason')
    assert.equal(detailOf(relay().stream.finish()), 'the stream ended before it began')
    const blank = relay()
    blank.push('\n\n \n')
    assert.equal(detailOf(blank.stream.finish()), 'the stream ended before it began')
    const odd = relay()
    assert.equal(detailOf(odd.push('data: {\n\n')), 'an event of the stream is not valid JSON')
  })
})
