import assert from 'node:assert/strict'
import { afterEach, it } from 'node:test'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { forward } from '../../../lib/middleware/forward/index.ts'
import { LineAccess, LineRegistry } from '../../../lib/middleware/route/index.ts'
import { type AppServer, eventually, serveApp } from '../../support/app-server.ts'
import { type ScriptedUpstream, startUpstream } from '../../support/scripted-upstream.ts'

let upstream: ScriptedUpstream
let server: AppServer | undefined
afterEach(async () => {
  await server?.close()
  await upstream.close()
})

it('a request that is passed on, or is for one line only, counts among the recent attempts of its line', async () => {
  upstream = await startUpstream((res, { path }) => void res.writeHead(Number(path.slice(-3))).end('{}'))
  const { catalog } = loadConfig({
    models: [{ id: 'm', kind: 'chat' }],
    lines: [
      { id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1`, models: { m: 'm' } },
    ],
  })
  const [line] = catalog.lines
  assert.ok(line)
  const lines = new LineRegistry()
  server = await serveApp((app) => {
    app.all('/v1/files/:id', forward({ catalog, rule: { lines: ['l'] }, lines }))
    app.use(errorEnvelope())
  })
  for (const status of [200, 404, 500]) await (await fetch(`${server.url}/v1/files/${status}`)).arrayBuffer()
  await eventually(() => lines.status(line).in_flight === 0, 'the end of what was passed on')
  const send = new LineAccess({ catalog, lines }).senderTo(line)
  for (const status of [200, 400, 429])
    await send({ method: 'GET', path: `/tasks/${status}` }, new AbortController().signal)
  // A request that nobody waits for any more says nothing about the line.
  await send({ method: 'GET', path: '/tasks/200' }, AbortSignal.abort())

  const { recent_attempts, recent_failures, error_share } = lines.figures(line)
  assert.deepEqual([recent_attempts, recent_failures, error_share], [6, 2, 0.333])
  await lines.close()
})
