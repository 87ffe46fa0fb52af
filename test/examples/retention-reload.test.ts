import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openDurableStores } from '../../examples/gateway/stores/stores.ts'
import { loadConfig } from '../../lib/core/config/index.ts'
import { entryAt } from '../contracts/call-store.ts'
import { BACKENDS } from '../stores/sql/support/postgres-database.ts'
import { open } from '../stores/sql/support/temporary-database.ts'
import { recordingLogger } from '../support/app-server.ts'
import { untilAsync } from '../support/until.ts'

const HOUR_MS = 3_600_000
const configOf = (calls: string) =>
  loadConfig({
    models: [{ id: 'chat', kind: 'chat' }],
    lines: [
      { id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://127.0.0.1:9/v1', models: { chat: 'u' } },
    ],
    accounts: [{ id: 'acme' }],
    retention: { calls },
  })

for (const { name, url, skip } of BACKENDS)
  describe(`a reload that cannot add accounts, over ${name}`, { skip }, () => {
    it('keeps calls for as long as it says all the same', async (t) => {
      const at = await url(t)
      const stores = await openDurableStores(at, configOf('30d'), recordingLogger())
      t.after(() => stores.close())
      const { id } = entryAt(Date.now() - 2 * HOUR_MS)
      await stores.calls.append([entryAt(Date.now() - HOUR_MS / 2), { ...entryAt(0), id }])
      const db = await open(t, at)
      await db.schema.alterTable('seeds').renameTo('away').execute()
      await assert.rejects(stores.seed(configOf('1h')))
      await untilAsync(async () => {
        const rows = await db.selectFrom('calls').select('id').execute()
        return rows.length === 1 && rows[0]?.id !== id
      }, 'the end of the older call')
      await db.schema.alterTable('away').renameTo('seeds').execute()
    })
  })
