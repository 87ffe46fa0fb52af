import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { emptyPostgresUrl } from '../../stores/sql/support/postgres-database.ts'
import {
  chat,
  GATEWAY_COMMAND,
  post,
  runProgram,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { untilAsync } from '../../support/until.ts'

const WITHOUT_TOOLS = spawnSync('pg_dump', ['--version']).status === 0 ? false : 'there is no pg_dump here'
const ADMIN_TOKEN = 'admin-of-the-tests'

interface Check {
  readonly violations: readonly string[]
  readonly charges: number
  readonly spent: string
  readonly restored?: { readonly charges_written_again: number }
}

it('a Postgres that is restored under two gateways has all of their charges again, and says so', {
  skip: WITHOUT_POSTGRES || WITHOUT_TOOLS,
  timeout: 180_000,
}, async (t) => {
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  const env = { DATABASE_URL: await emptyPostgresUrl(), ADMIN_TOKEN }
  const gateways = await Promise.all([1, 2].map(() => startGatewayProcess(env)))
  for (const gateway of gateways) t.after(() => gateway.stop())
  const call = async (): Promise<void> => {
    for (const { url } of gateways) {
      const answer = await post(url, chat())
      assert.equal(answer.status, 200, await answer.text())
    }
  }
  const check = async (): Promise<Check> => {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
    return (await (await fetch(`${gateways[0]?.url}/admin/ledger/check`, { headers })).json()) as Check
  }
  const command = async (action: string) => {
    const { code, stderr } = await runProgram(
      [...GATEWAY_COMMAND, action, join(folder.path, 'backup')],
      folder.path,
      env,
    )
    assert.deepEqual([code, stderr], [0, ''])
  }
  for (let n = 0; n < 3; n++) await call()
  await command('backup')
  for (let n = 0; n < 3; n++) await call()
  const before = await check()
  assert.equal(before.charges, 12)
  assert.equal(before.restored, undefined)

  await command('restore')
  let served = 0
  await untilAsync(
    async () => {
      await sleep(500)
      // A process that has no call renews no lease.
      for (const { url } of gateways) {
        const answer = await post(url, chat())
        await answer.arrayBuffer()
        if (answer.status === 200) served++
      }
      // Or more: a call may have been charged while the database was being restored.
      return Number((await check()).restored?.charges_written_again) >= 6
    },
    'the charges are written again',
    60_000,
  )
  const after = await check()
  assert.deepEqual(after.violations, [])
  assert.equal(after.charges, before.charges + served)
  for (const { logged } of gateways)
    assert.equal(logged.filter(({ msg }) => /has lost charges/.test(msg)).length, 1)
})
