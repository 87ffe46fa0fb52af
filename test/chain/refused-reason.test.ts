import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ENDPOINTS } from '../support/endpoints.ts'
import { gatewayFor, readExchange } from '../support/exchange.ts'
import { forwardGateway } from '../support/forward-gateway.ts'
import {
  answerJson,
  type ReceivedRequest,
  startUpstream,
  type UpstreamScript,
} from '../support/scripted-upstream.ts'
import { startVideoGateway, TASKS, videoUpstreamFor } from '../support/video-gateway.ts'
import { json } from '../support/video-upstream.ts'

const SECRET = 'the grey heron of lake Mjøsa'

/** Every string of a request, with a secret in front. */
function marked(body: string): string {
  return body.replace(/"(hi|Once upon a time|some words|a cat|a question|one)"/g, `"${SECRET} $1"`)
}

const VIDEOS = [
  { path: '/v1/videos', body: { model: 'video', prompt: SECRET } },
  { path: TASKS, body: { model: 'video', content: [{ type: 'text', text: SECRET }] } },
]

/** Refuses a request, and quotes it. */
const refuse: UpstreamScript = (res, { raw }: ReceivedRequest) =>
  answerJson(res, 400, {
    error: {
      type: 'invalid_request_error',
      code: 'unsupported_value',
      param: 'dimension_count',
      message: `Unsupported value of 'dimension_count': this deployment only takes strings. Request: ${raw}`,
    },
  })

describe('the reason of a refused request is logged without the prompt for', () => {
  for (const { path, kind, protocol, request } of ENDPOINTS) {
    it(path, async (t) => {
      const upstream = await startUpstream(refuse)
      t.after(() => upstream.close())
      const lines = [{ url: upstream.url, protocol, models: { model: 'upstream-model' } }]
      const gateway = await gatewayFor(t, { lines, config: { models: [{ id: 'model', kind }] } })
      const body = marked(request('model').body)
      assert.ok(body.includes(SECRET))
      const got = await readExchange(await gateway.post(path, body))
      assert.equal(got.status, 400, got.text)
      const [attempt] = (await gateway.entry(got.requestId)).routing?.attempts ?? []
      const { message, ...names } = attempt?.upstream_error ?? {}
      assert.deepEqual(names, {
        type: 'invalid_request_error',
        code: 'unsupported_value',
        param: 'dimension_count',
      })
      assert.match(
        message ?? '',
        /^Unsupported value of 'dimension_count': this deployment only takes strings\. Request/,
      )
      const told = JSON.stringify(attempt) + got.text
      for (const word of ['heron', 'grey', 'Mj']) assert.ok(!told.includes(word), told)
    })
  }

  it('a path that is passed on', async (t) => {
    const upstream = await startUpstream(refuse)
    t.after(() => upstream.close())
    const gateway = await forwardGateway(t, { lines: [upstream.url] })
    const got = await readExchange(
      await gateway.ask('/v1/files', { method: 'POST', body: JSON.stringify({ purpose: SECRET }) }),
    )
    const [attempt] = (await gateway.entry(got.requestId)).routing?.attempts ?? []
    const { message, ...names } = attempt?.upstream_error ?? {}
    assert.deepEqual(names, {
      type: 'invalid_request_error',
      code: 'unsupported_value',
      param: 'dimension_count',
    })
    assert.match(message ?? '', /^Unsupported value/)
    assert.doesNotMatch(JSON.stringify(attempt), /heron|grey|Mj/)
  })

  for (const { path, body } of VIDEOS) {
    it(path, async (t) => {
      const upstream = await videoUpstreamFor(t)
      upstream.script = (_, res) => {
        json(res, 400, {
          error: {
            code: 'InvalidParameter',
            message: `The parameter is invalid: ${SECRET}`,
            type: 'BadRequest',
          },
        })
        return true
      }
      const gateway = await startVideoGateway(t, { lines: [{ kind: 'ark', url: upstream.url }] })
      const refused = await gateway.send('POST', path, body)
      assert.equal(refused.status, 400)
      const [attempt] = (await gateway.entry(refused)).routing?.attempts ?? []
      assert.deepEqual(attempt?.upstream_error, {
        type: 'BadRequest',
        code: 'InvalidParameter',
        param: null,
        message: '… parameter … invalid …',
      })
    })
  }
})
