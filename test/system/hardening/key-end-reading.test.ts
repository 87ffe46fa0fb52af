import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hashSecret } from '../../../lib/core/catalog/index.ts'
import { memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'
import type { MemoryKeyDirectory } from '../../../lib/middleware/authenticate/memory-key-directory.ts'
import { UpstreamResources } from '../../../lib/middleware/references/index.ts'
import { rawClient } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { sessionGateway } from '../../support/session-gateway.ts'
import { endlessUpstream } from '../../support/session-upstream.ts'
import { until } from '../../support/until.ts'

/** Bodies of which the rest does not come: the path, their type, and what comes. */
const BODIES = {
  'a chat': ['/v1/chat/completions', 'application/json', '{"model":"chat",'],
  'JSON that is passed on': ['/v1/bytes', 'application/json', '{"a":"'],
  'what may be JSON': ['/v1/bytes', 'text/plain', ''],
  'white space': ['/v1/bytes', 'text/plain', '\r\n  '],
} as const
const idOf = (body: string) => body.replaceAll(' ', '-')

describe('a call whose body is being read ends with its key', { concurrency: true }, async () => {
  const cleanUp = cleaningUp()
  const upstream = await endlessUpstream(cleanUp)
  const ids = [...Object.keys(BODIES).map(idOf), 'bystander']
  const resources = new UpstreamResources()
  cleanUp.after(async () => resources.close())
  let directory: MemoryKeyDirectory | undefined
  const gateway = await sessionGateway(cleanUp, {
    upstream: upstream.url,
    resources,
    config: {
      accounts: ids.map((id) => ({ id })),
      keys: ids.map((id) => ({ id, account: id, secret: `sk-${id}` })),
    },
    keys(config) {
      directory = memoryKeyDirectory(config)
      return directory
    },
  })
  const keys = directory as unknown as MemoryKeyDirectory
  const upload = async (id: string, [path, type, sent]: readonly [string, string, string]) => {
    const raw = rawClient(
      gateway.port,
      `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-${id}\r\ncontent-type: ${type}\r\ncontent-length: 1000\r\n\r\n${sent}`,
    )
    cleanUp.after(async () => void raw.socket.destroy())
    await until(() => [...gateway.open].some(({ principal }) => principal?.keyId === id), 'the beginning')
    return raw
  }
  const bystander = await upload('bystander', BODIES['JSON that is passed on'])

  for (const [what, body] of Object.entries(BODIES)) {
    it(what, async () => {
      const id = idOf(what)
      const raw = await upload(id, body)
      keys.delete(hashSecret(`sk-${id}`))
      const endedAt = performance.now()
      await raw.until('}')
      assert.ok(performance.now() - endedAt < 5000)
      assert.match(raw.received, /^HTTP\/1\.1 401 /)
      assert.match(raw.received, /"code":"invalid_credential"/)
      raw.socket.destroy()
      await until(() => ![...gateway.open].some(({ principal }) => principal?.keyId === id), 'the end')
      const [entry] = await gateway.entriesOf(id)
      assert.deepEqual([entry?.error_code, entry?.routing?.attempts ?? []], ['invalid_credential', []])
      assert.equal(bystander.received, '')
    })
  }
})
