import assert from 'node:assert/strict'
import { it } from 'node:test'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { type Operation, videos } from '../../../lib/core/operations/index.ts'
import { MAX_BYTES_AT_ONCE, takeTurn } from '../../../lib/core/turns/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { readRequest } from '../../../lib/middleware/read-request/index.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'
import { refusalOf } from './refusal.ts'

const { catalog } = loadConfig({
  models: [{ id: 'video', kind: 'video' }],
  lines: [
    { id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://127.0.0.1:9/v1', models: { video: 'm' } },
  ],
})
const ASKED = { model: 'video', prompt: 'waves' }

it('a form without a byte is refused as one, and not read as JSON', async (t) => {
  const app = await serveApp((app) => {
    app.post('/v1/videos', readRequest({ catalog, operation: videos }), () => assert.fail('read'))
    app.use(errorEnvelope())
  })
  t.after(() => app.close())
  const headers = { 'content-type': 'multipart/form-data; boundary=b' }
  const { code, message } = await refusalOf(await fetch(`${app.url}/v1/videos`, { method: 'POST', headers }))
  assert.deepEqual([code, message], ['invalid_request', 'The request has no body; a form is needed.'])
})

it('a form, which may be large, is looked at in a turn of its own, and a small JSON body at once', async (t) => {
  /** Whether others that want to work on something large had to wait while a text was estimated. */
  const waited: boolean[] = []
  const estimateTokens = (): number => {
    let isBusy = true
    takeTurn('another', () => {
      isBusy = false
    })
    waited.push(isBusy)
    return 1
  }
  const app = await serveApp((app) => {
    app.use(beginCall({ logger: recordingLogger() }))
    app.post(
      '/v1/videos',
      readRequest({ catalog, operation: videos, estimateTokens }),
      (_req, res) => void res.end('read'),
    )
    app.use(errorEnvelope({ logger: recordingLogger() }))
  })
  t.after(() => app.close())
  const form = new FormData()
  for (const [name, value] of Object.entries(ASKED)) form.append(name, value)
  const headers = { 'content-type': 'application/json' }
  for (const [isForm, init] of [
    [false, { body: JSON.stringify(ASKED), headers }],
    [true, { body: form }],
  ] as const) {
    waited.length = 0
    const response = await fetch(`${app.url}/v1/videos`, { method: 'POST', ...init })
    assert.equal(await response.text(), 'read')
    assert.ok(waited.length > 0)
    assert.deepEqual(new Set(waited), new Set([isForm]))
  }
})

it('others go on between the steps of a large body: its check, its texts, their estimates, its facts', async (t) => {
  const steps: string[] = []
  const note = (step: string): void => {
    if (steps.at(-1) !== step) steps.push(step)
  }
  let isOver = false
  const goOn = (): void => {
    note('others')
    if (!isOver) takeTurn('another', goOn)
  }
  t.after(() => {
    isOver = true
  })
  const operation: Operation = {
    ...videos,
    facts: (...given) => {
      note('facts')
      return videos.facts(...given)
    },
  }
  const noted = {
    operation,
    catalog: () => {
      note('check')
      return catalog
    },
    estimateTokens: () => {
      note('estimate')
      return 1
    },
  }
  const app = await serveApp((app) => {
    app.post('/v1/videos', readRequest(noted), (_req, res) => {
      note('read')
      res.end()
    })
    app.use(errorEnvelope())
  })
  t.after(() => app.close())
  goOn()
  const body = JSON.stringify({ ...ASKED, filler: 'x'.repeat(MAX_BYTES_AT_ONCE) })
  const headers = { 'content-type': 'application/json' }
  assert.equal((await fetch(`${app.url}/v1/videos`, { method: 'POST', headers, body })).status, 200)
  const turns = ['check', 'facts', 'estimate', 'facts,check', 'read']
  assert.equal(`${steps}`, `others,${turns.join(',others,')}`)
})
