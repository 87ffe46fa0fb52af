import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startGatewayProcess } from '../../support/gateway-process.ts'
import { until } from '../../support/until.ts'

describe('a gateway that is ready', () => {
  it('names its console and how to sign in there, and its root leads to it', async (t) => {
    const gateway = await startGatewayProcess()
    t.after(() => gateway.stop())
    await until(() => gateway.stdout.includes('Sign in'), 'the message')
    assert.ok(gateway.stdout.includes(`\nConsole: ${gateway.url}/console\n`), gateway.stdout)
    assert.match(
      gateway.stdout,
      /API key \(sk-demo\) to see its account; set ADMIN_TOKEN to sign in as an operator\.\n/,
    )
    assert.ok(gateway.stdout.trim().split('\n').length <= 10, gateway.stdout)
    assert.doesNotMatch(gateway.stdout, /hints for the config/)
    const page = await fetch(gateway.url)
    assert.deepEqual([page.url, page.status], [`${gateway.url}/console`, 200])
    assert.match(await page.text(), /<title>/)
    const posted = await fetch(gateway.url, { method: 'POST' })
    assert.equal(posted.status, 404)
  })

  it('with a port for operators, names theirs and the address that it is given', async (t) => {
    const CONSOLE_URL = 'https://gateway.example/console'
    const gateway = await startGatewayProcess({
      ADMIN_TOKEN: 'a-token-of-the-tests',
      ADMIN_PORT: '0',
      CONSOLE_URL,
    })
    t.after(() => gateway.stop())
    await until(() => gateway.stdout.includes('Sign in'), 'the message')
    assert.ok(gateway.stdout.includes(`\nConsole: ${CONSOLE_URL}\n`))
    assert.match(gateway.stdout, /or with the ADMIN_TOKEN to run the service\.\n/)
    assert.equal((await fetch(gateway.url)).status, 404)
    const [, admin = ''] = /\/metrics are at (\S+)\n/.exec(gateway.stdout) ?? []
    assert.equal((await fetch(admin)).url, `${admin}/console`)
  })
})
