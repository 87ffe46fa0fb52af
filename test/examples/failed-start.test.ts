import assert from 'node:assert/strict'
import { readdirSync, readlinkSync } from 'node:fs'
import { describe, it } from 'node:test'
import { openGateway } from '../../examples/gateway/open-gateway.ts'
import { openLimitStores } from '../../examples/gateway/stores/limit-stores.ts'
import { loadConfig } from '../../lib/core/config/index.ts'
import { CallLogWriter } from '../../lib/middleware/call-log/index.ts'
import { recordingLogger } from '../support/app-server.ts'
import { temporaryFolder } from '../support/gateway-process.ts'

/** The files under a folder that this process has open. */
const openUnder = (folder: string) =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(folder)
    } catch {
      return false
    }
  })

const config = loadConfig({
  models: [{ id: 'm', kind: 'chat' }],
  lines: [
    { id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://127.0.0.1:9/v1', models: { m: 'm' } },
  ],
})

describe('a gateway that cannot be opened', () => {
  /** The places of a failure: before there is a database, in it, and behind it. */
  const FAULTS = {
    'for want of a database': { databaseUrl: 'sqlite:/dev/null/gateway.db' },
    'for an account that does not fit the database': {
      config: { ...config, accounts: [{ id: 'acme', balance: '99999999999' }] },
    },
    'for its telemetry': { observability: { toCollector: true, traces: null } },
  }
  for (const [name, fault] of Object.entries(FAULTS))
    it(`${name} leaves nothing open`, async (t) => {
      const folder = await temporaryFolder()
      t.after(() => folder.remove())
      const logger = recordingLogger()
      const limits = await openLimitStores(undefined, logger)
      let closed = 0
      const close = async () => void closed++
      const options = {
        ...{ config, logger, adminToken: undefined, signInProvider: undefined, webhookAllowPrivate: false },
        databaseUrl: `sqlite:${folder.path}/gateway.db`,
        observability: undefined,
        limits: { ...limits, close },
        ...fault,
      }
      await assert.rejects(openGateway(options as never))
      assert.equal(closed, 1)
      assert.deepEqual(openUnder(folder.path), [])
    })
})

describe('a gateway of which a part cannot be closed', () => {
  it('closes the others, and says so', async (t) => {
    const folder = await temporaryFolder()
    t.after(() => folder.remove())
    const logger = recordingLogger()
    const limits = await openLimitStores(undefined, logger)
    let closed = 0
    const gateway = await openGateway({
      ...{ config, logger, adminToken: undefined, signInProvider: undefined, webhookAllowPrivate: false },
      databaseUrl: `sqlite:${folder.path}/gateway.db`,
      observability: undefined,
      limits: { ...limits, close: async () => void closed++ },
    } as never)
    t.mock.method(CallLogWriter.prototype, 'close', async () => {
      throw new Error('cannot be closed')
    })
    await assert.rejects(gateway.close(), /cannot be closed/)
    assert.equal(closed, 1)
    assert.deepEqual(openUnder(folder.path), [])
  })
})
