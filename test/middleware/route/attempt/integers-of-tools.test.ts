import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { cleaningUp } from '../../../support/clean-up.ts'
import { chatBody, messageBody, startGateway } from '../../../support/gateway.ts'
import { answerJson, chatAnswer, messageAnswer, startUpstream } from '../../../support/scripted-upstream.ts'

/** An id of 64 bits. A number would make 1234567890123456800 of it. */
const ID = '1234567890123456789'
const ARGUMENTS = `{"id":${ID}}`

describe('an id of 64 bits in the arguments of a tool', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream()
  cleanUp.after(() => upstream.close())
  const [openai, anthropic] = await Promise.all(
    (['openai', 'anthropic'] as const).map((protocol) =>
      startGateway({ lines: [{ url: upstream.url, protocol }] }),
    ),
  )
  assert.ok(openai && anthropic)
  cleanUp.after(() => openai.close())
  cleanUp.after(() => anthropic.close())
  beforeEach(() => {
    upstream.requests.length = 0
  })

  const toolUse = `{"type":"tool_use","id":"toolu_1","name":"f","input":${ARGUMENTS}}`
  const message = `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[${toolUse}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":3}}`
  const call = { id: 'toolu_1', type: 'function', function: { name: 'f', arguments: ARGUMENTS } }

  it('reaches the caller of a chat from an Anthropic-style line', async () => {
    upstream.script = (res) =>
      res.writeHead(200, { 'content-type': 'application/json' }).end(message) && undefined
    const text = await (await anthropic.post('/v1/chat/completions', chatBody())).text()
    assert.deepEqual(JSON.parse(text).choices[0].message.tool_calls, [call])
    const streamed = await (await anthropic.post('/v1/messages', messageBody({ stream: true }))).text()
    assert.ok(streamed.includes(JSON.stringify(ARGUMENTS)), streamed)
  })

  it('reaches the caller of a message from an OpenAI-style line', async () => {
    const message = { role: 'assistant', content: null, tool_calls: [call] }
    upstream.script = (res) =>
      answerJson(res, 200, { id: 'c', choices: [{ index: 0, message, finish_reason: 'tool_calls' }] })
    const text = await (await openai.post('/v1/messages', messageBody())).text()
    assert.ok(text.includes(`"input":${ARGUMENTS}`), text)
  })

  it('reaches the line from the history of a chat and of a message', async () => {
    const [ask] = chatBody().messages
    upstream.script = (res) => messageAnswer(res)
    const messages = [ask, { role: 'assistant', content: null, tool_calls: [call] }, ask]
    assert.equal((await anthropic.post('/v1/chat/completions', chatBody({ messages }))).status, 200)
    assert.ok(upstream.requests[0]?.raw.includes(`"input":${ARGUMENTS}`))
    upstream.script = (res) => chatAnswer(res)
    const turns = `[{"role":"user","content":"hi"},{"role":"assistant","content":[${toolUse}]},{"role":"user","content":"hi"}]`
    const body = `{"model":"chat","max_tokens":9,"messages":${turns}}`
    assert.equal((await openai.post('/v1/messages', body)).status, 200)
    assert.ok(upstream.requests[1]?.raw.includes(JSON.stringify(ARGUMENTS)))
  })
})
