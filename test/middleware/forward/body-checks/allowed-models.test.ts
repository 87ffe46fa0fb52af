import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it, type TestContext } from 'node:test'
import { WebSocket } from 'ws'
import { modelCheck } from '../../../../lib/middleware/forward/body-checks/model-names.ts'
import { UpstreamResources } from '../../../../lib/middleware/references/index.ts'
import { envelopeOf } from '../../../support/answer-bodies.ts'
import { rawClient } from '../../../support/app-server.ts'
import { bytesOf } from '../../../support/byte-upstream.ts'
import { forwardGateway } from '../../../support/forward-gateway.ts'
import { KEY } from '../../../support/gateway.ts'
import { webSocketUpstream } from '../../../support/websocket-upstream.ts'

const JSON_TYPE = 'application/json'
const FORM_TYPE = 'multipart/form-data; boundary=b'
const URL_TYPE = 'application/x-www-form-urlencoded'

/** A form with one field, and a file behind it. */
function form(name: string, value: string, more = '', end = '\r\n--b--\r\n'): string {
  const file = '--b\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\nbytes\r\n'
  return `${file}--b\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n${value}${end}`
}

/** Each way in which a request can name a model. */
const WAYS: readonly [what: string, type: string, body: (model: string) => string, query?: string][] = [
  ['a member', JSON_TYPE, (model) => JSON.stringify({ model, input: 'hi' })],
  ['a member, the body of no type', '', (model) => JSON.stringify({ model })],
  ['a list', JSON_TYPE, (model) => JSON.stringify({ model: 'voice', models: ['voice', model] })],
  ['an object', JSON_TYPE, (model) => JSON.stringify({ model: { id: model, speed: 'fast' } })],
  ['a session', JSON_TYPE, (model) => JSON.stringify({ session: { model } })],
  [
    'what writes it down',
    JSON_TYPE,
    (model) => JSON.stringify({ session: { audio: { input: { transcription: { model } } } } }),
  ],
  [
    'a batch',
    JSON_TYPE,
    (model) => JSON.stringify({ requests: [{ params: { model: 'voice' } }, { params: { model } }] }),
  ],
  ['another form of the name', JSON_TYPE, (baseModel) => JSON.stringify({ baseModel })],
  ['an array', JSON_TYPE, (model) => JSON.stringify([{ model }])],
  ['a field', FORM_TYPE, (model) => form('model', model)],
  ['a field of a list', FORM_TYPE, (model) => form('models[]', model)],
  ['a field of an object', FORM_TYPE, (model) => form('session[model]', model)],
  ['a field that says it is a file', FORM_TYPE, (model) => form('model', model, '; filename="m"')],
  ['an encoded form', URL_TYPE, (model) => `input=hi&model=${model}`],
  ['an encoded form with semicolons', URL_TYPE, (model) => `input=hi;model=${model}`],
  ['the query', JSON_TYPE, () => '{}', 'model='],
  ['the query, as Azure has it', JSON_TYPE, () => '{}', 'deployment='],
  ['the query, with semicolons', JSON_TYPE, () => '{}', 'a=b;model='],
]

async function restricted(
  t: TestContext,
  rule: object = { lines: ['line-0'] },
  key: Record<string, unknown> = { allowModels: ['voice'] },
) {
  const whole: string[] = []
  const upstream = await webSocketUpstream(t)
  upstream.server.removeAllListeners('request')
  upstream.server.on('request', (req, res) => {
    void bytesOf(req).then(
      (body) => {
        whole.push(String(body))
        const isFile = req.url?.endsWith('/content')
        res.setHeader('content-type', JSON_TYPE)
        res.end(isFile ? content : JSON.stringify({ id: `file_${whole.length}` }))
      },
      () => {},
    )
  })
  let content = ''
  const resources = new UpstreamResources()
  t.after(() => resources.close())
  const rules = ['/v1/audio/speech', '/v1/files', '/v1/batches', '/v1/realtime'].map((path) => ({
    path,
    ...rule,
  }))
  const gateway = await forwardGateway(t, {
    lines: [{ url: upstream.url, models: { voice: 'up-voice' } }],
    rules: rules as never,
    key,
    resources,
  })
  const send = (type: string, body: string, query = '', path = '/v1/audio/speech') =>
    gateway.ask(`${path}?${query}`, {
      method: 'POST',
      body: Buffer.from(body),
      headers: type === '' ? {} : { 'content-type': type },
    })
  return {
    gateway,
    whole,
    send,
    write: (text: string) => {
      content = text
    },
  }
}

describe('a key without `allowModels`', () => {
  it('sends what nobody searches for models', async (t) => {
    const { whole, send } = await restricted(t, undefined, {})
    for (const [type, body] of [
      [JSON_TYPE, '{"model":"big"}'],
      [FORM_TYPE, form('model', 'solid '.repeat(20_000), '; filename="a.stl"')],
    ] as const) {
      assert.equal((await send(type, body)).status, 200, body.slice(0, 99))
      assert.equal(whole.pop(), body)
    }
  })
})

describe('a key with `allowModels`', () => {
  for (const rule of [{ lines: ['line-0'] }, { model: 'voice' }]) {
    it(`reaches no other model by a rule with ${JSON.stringify(rule)}`, async (t) => {
      const { whole, send } = await restricted(t, rule)
      for (const [what, type, body, query] of WAYS) {
        const ask = (model: string) => send(type, body(model), query && query + model)
        for (const model of ['big', 'up-big', 'voice-2', 'Voice']) {
          const refused = await ask(model)
          assert.equal(refused.status, 403, `${what}: ${model}`)
          assert.equal((await envelopeOf(refused)).error.code, 'model_not_allowed')
        }
        assert.deepEqual(whole, [], what)
        for (const model of ['voice', 'up-voice']) {
          assert.equal((await ask(model)).status, 200, `${what}: ${model}`)
          assert.equal(whole.pop(), body(model), what)
        }
      }
    })
  }

  it('may send what names no model, and what looks like one in data of its own', async (t) => {
    const { send } = await restricted(t)
    for (const [type, body] of [
      [JSON_TYPE, '{}'],
      [JSON_TYPE, '{"metadata":{"model":"big"},"model":null}'],
      [JSON_TYPE, '{"model":"","models":[""]}'],
      [JSON_TYPE, '{"data_source":{"source":{"content":[{"item":{"model":"big"}}]}}}'],
      [FORM_TYPE, form('metadata[model]', 'big')],
      [FORM_TYPE, form('model', '')],
      [URL_TYPE, 'metadata[model]=big&model='],
      [JSON_TYPE, '{"tools":[{"name":"f","parameters":{"properties":{"model":{"type":"string"}}}}]}'],
      [FORM_TYPE, form('prompt', '{big} [model] "big"')],
      [FORM_TYPE, form('prompt', `[wide] ${'model=big '.repeat(20_000)}`)],
      [FORM_TYPE, form('file', '{"model":"big"}', '; filename="a.json"')],
    ] as const)
      assert.equal((await send(type, body)).status, 200, body.slice(0, 99))
    for (const query of ['metadata[model]=big', 'metadata%5Bmodel%5D=big', 'model='])
      assert.equal((await send(JSON_TYPE, '{}', query)).status, 200, query)
  })

  it('costs little for a field of any name', async (t) => {
    const { send } = await restricted(t)
    // An expression that is tried from each of its characters takes many minutes.
    for (const piece of [']', '.', '[', '[1', '[]', 'model', 'model.', 'a]', '1'])
      for (const end of ['x', 'model', '']) {
        const name = `${piece.repeat(200_000 / piece.length)}${end}`
        const { status } = await send(URL_TYPE, `${name}=voice`)
        assert.equal(status, 400, `${piece} … ${end}`)
      }
  })

  it('cannot hide a model in a form that upstreams read in other ways', async (t) => {
    const { gateway, whole, send } = await restricted(t)
    const bodies = [
      form('model', 'voice--bX: big'),
      form('model', 'up-voice', '', ''),
      form('model', 'big', '', ''),
      form('model', 'v'.repeat(70_000)),
    ]
    for (const body of bodies) {
      const refused = await send(FORM_TYPE, body)
      assert.ok([400, 403].includes(refused.status), body.slice(0, 200))
      await refused.arrayBuffer()
      // Without a length, only the last chunk ends it.
      const client = rawClient(
        gateway.port,
        `POST /v1/audio/speech HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${KEY}\r\ncontent-type: ${FORM_TYPE}\r\ntransfer-encoding: chunked\r\n\r\n${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`,
      )
      assert.match(await client.end(), /^HTTP\/1\.1 40[03]/, body.slice(0, 200))
    }
    assert.deepEqual(whole, [])
  })

  it('is asked about each name in whatever pieces a form comes', async (t) => {
    const { gateway, whole } = await restricted(t)
    for (const [model, status] of [
      ['voice', 200],
      ['big', 403],
    ] as const) {
      const pieces = form('model', model).match(/[\s\S]{1,3}/g) ?? []
      const body = new ReadableStream({
        async pull(controller) {
          const piece = pieces.shift()
          if (piece === undefined) return controller.close()
          controller.enqueue(Buffer.from(piece))
          await new Promise((resolve) => setTimeout(resolve, 1))
        },
      })
      const init = { method: 'POST', body, duplex: 'half', headers: { 'content-type': FORM_TYPE } } as const
      assert.equal((await gateway.ask('/v1/audio/speech', init)).status, status)
    }
    assert.deepEqual(whole, [form('model', 'voice')])
  })

  it('runs no file whose lines name another model', async (t) => {
    const { send, write } = await restricted(t)
    const file = (await (await send(FORM_TYPE, form('purpose', 'batch'), '', '/v1/files')).json()) as {
      id: string
    }
    const run = () => send(JSON_TYPE, JSON.stringify({ input_file_id: file.id }), '', '/v1/batches')
    const line = (model: string) => JSON.stringify({ url: '/v1/chat/completions', body: { model } })
    write(`${line('voice')}\n${line('up-voice')}`)
    assert.equal((await run()).status, 200)
    write(`${line('voice')}\n${line('big')}`)
    assert.equal((await run()).status, 403)
  })

  it('costs no more for many names, on a line with many models', () => {
    const models = new Map(Array.from({ length: 50 }, (_, i) => [`m${i}`, `up-${i}`]))
    let reads = 0
    const read = () => {
      reads++
      return models
    }
    const candidates = Array.from({ length: 100 }, () => ({
      line: Object.defineProperty({}, 'models', { get: read }),
    }))
    let asked = 0
    const principal = { mayUseModel: () => ++asked > 0 }
    const check = modelCheck({ principal } as never, candidates as never)
    for (let i = 0; i < 1000; i++) check?.('up-1')
    assert.deepEqual([reads, asked], [100, 50], 'each line is read once, and each of its names checked once')
  })

  it('opens no WebSocket to another model', async (t) => {
    const { gateway } = await restricted(t)
    const open = async (model: string): Promise<number> => {
      const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/realtime?model=${model}`, {
        headers: { authorization: `Bearer ${KEY}` },
      })
      const refused = once(socket, 'unexpected-response').then(([, response]) => response.statusCode)
      socket.on('error', () => {})
      const status = await Promise.race([once(socket, 'open').then(() => 101), refused])
      socket.terminate()
      return status
    }
    assert.deepEqual([await open('voice'), await open('up-voice'), await open('big')], [101, 101, 403])
  })
})
