import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { ENDPOINTS, type Endpoint, embeddingAnswer, imageAnswer } from '../../support/endpoints.ts'
import { gatewayFor, readExchange } from '../../support/exchange.ts'
import {
  answerJson,
  type ScriptedUpstream,
  startUpstream,
  type UpstreamScript,
} from '../../support/scripted-upstream.ts'

/** A gateway over upstreams with these scripts, in their order, and the upstreams. */
async function over(t: TestContext, { protocol, kind }: Endpoint, scripts: readonly UpstreamScript[]) {
  const upstreams: ScriptedUpstream[] = []
  for (const script of scripts) {
    const upstream = await startUpstream(script)
    t.after(() => upstream.close())
    upstreams.push(upstream)
  }
  const lines = upstreams.map(({ url }) => ({ url, protocol, models: { model: 'upstream-model' } }))
  const gateway = await gatewayFor(t, { lines, config: { models: [{ id: 'model', kind }] } })
  return { gateway, upstreams }
}

const MALFORMED: readonly [does: string, script: UpstreamScript][] = [
  ['is no answer of the endpoint', (res) => answerJson(res, 200, { object: 'something else' })],
  ['is a list', (res) => answerJson(res, 200, [])],
  ['is null', (res) => answerJson(res, 200, null)],
  ['has null for its list', (res) => answerJson(res, 200, { data: null, results: null, choices: null })],
  [
    'breaks off',
    (res) => {
      res.writeHead(200, { 'content-type': 'application/json' }).end('{"data":[{"b64_json":"AAAA')
    },
  ],
]

for (const endpoint of ENDPOINTS) {
  const { path, answer, answerEmpty, request } = endpoint
  const send = (
    gateway: { url: string; post(path: string, body: unknown): Promise<Response> },
    body = request('model').body,
  ) => gateway.post(path, body).then(readExchange)

  describe(`${path} over its lines`, () => {
    it("forwards the caller's bytes under the line's name of the model, without the provider constraint", async (t) => {
      const { gateway, upstreams } = await over(t, endpoint, [answer])
      const inner = request('model').body.slice(1, -1).replace('"model":"model"', ' "model" : "model"')
      const got = await send(
        gateway,
        `{${inner}, "further":  [1,{"x":"\\u00e9"}],"provider":{"only":["line-0"]} }`,
      )
      assert.equal(got.status, 200, got.text)
      const [sent] = upstreams[0]?.requests ?? []
      assert.equal(sent?.path, path)
      const expected = inner.replace(': "model"', ': "upstream-model"')
      assert.equal(sent?.raw.toString(), `{${expected}, "further":  [1,{"x":"\\u00e9"}] }`)
    })

    it("hands the upstream's answer on as it came", async (t) => {
      const bodies: string[] = []
      const { gateway } = await over(t, endpoint, [
        (res, received, index) => {
          const end = res.end.bind(res)
          res.end = (body: unknown) => {
            bodies.push(String(body))
            return end(body)
          }
          return answer(res, received, index)
        },
      ])
      const got = await send(gateway)
      const [text = ''] = bodies
      assert.equal(got.text, text)
      assert.equal(got.headers.get('content-type'), 'application/json')
      assert.equal(got.headers.get('content-length'), String(Buffer.byteLength(text)))
    })

    if (answerEmpty) {
      it('tries the next line where one answers without output, and uses nothing of it', async (t) => {
        const { gateway } = await over(t, endpoint, [answerEmpty, answer])
        const got = await send(gateway)
        assert.equal(got.status, 200, got.text)
        const { routing } = await gateway.entry(got.requestId)
        assert.deepEqual(
          routing?.attempts.map(({ outcome }) => outcome),
          ['empty_completion', 'completed'],
        )
      })

      it('is empty_completion where none has output', async (t) => {
        const { gateway } = await over(t, endpoint, [answerEmpty, answerEmpty])
        const got = await send(gateway)
        assert.equal(got.status, 502)
        const { error_code, usage } = await gateway.entry(got.requestId)
        assert.deepEqual([error_code, usage], ['empty_completion', null])
      })
    }

    for (const [does, script] of MALFORMED) {
      it(`tries the next line where the answer of one ${does}`, async (t) => {
        const { gateway } = await over(t, endpoint, [script, answer])
        const got = await send(gateway)
        assert.equal(got.status, 200, got.text)
        const { routing } = await gateway.entry(got.requestId)
        assert.deepEqual(
          routing?.attempts.map(({ outcome }) => outcome),
          ['upstream_error', 'completed'],
        )
      })
    }
  })
}

describe('an answer without its output', () => {
  const rows: [path: string, what: string, body: object][] = [
    ['/v1/embeddings', 'one of two vectors', embeddingAnswer([[1, 2], []])],
    ['/v1/embeddings', 'an empty base64 vector', embeddingAnswer([''])],
    ['/v1/images/generations', 'an image without bytes', imageAnswer([{ b64_json: '' }])],
    [
      '/v1/images/generations',
      'an image that is null',
      imageAnswer([{ url: null }, { revised_prompt: 'x' }]),
    ],
  ]
  for (const [path, what, body] of rows) {
    it(`is empty_completion: ${what}`, async (t) => {
      const endpoint = ENDPOINTS.find((row) => row.path === path)
      assert.ok(endpoint)
      const { gateway } = await over(t, endpoint, [(res) => answerJson(res, 200, body)])
      const got = await gateway.post(path, endpoint.request('model').body).then(readExchange)
      assert.equal(got.errorCode, 'empty_completion')
    })
  }
})
