import assert from 'node:assert/strict'
import { readFrame } from '../../../lib/core/protocols/index.ts'

// biome-ignore lint/suspicious/noExplicitAny: events are read freely here
type Json = any

/** An Anthropic-style stream put together, after a look at its order: what a strict client would do. */
export function messageOf(text: string): Json {
  const events = framesOf(text).map(({ event, data }) => {
    const json = JSON.parse(data)
    assert.equal(json.type, event)
    return json
  })
  assert.deepEqual(
    [events[0]?.type, events.at(-2)?.type, events.at(-1)?.type],
    ['message_start', 'message_delta', 'message_stop'],
  )
  const { message } = events[0]
  let open: { block: Json; json: string } | undefined
  for (const event of events.slice(1, -2)) {
    if (event.type === 'ping') continue
    if (event.type === 'content_block_start') {
      assert.equal(open, undefined, 'one block at a time')
      assert.equal(event.index, message.content.length)
      open = { block: event.content_block, json: '' }
      message.content.push(open.block)
      continue
    }
    assert.ok(open, `${event.type} outside of a block`)
    assert.equal(event.index, message.content.length - 1)
    if (event.type === 'content_block_stop') {
      if (open.block.type === 'tool_use' && open.json !== '') open.block.input = JSON.parse(open.json)
      open = undefined
      continue
    }
    assert.equal(event.type, 'content_block_delta')
    addDelta(open, event.delta)
  }
  assert.equal(open, undefined, 'the last block is closed')
  const { delta, usage } = events.at(-2)
  return { ...message, ...delta, usage }
}

function addDelta(open: { block: Json; json: string }, delta: Json): void {
  const { block } = open
  switch (delta.type) {
    case 'text_delta':
      assert.equal(block.type, 'text')
      block.text += delta.text
      return
    case 'thinking_delta':
      assert.equal(block.type, 'thinking')
      block.thinking += delta.thinking
      return
    case 'signature_delta':
      assert.equal(block.type, 'thinking')
      block.signature = delta.signature
      return
    case 'citations_delta':
      assert.equal(block.type, 'text')
      block.citations = [...(block.citations ?? []), delta.citation]
      return
    default:
      assert.equal(delta.type, 'input_json_delta')
      assert.equal(block.type, 'tool_use')
      open.json += delta.partial_json
  }
}

/** An OpenAI-style stream put together, after a look at its order; members of deltas that are lists are joined. */
export function completionOf(text: string): Json {
  const datas = framesOf(text).map(({ data }) => data)
  assert.equal(datas.indexOf('[DONE]'), datas.length - 1, '[DONE] stands once, at the end')
  const chunks = datas.slice(0, -1).map((data) => JSON.parse(data))
  const message: Json = {}
  let finishReason: Json = null
  let usage: Json
  assert.equal(chunks[0]?.choices[0]?.delta.role, 'assistant')
  for (const chunk of chunks) {
    assert.deepEqual(
      [chunk.id, chunk.object, chunk.created, chunk.model],
      [chunks[0].id, 'chat.completion.chunk', chunks[0].created, chunks[0].model],
    )
    if (chunk.usage) usage = chunk.usage
    for (const { index, delta, finish_reason: reason } of chunk.choices) {
      assert.equal(index, 0)
      assert.equal(finishReason, null, 'nothing behind the finish reason')
      addChatDelta(message, delta)
      finishReason = reason
    }
  }
  assert.notEqual(finishReason, null)
  return { id: chunks[0].id, model: chunks[0].model, message, finish_reason: finishReason, usage }
}

function addChatDelta(message: Json, delta: Json): void {
  for (const member of ['content', 'reasoning_content', 'refusal'])
    if (typeof delta[member] === 'string') message[member] = (message[member] ?? '') + delta[member]
  for (const member of ['reasoning_details', 'annotations'])
    if (delta[member]) message[member] = [...(message[member] ?? []), ...delta[member]]
  for (const { index, ...call } of delta.tool_calls ?? []) {
    message.tool_calls ??= []
    const known = message.tool_calls[index]
    if (known) known.function.arguments += call.function.arguments
    else {
      assert.equal(index, message.tool_calls.length)
      message.tool_calls.push(call)
    }
  }
}

/** The events of a stream, without its comments and without `[DONE]`; each is named by its type, if it has a name. */
export function eventsOf(text: string): Json[] {
  return framesOf(text)
    .filter(({ data }) => data !== '[DONE]')
    .map(({ event, data }) => {
      const json = JSON.parse(data)
      if (event !== undefined) assert.equal(json.type, event)
      return json
    })
}

/** The frames of a stream that are no comments. */
function framesOf(text: string): { event: string | undefined; data: string }[] {
  assert.ok(text.endsWith('\n\n'))
  return text
    .slice(0, -2)
    .split('\n\n')
    .map(readFrame)
    .filter(({ data }) => data !== '')
}
