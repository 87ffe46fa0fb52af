import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { assembledGateway } from '../../support/assembled-gateway.ts'
import { temporaryFolder } from '../../support/gateway-process.ts'
import { startSignInProvider } from '../../support/sign-in-provider.ts'
import { until } from '../../support/until.ts'
import { BrowserJar } from './browser-jar.ts'

const ADMIN_TOKEN = 'admin-token-of-this-test'
const CONFIG = {
  models: [{ id: 'm', kind: 'chat' }],
  lines: [
    { id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://localhost:1/v1', models: { m: 'm' } },
  ],
}
const isCallback = (url: string) => url.includes('/console/sign-in/callback')

describe('the secret of the client in a file', () => {
  it('is read again when the file changes', async (t) => {
    const folder = await temporaryFolder()
    t.after(folder.remove)
    const file = join(folder.path, 'secret')
    const own = await startSignInProvider(t)
    await writeFile(file, own.settings.clientSecret)
    const settings = { ...own.settings, clientSecret: `file:${file}` }
    const { url } = await assembledGateway(t, CONFIG, { adminToken: ADMIN_TOKEN, signInProvider: settings })
    const end = () => new BrowserJar().follow(`${url}/console/sign-in`)
    own.serve(url)
    assert.equal(await end(), `${url}/console`)
    own.serve(url, 'another-secret-of-the-client')
    assert.equal(await end(), `${url}/console?refused=failed`)
    await writeFile(file, 'another-secret-of-the-client\n')
    await sleep(1001)
    assert.equal(await end(), `${url}/console`)
  })
})

describe('a provider that is slow', () => {
  it('holds up two sign-ins of a network and eight in all; further ones can be repeated', async (t) => {
    const own = await startSignInProvider(t)
    const config = { ...CONFIG, trustProxy: true }
    const options = { adminToken: ADMIN_TOKEN, signInProvider: own.settings }
    const { url } = await assembledGateway(t, config, options)
    own.serve(url)
    const go = Promise.withResolvers<void>()
    own.slow = go.promise
    const calledBack = async (ip: string) => {
      const jar = new BrowserJar()
      const callback = await jar.follow(`${url}/console/sign-in`, isCallback)
      const get = async () => {
        const answer = await jar.get(callback, { 'x-forwarded-for': ip })
        return { status: answer.status, text: await answer.text(), to: answer.headers.get('location') }
      }
      return { get, first: get() }
    }
    const asked = () => own.asked.filter((each) => each === 'POST /token').length
    const waiting = []
    for (const ip of ['2001:db8::1', '2001:db8:0:1::2', '10.0.0.1', '10.0.0.1', '10.0.0.2', '10.0.0.2'])
      waiting.push(await calledBack(ip))
    const third = await calledBack('2001:db8:0:2::3')
    const refused = await third.first
    assert.equal(refused.status, 429)
    assert.match(refused.text, /too many sign-ins of your network are waiting/)
    for (const ip of ['10.0.0.3', '10.0.0.4']) waiting.push(await calledBack(ip))
    await until(() => asked() === 8, 'all of them at the provider')
    const full = await (await calledBack('10.0.0.5')).first
    assert.deepEqual([full.status, asked()], [503, 8])
    go.resolve()
    for (const { first } of waiting) assert.equal((await first).to, '../../console')
    assert.equal((await third.get()).to, '../../console', 'the same address, loaded again')
  })
})
