import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { chatEvents, messageAnswer, stream } from '../../support/scripted-upstream.ts'
import { suiteGateway } from '../../support/suite-gateway.ts'

describe("the bytes that go upstream are the caller's, except where they must differ", async () => {
  const { upstream, gateway } = await suiteGateway((url) => ({
    lines: [
      { url, models: { chat: 'upstream "chat"', same: 'same' } },
      { url, protocol: 'anthropic', models: { message: 'upstream-message' } },
    ],
    config: {
      models: [
        { id: 'chat', kind: 'chat' },
        { id: 'same', kind: 'chat' },
        { id: 'message', kind: 'chat' },
      ],
    },
  }))
  beforeEach(() => {
    upstream.script = (res, { json, path }) => {
      if (json.stream === true) return stream(res, chatEvents(['Hi']))
      messageAnswer(res, 'Hi', { choices: [{ index: 0, message: { content: 'Hi' }, finish_reason: 'stop' }] })
      assert.ok(path)
    }
  })

  async function forwarded(path: string, body: string): Promise<string> {
    const response = await gateway.post(path, body)
    assert.equal(response.status, 200, await response.text())
    return upstream.requests.at(-1)!.raw.toString()
  }
  const chat = (body: string) => forwarded('/v1/chat/completions', body)

  const MESSAGES =
    '"messages" : [ { "role":"user","content":"h\\u0069 \\/ \u{1f600} \\ud83d" , "x" : 1.0e2 } ]'

  it('a body that needs no change goes out byte for byte', async () => {
    const body = ` {\t"model":"same",\r\n ${MESSAGES}, "unknown":{"a":[1,2.50,-0,1E+5]} ,"n":1 }\n`
    assert.equal(await chat(body), body)
  })

  it("the model becomes the upstream's name of it; white space, escapes and unknown members stay", async () => {
    const body = `{ "a":1, "model" : "ch\\u0061t" ,${MESSAGES} }`
    assert.equal(await chat(body), `{ "a":1, "model" : "upstream \\"chat\\"" ,${MESSAGES} }`)
  })

  it('the provider constraint is taken out, wherever it stands', async () => {
    assert.equal(await chat(`{"provider":{},"model":"same",${MESSAGES}}`), `{"model":"same",${MESSAGES}}`)
    assert.equal(
      await chat(`{"model":"same", "provider":{"only":["line-0"]} ,${MESSAGES}}`),
      `{"model":"same", ${MESSAGES}}`,
    )
    assert.equal(
      await chat(`{"model":"same",${MESSAGES} , "provider":null }`),
      `{"model":"same",${MESSAGES} }`,
    )
  })

  it('a stream is asked for its usage; other stream options stay as they were written', async () => {
    const head = `{"model":"same","stream":true,${MESSAGES}`
    assert.equal(await chat(`${head}}`), `${head},"stream_options":{"include_usage":true}}`)
    assert.equal(
      await chat(`${head},"stream_options":null}`),
      `${head},"stream_options":{"include_usage":true}}`,
    )
    assert.equal(
      await chat(`${head},"stream_options":{ "b":1.0, "include_usage" : false }}`),
      `${head},"stream_options":{ "b":1.0, "include_usage" : true }}`,
    )
    const asked = `${head},"stream_options":{ "include_usage":true }}`
    assert.equal(await chat(asked), asked)
    const plain = `{"model":"same","stream":false,${MESSAGES}}`
    assert.equal(await chat(plain), plain)
  })

  it('an Anthropic-style message keeps everything but the model and the constraint', async () => {
    const head = '{"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}],'
    const body = `${head} "provider":{}, "model": "message","max_tokens":5 ,${MESSAGES.replace('\\ud83d', '')}}`
    assert.equal(
      await forwarded('/v1/messages', body),
      body.replace('"provider":{}, ', '').replace('"message"', '"upstream-message"'),
    )
  })
})
