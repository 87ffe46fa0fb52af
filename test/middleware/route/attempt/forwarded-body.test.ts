import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { cleaningUp } from '../../../support/clean-up.ts'
import {
  ANTHROPIC,
  answer,
  gatewayFor,
  type Mode,
  OPENAI,
  OPENAI_STREAM,
  pathOf,
  readExchange,
} from '../../../support/exchange.ts'
import { type ScriptedUpstream, startUpstream } from '../../../support/scripted-upstream.ts'

const M = '"messages":[{"role":"user","content":"hi"}]'
const USAGE = '"stream_options":{"include_usage":true}'

/** The body that the caller sends, and the body that the line gets for it, byte for byte. */
const ROWS: { what: string; mode?: Mode; sent: string; got: string; upstreamModel?: string }[] = [
  {
    what: 'unusual spacing',
    sent: ` {\n\t"model" :  "chat" ,\r\n ${M} , "temperature":\t1 } \n`,
    got: ` {\n\t"model" :  "up" ,\r\n ${M} , "temperature":\t1 } \n`,
  },
  {
    what: 'number formats and numbers no double holds',
    sent: `{"model":"chat",${M},"seed":9007199254740993,"temperature":1.00,"x":1E+2,"y":-0.0,"top_p":0.10}`,
    got: `{"model":"up",${M},"seed":9007199254740993,"temperature":1.00,"x":1E+2,"y":-0.0,"top_p":0.10}`,
  },
  {
    what: 'a line that has the same name for the model',
    sent: `{"model":"chat",${M}}`,
    got: `{"model":"chat",${M}}`,
    upstreamModel: 'chat',
  },
  {
    what: 'escaped keys',
    sent: `{"mod\\u0065l":"chat",${M},"provid\\u0065r":{"ignore":["x"]},"us\\u0065r":"a"}`,
    got: `{"mod\\u0065l":"up",${M},"us\\u0065r":"a"}`,
  },
  {
    what: 'unicode, raw and escaped',
    sent: '{"model":"chat","messages":[{"role":"user","content":"中文 😀 \\ud83d\\ude00 \\u00e9 \\/ \\"model\\":\\"chat\\""}]}',
    got: '{"model":"up","messages":[{"role":"user","content":"中文 😀 \\ud83d\\ude00 \\u00e9 \\/ \\"model\\":\\"chat\\""}]}',
  },
  {
    what: 'the same names further down',
    sent: `{"metadata":{"model":"chat","provider":{"a":1}},"model":"chat",${M},"tools":[]}`,
    got: `{"metadata":{"model":"chat","provider":{"a":1}},"model":"up",${M},"tools":[]}`,
  },
  {
    what: 'provider as the first member',
    sent: `{"provider":{"ignore":["x"]}, "model":"chat",${M}}`,
    got: `{"model":"up",${M}}`,
  },
  {
    what: 'provider in the middle',
    sent: `{"model":"chat","provider":{"ignore":["}]","\\""]} ,${M}}`,
    got: `{"model":"up",${M}}`,
  },
  {
    what: 'provider as the last member',
    sent: `{"model":"chat",${M}, "provider":{"ignore":["x"]} }`,
    got: `{"model":"up",${M} }`,
  },
  {
    what: 'a stream: usage is asked for',
    mode: OPENAI_STREAM,
    sent: `{"model":"chat",${M},"stream":true }`,
    got: `{"model":"up",${M},"stream":true,${USAGE} }`,
  },
  {
    what: 'a stream with options in the middle',
    mode: OPENAI_STREAM,
    sent: `{"model":"chat","stream_options": null ,${M},"stream":true,"n": 1}`,
    got: `{"model":"up","stream_options": {"include_usage":true} ,${M},"stream":true,"n": 1}`,
  },
  {
    what: 'a stream whose caller asked for usage',
    mode: OPENAI_STREAM,
    sent: `{"model":"chat","stream_options": { "include_usage" : true } ,${M},"stream":true}`,
    got: `{"model":"up","stream_options": { "include_usage" : true } ,${M},"stream":true}`,
  },
  {
    what: 'a stream with provider at the end',
    mode: OPENAI_STREAM,
    sent: `{"model":"chat",${M},"stream":true , "provider":{}}`,
    got: `{"model":"up",${M},"stream":true,${USAGE}}`,
  },
  {
    what: 'an Anthropic-style call',
    mode: ANTHROPIC,
    sent: `{"model":"chat","max_tokens": 10,"provider":{},${M}, "metadata":{"user_id":"u"}}`,
    got: `{"model":"up","max_tokens": 10,${M}, "metadata":{"user_id":"u"}}`,
  },
]

describe('the body that a line gets', () => {
  let upstream: ScriptedUpstream
  const cleanUp = cleaningUp()
  before(async () => {
    upstream = await startUpstream()
    cleanUp.after(() => upstream.close())
  })

  for (const { what, mode = OPENAI, sent, got, upstreamModel = 'up' } of ROWS) {
    it(`is the caller's but for model, stream_options and provider: ${what}`, async (t) => {
      upstream.script = (res) => answer(res, mode)
      const gateway = await gatewayFor(t, {
        lines: [{ url: upstream.url, protocol: mode.protocol, models: { chat: upstreamModel } }],
      })
      const { status, text } = await readExchange(await gateway.post(pathOf(mode), sent))
      assert.equal(status, 200, text)
      assert.equal(upstream.requests.at(-1)?.raw.toString(), got)
    })
  }
})
