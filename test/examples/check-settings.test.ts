import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { it } from 'node:test'
import { printFaults } from '../../examples/gateway/commands/check.ts'
import { loadEnvironment } from '../../examples/gateway/config/environment.ts'
import { temporaryFolder } from '../support/gateway-process.ts'

it('a region that the demo could not start with is a fault of the check, too', async (t) => {
  const told = t.mock.method(console, 'error', () => {})
  assert.equal(await printFaults({ GATEWAY_REGION: 'a b', DATABASE_URL: 'memory:' }), 1)
  assert.deepEqual(
    told.mock.calls.map(({ arguments: [text] }) => text),
    ['region: must be printable ASCII without spaces'],
  )
})

it('a .env that cannot be read is named', async (t) => {
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  await mkdir(join(folder.path, '.env'))
  assert.throws(() => loadEnvironment(join(folder.path, 'gateway.yaml')), {
    name: 'ConfigError',
    message: `${join(folder.path, '.env')} cannot be read (EISDIR)`,
  })
})

it('a .env may begin with a byte order mark', async (t) => {
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  t.after(() => delete process.env.FIRST_OF_FILE)
  await writeFile(join(folder.path, '.env'), '\uFEFFFIRST_OF_FILE=1\n')
  loadEnvironment(join(folder.path, 'gateway.yaml'))
  assert.equal(process.env.FIRST_OF_FILE, '1')
})
