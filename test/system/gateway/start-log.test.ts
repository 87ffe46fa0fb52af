import assert from 'node:assert/strict'
import { join } from 'node:path'
import { it } from 'node:test'
import { startGatewayProcess, temporaryFolder } from '../../support/gateway-process.ts'

it('a start logs each fact once, in about ten lines', async (t) => {
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  const gateway = await startGatewayProcess({
    DATABASE_URL: `sqlite:${join(folder.path, 'gateway.db')}`,
    LOG_LEVEL: 'info',
  })
  t.after(() => gateway.stop())
  gateway.kill('SIGTERM')
  const { stdout, stderr } = await gateway.exited
  const lines = (stdout + stderr).split('\n').filter((line) => line !== '')
  const messages = lines.flatMap((line) => {
    const [, message] = /"msg":"([^"]*)"/.exec(line) ?? []
    return message === undefined ? [] : [message]
  })
  assert.ok(messages.includes('database opened'), `${messages}`)
  assert.deepEqual(messages, [...new Set(messages)])
  assert.ok(lines.length <= 12, `${lines.length} lines`)
})
