import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { chat, GATEWAY_COMMAND, post, startProgram } from '../../support/gateway-process.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
/** Packages that a config, a setting or a path of its own needs. */
const RARELY_NEEDED = [
  '@aws-sdk/client-s3',
  '@aws-sdk/credential-provider-node',
  '@fastify/busboy',
  '@keyv/redis',
  '@opentelemetry/exporter-metrics-otlp-http',
  '@opentelemetry/exporter-trace-otlp-http',
  '@opentelemetry/sdk-trace',
  '@smithy/eventstream-codec',
  '@smithy/signature-v4',
  'google-auth-library',
  'http-proxy-middleware',
  'ioredis',
  'js-yaml',
  'jsonc-parser',
  'openid-client',
  'pg',
]
/** Prints the packages that the process has loaded when it ends. */
const REPORT = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module'
  import { isMainThread } from 'node:worker_threads'
  const packages = new Set()
  registerHooks({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context)
      const [, name] = /.*\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(resolved.url) ?? []
      if (name) packages.add(name)
      return resolved
    },
  })
  if (isMainThread) process.once('exit', () => process._rawDebug(JSON.stringify([...packages])))
`)}`

test('a start of the demo and its first call load no package that only some configs and paths need', async () => {
  const gateway = await startProgram(GATEWAY_COMMAND, ROOT, { NODE_OPTIONS: `--import ${REPORT}` })
  assert.equal((await post(gateway.url, chat())).status, 200)
  gateway.kill('SIGTERM')
  const { stderr } = await gateway.exited

  const loaded: readonly string[] = JSON.parse(stderr.split('\n').find((line) => line.startsWith('[')) ?? '')
  assert.ok(loaded.includes('undici'))
  assert.deepEqual(
    RARELY_NEEDED.filter((name) => loaded.includes(name)),
    [],
  )
})
