import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { rolldown } from 'rolldown'
import { Consumer, specifiers } from './consumer.ts'

/** Optional packages that nobody has installed here stay outside, as whoever bundles must say. */
const OPTIONAL = /^(?:@opentelemetry\/(?!api)|@keyv\/redis|ioredis|pg|ws)/

/** In one file, optional packages that are imported when needed are imported at once. */
const BUNDLED = specifiers.filter((specifier) => !/\/(?:redis|gateway)$/.test(specifier))

const PROGRAM = `import express from 'express'
import { rateLimit } from 'express-model-gateway/rate-limit'

const app = express()
app.use(rateLimit({ levels: [{ name: 'all', by: () => 'everybody', rpm: 1 }] }))
app.get('/', (_req, res) => void res.send('hello'))
app.use((error, _req, res, _next) => void res.status(error.status).send(error.code))
const server = app.listen(0, '127.0.0.1', async () => {
  for (let i = 0; i < 2; i++) {
    const response = await fetch(\`http://127.0.0.1:\${server.address().port}/\`)
    console.log(response.status, await response.text())
  }
  server.close()
})`

describe('an app that a bundler makes one file of', () => {
  let consumer: Consumer
  before(() => {
    consumer = new Consumer(['toolkit'], ['express'])
  })
  after(() => consumer?.remove())

  async function bundle(program: string): Promise<string> {
    consumer.write('main.js', program)
    const input = join(consumer.folder, 'main.js')
    const bundled = await rolldown({ input, cwd: consumer.folder, platform: 'node', external: OPTIONAL })
    const file = join(consumer.folder, 'bundle.mjs')
    await bundled.write({ file, format: 'esm', codeSplitting: false })
    return file
  }

  test('runs as it does without', async () => {
    assert.equal(consumer.node([await bundle(PROGRAM)]), '200 hello\n429 rate_limited\n')
  })

  for (const specifier of BUNDLED)
    test(`does nothing by itself when it imports ${specifier}`, async () => {
      const program = `import * as all from '${specifier}'\nif (Object.keys(all).length === 0) process.exitCode = 1`
      assert.equal(consumer.node([await bundle(program)]), '')
    })
})
